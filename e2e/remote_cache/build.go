package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// What is built: both identity rules, and a test of every other public rule, without running it.
var targets = []string{
	"//manifest:leo", "//profile:leo", "//rules/tests:leo_behavior",
	"//rules/tests:leo_restarts", "//rules/tests:leo_drifts_in_view_before_second",
	"//rules/tests:repair_converges", "//rules/tests:leo_memory",
}

// spawn is one action in Bazel's execution log (spawn.proto, as JSON).
type spawn struct {
	Mnemonic      string   `json:"mnemonic"`
	TargetLabel   string   `json:"targetLabel"`
	Runner        string   `json:"runner"`
	CacheHit      bool     `json:"cacheHit"`
	ExitCode      int      `json:"exitCode"`
	Digest        digest   `json:"digest"` // of the action, its key in a cache
	ActualOutputs []output `json:"actualOutputs"`
}

type output struct {
	Path   string `json:"path"`
	Digest digest `json:"digest"`
}

type digest struct {
	Hash string `json:"hash"`
}

// identity reports whether the action makes a part of an identity; checks of it are apart.
func (s spawn) identity() bool {
	return strings.HasPrefix(s.Mnemonic, "Identity") && !s.check()
}

func (s spawn) check() bool {
	return strings.HasPrefix(s.Mnemonic, "Identity") && strings.HasSuffix(s.Mnemonic, "Verify")
}

func (s spawn) String() string { return s.Mnemonic + " " + s.TargetLabel }

// hash returns the digest of the output whose name ends so.
func (s spawn) hash(suffix string) string {
	for _, o := range s.ActualOutputs {
		if strings.HasSuffix(o.Path, suffix) {
			return o.Digest.Hash
		}
	}
	return ""
}

// built is what a build left: SHA-256 by output path, its actions, what Bazel said.
type built struct {
	hashes map[string]string
	spawns []spawn
	said   string
	err    error
}

// find returns the only action of a mnemonic.
func (b built) find(mnemonic string) (spawn, error) {
	var found []spawn
	for _, s := range b.spawns {
		if s.Mnemonic == mnemonic {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		return spawn{}, fmt.Errorf("%d actions of mnemonic %s, want 1\n%s", len(found), mnemonic, b.said)
	}
	return found[0], nil
}

// bazel is a call of Bazel on the host.
func (h *host) bazel(args ...string) *exec.Cmd {
	cmd := h.command(os.Getenv("SELFSAME_BAZEL"), append([]string{"--bazelrc=" + os.Getenv("SELFSAME_BAZELRC")}, args...)...)
	for _, name := range append([]string{"SELFSAME_GOROOT"}, goFolders...) {
		cmd.Env = append(cmd.Env, name+"="+os.Getenv(name))
	}
	// The hosts reach the cache and nothing else; prepare has brought the Go modules.
	cmd.Env = append(cmd.Env, "GOPROXY=off", "GO_REPOSITORY_USE_HOST_CACHE=1")
	return cmd
}

// build builds all targets from nothing but what a cache gives, and hashes their outputs.
func (h *host) build(args ...string) built {
	if out, err := h.bazel("clean").CombinedOutput(); err != nil {
		return built{said: string(out), err: fmt.Errorf("bazel clean: %w\n%s", err, out)}
	}
	return h.hashed(h.buildOf(targets, args...))
}

// rebuild is [host.build] with the tool still there: the identity alone is gone, and asked for again.
func (h *host) rebuild(args ...string) built {
	if err := h.forget(); err != nil {
		return built{err: err}
	}
	return h.hashed(h.buildOf(targets, args...))
}

func (h *host) forget() error {
	for _, pattern := range []string{"bazel-bin/manifest/leo*", "bazel-bin/profile/leo*"} {
		found, err := filepath.Glob(filepath.Join(h.checkout, pattern))
		if err != nil {
			return err
		}
		for _, path := range found {
			if err := remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *host) hashed(b built) built {
	if b.err == nil {
		b.hashes, b.err = h.outputs()
	}
	return b
}

func (h *host) buildOf(targets []string, args ...string) built {
	log := filepath.Join(scratch, "spawns-"+h.name+".json")
	os.Remove(log)
	all := append([]string{"build", "--color=no", "--curses=no", "--show_progress_rate_limit=60", "--execution_log_json_file=" + log}, args...)
	out, err := h.bazel(append(append(all, "--"), targets...)...).CombinedOutput()
	b := built{said: string(out), err: err}
	if err != nil {
		b.err = fmt.Errorf("%w\n%s", err, tail(b.said, 40))
	}
	var failed error
	if b.spawns, failed = spawns(log); failed != nil {
		b.err = errors.Join(b.err, failed)
	}
	return b
}

func spawns(log string) ([]spawn, error) {
	file, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var out []spawn
	for d := json.NewDecoder(file); ; {
		var s spawn
		err := d.Decode(&s)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", log, err)
		}
		out = append(out, s)
	}
}

// outputs hashes every file that the rules made. Results of checks are none; parameter files and lists of runfiles hold paths of
// the machine and are inputs of actions, not outputs of rules.
func (h *host) outputs() (map[string]string, error) {
	bin, err := filepath.EvalSymlinks(filepath.Join(h.checkout, "bazel-bin"))
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, dir := range []string{"manifest", "profile", "rules/tests"} {
		err := filepath.WalkDir(filepath.Join(bin, dir), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && strings.HasSuffix(path, ".runfiles"):
				return filepath.SkipDir
			case d.IsDir(), strings.HasSuffix(path, ".verified.json"), strings.HasSuffix(path, ".params"), strings.HasSuffix(path, ".runfiles_manifest"), strings.HasSuffix(path, ".repo_mapping"),
				strings.HasSuffix(path, ".a"), strings.HasSuffix(path, ".x"), strings.HasSuffix(path, ".facts"):
				return nil
			}
			data, err := os.ReadFile(path)
			name, _ := filepath.Rel(bin, path)
			found[name] = sum(data)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"manifest/leo.json", "manifest/leo.json.sha256", "manifest/leo.provenance.json", "manifest/leo.behavior.json", "profile/leo/identity.json", "profile/leo.tree.sha256", "rules/tests/leo_restarts"} {
		if found[name] == "" {
			return nil, fmt.Errorf("%s: no output %s among %q", h.name, name, slices.Sorted(maps.Keys(found)))
		}
	}
	return found, nil
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// same fails where two builds have other outputs.
func same(want, got map[string]string) error {
	var differ []string
	for name := range want {
		if got[name] != want[name] {
			differ = append(differ, fmt.Sprintf("%s: %s, want %s", name, got[name], want[name]))
		}
	}
	for name := range got {
		if want[name] == "" {
			differ = append(differ, name+": unexpected")
		}
	}
	if len(differ) > 0 {
		slices.Sort(differ)
		return fmt.Errorf("%d of %d outputs differ:\n%s", len(differ), len(want), strings.Join(differ, "\n"))
	}
	return nil
}

// split cuts data at every sep, without the empty rest.
func split(data []byte, sep byte) []string {
	var out []string
	for part := range bytes.SplitSeq(data, []byte{sep}) {
		if len(part) > 0 {
			out = append(out, string(part))
		}
	}
	return out
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// waitFor polls until done, at most for the given time.
func waitFor(limit time.Duration, done func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return false
}
