package execlog

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// cause is a [Cause] whose actions are units still.
type cause struct {
	Cause
	units []int32
}

type causeKey struct {
	kind                  Kind
	subject, change, a, b string
}

// Values of Cause.Change.
const (
	changed  = "changed"
	missing  = "only_in_a"
	surplus  = "only_in_b"
	withheld = "withheld"
)

// add gives a unit a cause, which it may share.
func (n *analysis) add(i int, c Cause) {
	if c.Change == "" {
		c.Change = changed
	}
	if c.Withheld {
		c.A, c.B = blank(c.A), blank(c.B)
	}
	k := causeKey{c.Kind, c.Subject, c.Change, c.A, c.B}
	at, found := n.at[k]
	if !found {
		at = len(n.causes)
		n.at[k] = at
		n.causes = append(n.causes, cause{Cause: c})
	} else if have := n.causes[at].Suspects; !slices.Equal(have, c.Suspects) {
		have = slices.Concat(have, c.Suspects)
		slices.Sort(have)
		n.causes[at].Suspects = slices.Compact(have)
	}
	if units := n.causes[at].units; len(units) == 0 || units[len(units)-1] != int32(i) {
		n.causes[at].units = append(units, int32(i))
		n.own[i] = append(n.own[i], int32(at))
	}
}

func blank(value string) string {
	if value == "" {
		return ""
	}
	return withheld
}

// kindOfFile says what a path is that no differing action made, and where it comes from.
func (n *analysis) kindOfFile(path string, maker string) (kind Kind, origin, next string) {
	switch {
	case path == outputs+"volatile-status.txt" || path == outputs+"stable-status.txt":
		return StatusFile, "workspace status, which Bazel writes anew for each build (BUILD_USER, BUILD_HOST, BUILD_TIMESTAMP, and what --workspace_status_command prints)",
			"build with --nostamp, or take the stamp out of this action: only a release needs it; else print the same values on both machines"
	case maker != "":
		return GeneratedFile, "output of " + maker + ", which was the same in both logs: something wrote it afterwards",
			"find what else writes " + path + ", and sandbox it (--spawn_strategy=sandboxed)"
	case strings.HasPrefix(path, outputs):
		return GeneratedFile, "Bazel wrote it itself, or took it from its local action cache: no action of the logs made it",
			"look at what it holds on both machines (" + path + "), and run on both: bazel aquery 'outputs(\"" + path + "\", //...)'; where that names an action that runs, make both logs after bazel clean"
	case strings.HasPrefix(path, "external/"), strings.HasPrefix(path, "../"):
		repository, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, "../"), "external/"), "/")
		return ExternalFile, "external repository @@" + repository,
			"both machines must fetch the same @@" + repository + ": compare MODULE.bazel.lock, pin its digest (integrity, sha256, commit), and run bazel fetch --force --repo=@@" + repository
	case strings.HasPrefix(path, "/"):
		return HostFile, "file of the machine, outside of the workspace",
			"make it an input from a pinned repository or toolchain, or install the same one on both machines"
	}
	return SourceFile, "source file of the workspace",
		"compare it on both machines (git log -1 -- " + path + "; git status; git check-attr -a " + path + "), and bring both to one revision"
}

// inputCause adds an input that differs by itself.
func (n *analysis) inputCause(i int, at ref, c change, tool bool) {
	path := n.text(at)
	maker := ""
	if by, made := n.maker(at, c); made && by != i {
		maker = n.describe(by)
	}
	kind, origin, next := n.kindOfFile(path, maker)
	out := Cause{Kind: kind, Subject: path, A: n.show(c.a), B: n.show(c.b), Origin: origin, Next: next, Withheld: n.secretFile(path)}
	switch {
	case c.a == 0:
		out.Change = surplus
	case c.b == 0:
		out.Change = missing
	}
	if c.a != 0 && c.b != 0 && n.tag(c.a) != n.tag(c.b) || n.isFolder(c) {
		out.Kind = FileType
		out.Next = "make it the same kind of file on both machines (git config core.symlinks, copies that follow links); then: " + next
	} else if tool && kind != StatusFile {
		out.Kind = ToolFile
		out.Origin = "tool that the action runs: " + origin
		out.Next = "use one tool on both machines, from a pinned repository or built from source; " + next
	}
	n.add(i, out)
}

// isFolder reports that a file of one side is a folder on the other.
func (n *analysis) isFolder(c change) bool {
	if c.a != 0 && c.b != 0 {
		return false
	}
	folder := n.text(c.path) + "/"
	for at, _ := n.find(n.changes, folder); at < len(n.changes) && strings.HasPrefix(n.text(n.changes[at].path), folder); at++ {
		if (n.changes[at].a == 0) != (c.a == 0) {
			return true
		}
	}
	return false
}

// inOtherFile reports that a file lies in what is a file on the other side.
func (n *analysis) inOtherFile(c change) bool {
	if c.a != 0 && c.b != 0 {
		return false
	}
	for path := n.text(c.path); ; {
		end := strings.LastIndexByte(path, '/')
		if end <= 0 {
			return false
		}
		path = path[:end]
		if at, found := n.find(n.changes, path); found && (n.changes[at].a == 0) != (c.a == 0) {
			return true
		}
	}
}

// fromRunfiles takes a path in a tree of runfiles to that of the artifact.
func (n *analysis) fromRunfiles(path ref) ref {
	text := n.text(path)
	tree, rest, ok := strings.Cut(text, ".runfiles/")
	if !ok {
		return path
	}
	repository, below, ok := strings.Cut(rest, "/")
	if !ok {
		return path
	}
	source := below
	if repository != n.logA.workspace && repository != n.logB.workspace {
		source = "external/" + repository + "/" + below
	}
	if c := configurationOf(tree); c != "" {
		generated := n.keepText(outputs + c + "/bin/" + source)
		_, made := n.madeBy[generated]
		if !made {
			_, made = n.mapped[mappedFile{generated, anyContent}]
		}
		_, linked := n.links[generated]
		if made || linked {
			return generated
		}
	}
	return n.keepText(source)
}

// show is a file's content as far as it is logged.
func (n *analysis) show(r ref) string {
	if r == 0 {
		return ""
	}
	f := n.file(r)
	switch f.tag {
	case tagEmptyDir:
		return "empty folder"
	case tagSymlink:
		return "link to " + n.text(f.target)
	case tagMapping:
		return "runfiles link to " + n.text(f.target)
	}
	if f.size == 0 {
		return "empty file"
	}
	function := strings.ToLower(strings.ReplaceAll(cmp.Or(n.logA.hashFunction, n.logB.hashFunction, "digest"), "-", ""))
	return fmt.Sprintf("%s %s, %d bytes", function, hex.EncodeToString(n.items[f.digest]), f.size)
}

func (n *analysis) secretFile(path string) bool { return n.secrets.File == nil || n.secrets.File(path) }

func (n *analysis) secret(name, value string) bool {
	return value != "" && (n.secrets.Value == nil || n.secrets.Value(name, value))
}

// describe names a unit.
func (n *analysis) describe(i int) string {
	s := n.spawnOf(n.units[i])
	return strings.TrimSpace(n.text(s.mnemonic) + " " + n.text(s.label))
}

// named compares variables or properties.
func (n *analysis) named(i int, kind Kind, a, b ref) {
	type pair struct{ name, value ref }
	pairs := func(list ref) (out []pair) {
		name, have := ref(0), false
		for r := range n.each(list) {
			if have {
				out = append(out, pair{name, r})
			}
			name, have = r, !have
		}
		return out
	}
	left, right := pairs(a), pairs(b)
	for len(left) > 0 || len(right) > 0 {
		order := 0
		switch {
		case len(left) == 0:
			order = 1
		case len(right) == 0:
			order = -1
		default:
			order = slices.Compare(n.items[left[0].name], n.items[right[0].name])
		}
		switch {
		case order < 0:
			n.variable(i, kind, missing, n.text(left[0].name), n.text(left[0].value), "")
			left = left[1:]
		case order > 0:
			n.variable(i, kind, surplus, n.text(right[0].name), "", n.text(right[0].value))
			right = right[1:]
		default:
			if left[0].value != right[0].value {
				n.variable(i, kind, changed, n.text(left[0].name), n.text(left[0].value), n.text(right[0].value))
			}
			left, right = left[1:], right[1:]
		}
	}
}

func (n *analysis) variable(i int, kind Kind, change, name, a, b string) {
	c := Cause{Kind: kind, Subject: name, Change: change, A: a, B: b, Withheld: n.secret(name, a) || n.secret(name, b)}
	if kind == Platform {
		c.Origin = "execution property, from exec_properties of the target or the execution platform, or --remote_default_exec_properties"
		c.Next = "use the same execution platform and --remote_default_exec_properties on both machines"
		n.add(i, c)
		return
	}
	s := n.spawnOf(n.units[i])
	flag := "--action_env"
	switch {
	case n.text(s.mnemonic) == "TestRunner":
		flag = "--test_env"
	case strings.Contains(configurationOf(n.text(n.primary(s))), "-exec"):
		flag = "--host_action_env"
	}
	switch {
	case name == "PATH" || name == "LD_LIBRARY_PATH":
		c.Origin = "the shell that started Bazel, or " + flag + "=" + name
		c.Next = "put into .bazelrc: build --incompatible_strict_action_env"
		if name == "LD_LIBRARY_PATH" {
			c.Next += "; and unset LD_LIBRARY_PATH"
		}
	default:
		c.Origin = flag + "=" + name + " (in .bazelrc or on the command line; without a value it is that of the caller's shell), or the rule's own env"
		c.Next = "pin it in .bazelrc (build " + flag + "=" + name + "=VALUE), or take it out: bazel's --announce_rc shows where it comes from"
	}
	n.add(i, c)
}

// arguments compares command lines.
func (n *analysis) arguments(i int, a, b *spawn) {
	for _, d := range n.argued(a, b) {
		c := Cause{Kind: Argument, Subject: d.option, Change: d.change, A: d.a, B: d.b, Withheld: d.withheld,
			Origin: "command line of the action: its rule, or an option of Bazel that the rule passes on (--copt, --define, --compilation_mode, ...)",
			Next:   "compare the options of both builds (bazel info; --announce_rc), and on both: bazel aquery 'mnemonic(\"" + n.text(a.mnemonic) + "\", " + n.text(a.label) + ")'"}
		if d.absolute {
			c.Kind = AbsolutePath
			c.Subject = d.option
			c.Origin = "a path of the machine in the command line"
			c.Next = "let the rule pass paths relative to the execution root (File.path, $(location)), or map this one away (-ffile-prefix-map, -trimpath)"
		}
		n.add(i, c)
	}
}

func (n *analysis) execution(i int, a, b *spawn) {
	add := func(name string, x, y string) {
		if x != y {
			n.add(i, Cause{Kind: Execution, Subject: name, A: x, B: y, Origin: "execution requirements: tags of the target, --modify_execution_info, or the timeout of the test", Next: "use the same tags, --modify_execution_info and --test_timeout on both machines"})
		}
	}
	add("timeout in ms", strconv.FormatInt(a.timeout, 10), strconv.FormatInt(b.timeout, 10))
	add("may run remotely", strconv.FormatBool(a.remotable), strconv.FormatBool(b.remotable))
	add("may be cached", strconv.FormatBool(a.cacheable), strconv.FormatBool(b.cacheable))
	add("may be cached remotely", strconv.FormatBool(a.remoteCacheable), strconv.FormatBool(b.remoteCacheable))
}

func (n *analysis) declared(i int, a, b *spawn) {
	left, right := slices.Collect(n.each(a.listed)), slices.Collect(n.each(b.listed))
	for _, side := range []struct {
		have, other []ref
		change      string
	}{{left, right, missing}, {right, left, surplus}} {
		for _, r := range side.have {
			if !slices.Contains(side.other, r) {
				c := Cause{Kind: Declared, Subject: n.text(r), Change: side.change, Origin: "outputs that the rule declares for " + n.describe(i), Next: "use the same rule, attributes and options on both machines"}
				if side.change == missing {
					c.A = "declared"
				} else {
					c.B = "declared"
				}
				n.add(i, c)
			}
		}
	}
}

func (n *analysis) exit(i int, a, b *spawn) {
	text := func(s *spawn) string {
		return strings.TrimSpace(fmt.Sprintf("exit %d %s", s.exit, n.text(s.status)))
	}
	n.add(i, Cause{Kind: ExitStatus, Subject: n.describe(i), A: text(a), B: text(b),
		Origin: "inputs, command and environment are the same, the end is not",
		Next:   "run the action again on the machine where it failed (--sandbox_debug, --verbose_failures): it needs something that is not declared, such as time, network, memory or a file of the host"})
}

// unrecorded adds an action that does another thing although all that is logged of it is the same.
func (n *analysis) unrecorded(i int, a, b *spawn) {
	c := Cause{Kind: Unrecorded, Subject: n.describe(i), Suspects: []string{}}
	n.changes = n.setDiff(a.outputs, b.outputs, n.changes)
	if len(n.changes) > 0 {
		first := n.changes[0]
		path := n.text(first.path)
		c.A, c.B, c.Withheld = path+": "+cmp.Or(n.show(first.a), "absent"), path+": "+cmp.Or(n.show(first.b), "absent"), n.secretFile(path)
	}
	c.Origin = "inputs, command, environment and platform are the same, the outputs are not"
	if x, y := n.runner(a), n.runner(b); x != y {
		c.Origin += " (A: " + x + ", B: " + y + ")"
	}
	if n.text(a.mnemonic) == "TestRunner" {
		c.Next = "nothing, as long as no action reads it: logs of tests hold times. A test whose other outputs matter must not write the time into them"
		n.add(i, c)
		return
	}
	sources, status := n.sources(a)
	c.Suspects = n.unlisted(sources)
	c.Next = "build it twice on one machine (bazel clean between, caches off) and compare those logs: if they differ, the action itself is not deterministic (time, random numbers, order, PID); if they are equal, it sees something that "
	if n.logA.modes == nil || n.logB.modes == nil {
		c.Next += "no log records: the mode of a source file (give those of both machines with --modes-a and --modes-b, each made at the top of the workspace with " + listModes + "), a file or program of the host, the kernel"
	} else {
		c.Next += "neither the logs nor the listings of modes record: the mode of a file that is not in both listings, a file or program of the host, the kernel"
	}
	if status {
		c.Next = "it reads the workspace status: build with --nostamp first; then: " + c.Next
	}
	n.add(i, c)
}

// sources are the source files that an action reads, sorted; status says that it reads the workspace status, too.
func (n *analysis) sources(s *spawn) (paths []string, status bool) {
	paths = []string{}
	n.epoch++
	n.reach(s.inputs, n.inA, &n.a)
	n.filesOf(n.a, func(ref) bool { return true }, func(f ref) {
		path := n.text(n.artifact(n.file(f).path))
		switch kind, _, _ := n.kindOfFile(path, ""); {
		case kind == StatusFile:
			status = true
		case kind == SourceFile && n.file(f).tag == tagFile:
			paths = append(paths, path)
		}
	})
	slices.Sort(paths)
	return slices.Compact(paths), status
}

// unlisted are the files whose modes are not known on both sides.
func (n *analysis) unlisted(paths []string) []string {
	out := []string{}
	for _, path := range paths {
		if _, inA := n.logA.modes[path]; inA {
			if _, inB := n.logB.modes[path]; inB {
				continue
			}
		}
		out = append(out, path)
	}
	return out
}

// sourceModes adds, for an action of which all that is logged is the same but what came of it, the source files whose
// modes are known to differ, and reports whether there are any.
func (n *analysis) sourceModes(i int, s *spawn) bool {
	if n.logA.modes == nil || n.logB.modes == nil || n.text(s.mnemonic) == "TestRunner" && n.facets[i]&inExit == 0 {
		return false // logs of tests hold times
	}
	paths, _ := n.sources(s)
	unlisted := n.unlisted(paths)
	for _, path := range paths {
		a, inA := n.logA.modes[path]
		b, inB := n.logB.modes[path]
		if !inA || !inB || a == b {
			continue
		}
		n.add(i, Cause{Kind: SourceMode, Subject: path, A: fmt.Sprintf("mode %04o", a), B: fmt.Sprintf("mode %04o", b), Suspects: unlisted,
			Origin: "source file of the workspace; no log records modes, the listings given do: of all that is recorded of what the action reads, only modes differ",
			Next: "give it one mode on both machines (git ls-files -s " + path + " says which Git has: 100644, or 100755 after git update-index --chmod=+x; Git sees that bit with core.fileMode, all others come from the umask of the checkout), " +
				"or let the action set modes itself (install -m, tar --mode); where the outputs differ still, the action is not deterministic"})
	}
	return len(n.own[i]) > 0
}

func (n *analysis) runner(s *spawn) string {
	return cmp.Or(n.text(s.runner), "unknown runner")
}

func (n *analysis) onlyIn(i int) {
	u := n.units[i]
	s := n.spawnOf(u)
	c := Cause{Kind: OnlyInA, Subject: n.text(s.mnemonic), Change: missing, A: "ran", Origin: "no action of B is for the same target, mnemonic and output"}
	if u.a < 0 {
		c.Kind, c.Change, c.A, c.B = OnlyInB, surplus, "", "ran"
		c.Origin = "no action of A is for the same target, mnemonic and output"
	}
	c.Next = "build the same targets with the same options on both machines, each after bazel clean or with a new --output_base: Bazel logs only what its local action cache does not have"
	n.add(i, c)
}

// waiting makes a cause of a unit that reads an output of one that waits for it.
func (n *analysis) waiting(i, on int) {
	n.add(i, Cause{Kind: GeneratedFile, Subject: n.text(n.primary(n.spawnOf(n.units[on]))), Origin: "the logs say that actions wait for each other", Next: "give logs as Bazel wrote them, each of one build"})
}

// symlinkActions compares the links that Bazel itself makes, which only the compact form holds.
func (n *analysis) symlinkActions() {
	if n.logA.expanded() || n.logB.expanded() {
		return
	}
	inA := map[ref]symlink{}
	for _, s := range n.logA.symlinks {
		inA[s.out] = s
	}
	for _, s := range n.logB.symlinks {
		if other, both := inA[s.out]; both && other.in != s.in {
			n.lateral = append(n.lateral, Cause{Kind: Symlink, Subject: n.text(s.out), Change: changed, A: "link to " + n.text(other.in), B: "link to " + n.text(s.in),
				Origin: "symlink action " + strings.TrimSpace(n.text(s.mnemonic)+" "+n.text(s.label)), Next: "use the same options and toolchains on both machines: the rule links to another file"})
		}
	}
}
