package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Every run has identities of its own: this file of the deployment holds a number that no
// earlier build has seen, so a hit can only come from what host A put during the run.
const nonceFile = "fixtures/working-leo/leo-identity-v1/teleo-deployment/run.txt"

func nonce() string {
	data := make([]byte, 16)
	rand.Read(data)
	return hex.EncodeToString(data)
}

func (h *host) source(number string) error {
	return write(filepath.Join(h.checkout, nonceFile), []byte(number+"\n"))
}

// How hosts use the cache: as .bazelrc says; A is the release machine, which writes.
func reader(h *host) []string {
	return []string{"--config=remote-cache", "--remote_cache=" + h.cacheURL()}
}
func writer(h *host) []string { return append(reader(h), "--remote_upload_local_results") }

// step prints what is shown, how it went, and how long it took.
func step(name string, run func() (string, error)) error {
	begin := time.Now()
	fmt.Printf("-- %s\n", name)
	shown, err := run()
	if err != nil {
		fmt.Printf("   FAILED after %.1f s\n", time.Since(begin).Seconds())
		return fmt.Errorf("%s: %w", name, err)
	}
	for line := range strings.Lines(shown) {
		fmt.Printf("   %s\n", strings.TrimRight(line, "\n"))
	}
	fmt.Printf("   holds (%.1f s)\n", time.Since(begin).Seconds())
	return nil
}

type scene struct {
	seed                       string
	honest, other, third, evil string // numbers of source states

	want, wantOther, wantThird, bad built // what A built of them
}

// scenario runs in the namespaces.
func scenario(seed string) error {
	if err := connect(); err != nil {
		return &failure{err, needsNamespaces}
	}
	s := &scene{seed: seed, honest: nonce(), other: nonce(), third: nonce(), evil: nonce()}
	if seed == "" {
		s.seed = scratch + "/seed"
	}
	if err := serve(s.seed); err != nil {
		return err
	}
	steps := []struct {
		name string
		run  func() (string, error)
	}{
		{"A fills the cache", s.fill},
		{"B, with an empty output base, takes every identity action from it", s.share},
		{"B with the cache off", s.off},
		{"B is cut off in the middle of a download", s.cutOff},
		{"altered contents, same length and other length", s.alteredContent},
		{"an action result names another manifest", s.otherManifest},
		{"an action result names another digest file", s.otherDigest},
		{"an action result names another profile", s.otherProfile},
		{"control: without the checks the other manifest is accepted", s.unchecked},
		{"control: checks from the cache would be forged, too", s.forgedCheck},
		{"the cache as it was", s.again},
		{"an action result names another tool", s.otherTool},
	}
	if seed == "" {
		steps = slices.Insert(steps, 0, struct {
			name string
			run  func() (string, error)
		}{"the tool is compiled (no -seed)", s.compile})
	}
	for _, st := range steps {
		if err := step(st.name, st.run); err != nil {
			return err
		}
	}
	fmt.Printf("%d steps hold\n", len(steps))
	return nil
}

func (s *scene) compile() (string, error) {
	if err := hostA.source(nonce()); err != nil {
		return "", err
	}
	b := hostA.build("--disk_cache=" + s.seed)
	return fmt.Sprintf("%d actions", len(b.spawns)), b.err
}

func (s *scene) fill() (string, error) {
	for _, state := range []struct {
		number string
		to     *built
	}{{s.other, &s.wantOther}, {s.third, &s.wantThird}, {s.evil, &s.bad}, {s.honest, &s.want}} {
		if err := hostA.source(state.number); err != nil {
			return "", err
		}
		*state.to = hostA.hashed(hostA.buildOf(targets, writer(hostA)...))
		if state.to.err != nil {
			return "", state.to.err
		}
		for _, sp := range state.to.spawns {
			if sp.identity() && sp.CacheHit {
				return "", fmt.Errorf("%s: a hit in an empty cache", sp)
			}
		}
	}
	if same(s.want.hashes, s.bad.hashes) == nil {
		return "", errors.New("control: other sources have the same outputs")
	}
	return digests(s.want), nil
}

func digests(b built) string {
	var out strings.Builder
	for _, name := range []string{"manifest/leo.json", "manifest/leo.behavior.json", "manifest/leo.provenance.json", "profile/leo.tree.sha256", "rules/tests/leo_restarts"} {
		fmt.Fprintf(&out, "%s  %s\n", b.hashes[name], name)
	}
	fmt.Fprintf(&out, "%d outputs in all\n", len(b.hashes))
	return out.String()
}

// checked requires that every identity action was a hit, or none, and that every check ran here.
func checked(b built, hits bool) (string, error) {
	identities, checks, others := 0, 0, 0
	for _, sp := range b.spawns {
		switch {
		case sp.check():
			checks++
			if sp.CacheHit {
				return "", fmt.Errorf("%s: the check comes from a cache (%s)", sp, sp.Runner)
			}
		case sp.identity():
			identities++
			if sp.CacheHit != hits || hits && sp.Runner != "remote cache hit" {
				return "", fmt.Errorf("%s: %s, cache hit %v, want %v", sp, sp.Runner, sp.CacheHit, hits)
			}
		case sp.CacheHit:
			others++
		}
	}
	if identities != 2 || checks != 2 {
		return "", fmt.Errorf("%d identity actions and %d checks, want 2 and 2\n%s", identities, checks, b.said)
	}
	how := "executed here"
	if hits {
		how = "from the remote cache"
	}
	return fmt.Sprintf("2 of 2 identity actions %s, 2 of 2 checks executed here, %d other hits", how, others), nil
}

// holds wants the outputs that A had.
func (s *scene) holds(hits bool, b built) (string, error) {
	if b.err != nil {
		return "", b.err
	}
	if err := same(s.want.hashes, b.hashes); err != nil {
		return "", err
	}
	shown, err := checked(b, hits)
	return fmt.Sprintf("%s\n%d of %d outputs equal", shown, len(b.hashes), len(s.want.hashes)), err
}

func (s *scene) share() (string, error) {
	if err := hostB.source(s.honest); err != nil {
		return "", err
	}
	return s.holds(true, hostB.build(reader(hostB)...))
}

func (s *scene) again() (string, error) { return s.holds(true, hostB.build(reader(hostB)...)) }

func (s *scene) off() (string, error) { return s.holds(false, hostB.build("--disk_cache="+s.seed)) }

// cutOff lets contents trickle, and cuts the link when the first action result has arrived, so that its
// contents never do.
func (s *scene) cutOff() (string, error) {
	if err := hostB.source(s.other); err != nil {
		return "", err
	}
	if err := write(slow, nil); err != nil {
		return "", err
	}
	from := len(requests(0))
	cut := make(chan error, 1)
	go func() {
		if !waitFor(5*time.Minute, func() bool {
			return slices.ContainsFunc(requests(from), func(line string) bool {
				return strings.HasPrefix(line, "GET /cache/ac/") && strings.HasSuffix(line, " 200")
			})
		}) {
			cut <- errors.New("no action result was asked for")
			return
		}
		cut <- hostB.cut()
	}()
	// The tool comes from the local disk, so that what is asked of the remote cache is the identity.
	b := hostB.build(append(reader(hostB), "--disk_cache="+s.seed, "--remote_timeout=5s", "--remote_retries=1")...)
	select {
	case err := <-cut:
		if err != nil {
			return "", err
		}
	default:
		return "", errors.New("the build ended before the link was cut")
	}
	err := errors.Join(os.Remove(slow), hostB.mend(), hostB.source(s.honest), b.err)
	if err != nil {
		return "", err
	}
	if err := same(s.wantOther.hashes, b.hashes); err != nil {
		return "", err
	}
	shown, err := checked(b, false)
	return fmt.Sprintf("cut after the first hit\n%s\n%d outputs equal", shown, len(b.hashes)), err
}

// alteredContent alters in each round one output of both actions.
func (s *scene) alteredContent() (string, error) {
	var out []string
	kinds := map[string]func(data []byte) []byte{
		"same length": func(data []byte) []byte { data[len(data)/2] ^= 1; return data },
		"shorter":     func(data []byte) []byte { return data[:len(data)-1] },
		"longer":      func(data []byte) []byte { return append(data, '\n') },
	}
	for _, names := range [][2]string{{"manifest/leo.json", "profile/leo/identity.json"}, {"manifest/leo.json.sha256", "profile/leo.tree.sha256"}} {
		for kind, alter := range kinds {
			err := s.altered(names[0], alter, func() error {
				return s.altered(names[1], alter, func() error {
					b := hostB.rebuild(reader(hostB)...)
					if b.err != nil {
						return b.err
					}
					if _, err := checked(b, false); err != nil {
						return err
					}
					return same(s.want.hashes, b.hashes)
				})
			})
			if err != nil {
				return "", fmt.Errorf("%s, %s: %w", names, kind, err)
			}
			out = append(out, fmt.Sprintf("%s, %s: not taken, executed here, outputs equal", strings.Join(names[:], " and "), kind))
		}
	}
	return strings.Join(out, "\n"), nil
}

func (s *scene) altered(name string, alter func([]byte) []byte, call func() error) error {
	path := entry("cas", s.want.hashes[name])
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return replaced(path, alter(data), call)
}

// poison makes the cache answer the key of an honest action with what the result function makes of the
// action's and the evil action's results.
func (s *scene) poison(mnemonic string, result func(honest, evil []byte) ([]byte, error), call func() error) error {
	honest, err := s.want.find(mnemonic)
	if err != nil {
		return err
	}
	evil, err := s.bad.find(mnemonic)
	if err != nil {
		return err
	}
	var results [2][]byte
	for i, key := range []string{honest.Digest.Hash, evil.Digest.Hash} {
		if results[i], err = os.ReadFile(entry("ac", key)); err != nil {
			return fmt.Errorf("%s: %w", mnemonic, err)
		}
	}
	forged, err := result(results[0], results[1])
	if err != nil {
		return err
	}
	return replaced(entry("ac", honest.Digest.Hash), forged, call)
}

func evilResult(_, evil []byte) ([]byte, error) { return evil, nil }

// refused builds on B, which must fail by a check that names the file, although Bazel took the poison.
func (s *scene) refused(mnemonic, name string) (string, error) {
	b := hostB.rebuild(reader(hostB)...)
	if b.err == nil {
		return "", fmt.Errorf("it builds:\n%s", b.said)
	}
	sp, err := b.find(mnemonic)
	if err != nil {
		return "", err
	}
	if !sp.CacheHit || sp.hash(name) != s.bad.hashes[path(mnemonic)+name] {
		return "", fmt.Errorf("control: the poison was not taken: %s, %s", sp.Runner, sp.hash(name))
	}
	for _, line := range strings.Split(b.said, "\n") {
		if strings.HasPrefix(line, "selfsame: error: ") {
			return "Bazel took it; the build fails:\n" + line, nil
		}
	}
	return "", fmt.Errorf("it fails for another reason: %w", b.err)
}

func path(mnemonic string) string {
	if mnemonic == "IdentityProfile" {
		return "profile/"
	}
	return "manifest/"
}

func (s *scene) otherManifest() (shown string, err error) {
	err = s.poison("IdentityManifest", evilResult, func() error {
		shown, err = s.refused("IdentityManifest", "leo.json")
		return err
	})
	return shown, err
}

func (s *scene) otherDigest() (shown string, err error) {
	const name = "leo.json.sha256"
	err = s.poison("IdentityManifest", func(honest, _ []byte) ([]byte, error) {
		return pointElsewhere(honest, s.want.hashes["manifest/"+name], s.bad.hashes["manifest/"+name])
	}, func() error {
		shown, err = s.refused("IdentityManifest", name)
		return err
	})
	return shown, err
}

func (s *scene) otherProfile() (shown string, err error) {
	err = s.poison("IdentityProfile", evilResult, func() error {
		shown, err = s.refused("IdentityProfile", "leo.tree.sha256")
		return err
	})
	return shown, err
}

// only the manifest: the profile is compiled from the sources, and would refuse another manifest by itself.
var onlyManifest = []string{"//manifest:leo"}

// takes builds the manifest on B and wants to know whether that of the evil sources is accepted.
func (s *scene) takes(args ...string) (bool, built) {
	if err := hostB.forget(); err != nil {
		return false, built{err: err}
	}
	b := hostB.buildOf(onlyManifest, append(reader(hostB), args...)...)
	sp, err := b.find("IdentityManifest")
	return b.err == nil && err == nil && sp.CacheHit && sp.hash("leo.json") == s.bad.hashes["manifest/leo.json"], b
}

func (s *scene) unchecked() (string, error) {
	err := s.poison("IdentityManifest", evilResult, func() error {
		if accepted, b := s.takes("--norun_validations"); !accepted {
			return fmt.Errorf("it is not: %w\n%s", b.err, b.said)
		}
		return nil
	})
	return "the build succeeds with " + s.bad.hashes["manifest/leo.json"] + "  manifest/leo.json", err
}

// forgedCheck lets the check come from the cache, as it could without no-remote-cache, and forges its result as
// who controls the cache can: its key is what B asked for in vain.
func (s *scene) forgedCheck() (string, error) {
	rules := filepath.Join(hostB.checkout, "rules/private/inputs.bzl")
	real, err := os.ReadFile(rules)
	if err != nil {
		return "", err
	}
	weak := strings.Replace(string(real), `"no-remote-cache": "1",`, "", 1)
	if weak == string(real) {
		return "", fmt.Errorf("%s has no such line", rules)
	}
	err = s.poison("IdentityManifest", evilResult, func() error {
		if err := write(rules, []byte(weak)); err != nil {
			return err
		}
		from := len(requests(0))
		if accepted, b := s.takes(); accepted || !strings.Contains(b.said, "selfsame: error: ") {
			return fmt.Errorf("the check says nothing: %w\n%s", b.err, b.said)
		}
		var keys []string
		for _, line := range requests(from) {
			var key string
			if n, _ := fmt.Sscanf(line, "GET /cache/ac/%s 404", &key); n == 1 && strings.HasSuffix(line, " 404") {
				keys = append(keys, key)
			}
		}
		if len(keys) != 1 {
			return fmt.Errorf("%d keys were asked for in vain, want that of the check: %q", len(keys), keys)
		}
		verified := []byte(`{"differences":[],"holds":true}`)
		hash, err := put(verified)
		if err != nil {
			return err
		}
		if err := write(entry("ac", keys[0]), actionResult("bazel-out/cfg/bin/manifest/leo.verified.json", hash, len(verified))); err != nil {
			return err
		}
		if accepted, b := s.takes(); !accepted {
			return fmt.Errorf("the forged check is not believed: %w\n%s", b.err, b.said)
		}
		if err := write(rules, real); err != nil {
			return err
		}
		if accepted, b := s.takes(); accepted || !strings.Contains(b.said, "selfsame: error: ") {
			return fmt.Errorf("with the rules as they are it is accepted: %w\n%s", b.err, b.said)
		}
		return nil
	})
	return "without no-remote-cache the build succeeds, with it it fails", err
}

// otherTool names a tool with another opinion of trees, in its making and in its checks alike. Who takes the tool from
// the cache believes the cache in everything; with --config=untrusted-cache the tool is made here.
func (s *scene) otherTool() (string, error) {
	var links []spawn
	for _, sp := range s.wantOther.spawns { // the first build of A, which took the tool from the seed
		if sp.Mnemonic == "GoLink" && sp.TargetLabel == "//tools/selfsame:selfsame" {
			links = append(links, sp)
		}
	}
	if err := hostB.source(s.third); err != nil {
		return "", err
	}
	shown := ""
	poisoned := func() error {
		b := hostB.build(reader(hostB)...)
		if b.err != nil {
			return fmt.Errorf("control: the tool does not work: %w", b.err)
		}
		if b.hashes["profile/leo.tree.sha256"] == s.wantThird.hashes["profile/leo.tree.sha256"] {
			return errors.New("control: the tool has the same opinion")
		}
		b = hostB.build("--config=untrusted-cache", "--remote_cache="+hostB.cacheURL(), "--disk_cache="+s.seed)
		if b.err != nil {
			return b.err
		}
		for _, sp := range b.spawns {
			if strings.HasPrefix(sp.Mnemonic, "Go") && sp.Runner == "remote cache hit" {
				return fmt.Errorf("%s comes from the remote cache", sp)
			}
		}
		if err := same(s.wantThird.hashes, b.hashes); err != nil {
			return err
		}
		var err error
		shown, err = checked(b, true)
		return err
	}
	for _, link := range links {
		key, hash := link.Digest.Hash, link.hash("/selfsame")
		result, err := os.ReadFile(filepath.Join(s.seed, "ac", key[:2], key))
		if err != nil {
			return "", err
		}
		tool, err := os.ReadFile(filepath.Join(s.seed, "cas", hash[:2], hash))
		if err != nil {
			return "", err
		}
		other, err := put(bytes.ReplaceAll(tool, []byte("selfsame-tree.v1"), []byte("selfsame-tree.v9")))
		if err != nil {
			return "", err
		}
		if result, err = pointElsewhere(result, hash, other); err != nil {
			return "", err
		}
		then := poisoned
		poisoned = func() error { return replaced(entry("ac", key), result, then) }
	}
	if len(links) == 0 {
		return "", errors.New("no such tool was linked")
	}
	err := poisoned()
	return "a reader believes it; with --config=untrusted-cache the tool is made here, and all outputs are equal\n" + shown, errors.Join(err, hostB.source(s.honest))
}
