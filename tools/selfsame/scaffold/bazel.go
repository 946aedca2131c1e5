package scaffold

import (
	"github.com/bazelbuild/buildtools/build"
)

// What a new workspace asks for; a test holds these against Selfsame's own MODULE.bazel and .bazelversion.
const (
	version           = "0.1.0"
	rulesShellVersion = "0.6.1"
	bazelVersion      = "7.7.1"
)

// Modules are the names by which a workspace knows the modules that a package loads from.
type Modules struct{ Selfsame, RulesShell string }

// DefaultModules are the names where MODULE.bazel gives none of its own.
var DefaultModules = Modules{"selfsame", "rules_shell"}

// buildFile has a target for every public rule.
func buildFile(agent string, names Modules) []byte {
	load := func(module string, symbols ...string) *build.LoadStmt {
		l := &build.LoadStmt{Module: text(module), ForceCompact: len(symbols) == 1}
		for _, s := range symbols {
			l.From = append(l.From, &build.Ident{Name: s})
			l.To = append(l.To, &build.Ident{Name: s})
		}
		return l
	}
	f := &build.File{Path: "BUILD.bazel", Type: build.TypeBuild, Stmt: []build.Expr{
		block("The identity of "+agent+", as selfsame init made it: all data is synthetic. Put your own in its place.",
			"After a change of rows or evidence: bazel run @"+names.Selfsame+"//tools/reseal -- FOLDER FOLDER/database-fingerprint.json FOLDER/database-identity.json"),
		load("@"+names.RulesShell+"//shell:sh_binary.bzl", "sh_binary"),
		load("@"+names.Selfsame+"//rules:defs.bzl", "convergence_test", "drift_canary_test", "identity_manifest", "identity_profile",
			"identity_tree", "living_profile_test", "pinned_identity_test", "restart_canary_test"),
	}}
	rule := func(kind string, attrs ...build.Expr) *build.CallExpr {
		c := call(kind, attrs...)
		c.ForceMultiLine = true
		f.Stmt = append(f.Stmt, c)
		return c
	}
	for _, tree := range []string{"template", "runtime", "deployment"} {
		rule("identity_tree", set("name", text(tree)), set("srcs", glob(tree+"/**")), set("root", text(tree)))
	}
	noted(rule("identity_manifest",
		set("name", text("manifest")),
		set("constitution", text("constitution.json")),
		set("database_fingerprint", text("database-fingerprint.json")),
		set("database_identity", text("database-identity.json")),
		set("deployment_root", text(":deployment")),
		set("evidence", glob("evidence/**")),
		set("hermes_root", text(":runtime")),
		set("profile_template", text(":template")),
		set("source_root", call("package_name")),
	), "Everything that can change an answer, pinned in one file.")
	noted(rule("pinned_identity_test", set("name", text("is_pinned")), set("expect", text(pinnedFile)), set("manifest", text(":manifest"))),
		"Is it the identity that was committed? After a change that is meant, copy bazel-bin/.../manifest.json over "+pinnedFile+".")
	rule("identity_profile", set("name", text("profile")), set("manifest", text(":manifest")))
	noted(rule("sh_binary", set("name", text("answer")), set("srcs", list("deployment/answer.py"))),
		"The runtime: any program that speaks identity-runtime.v1 will do. It lies in a tree that is pinned.")
	noted(rule("restart_canary_test", set("name", text("restarts")), set("manifest", text(":manifest")),
		set("query", text("query.json")), set("runtime", text(":answer"))), "Is it the same agent after a restart?")
	rule("drift_canary_test", set("name", text("drifts")), set("inject", text("skills@first")), set("manifest", text(":manifest")),
		set("query", text("query.json")), set("runtime", text(":answer")))
	noted(rule("convergence_test", set("name", text("repair_converges")), set("rounds", text("rounds.json"))), "Did the repair really converge?")
	noted(rule("living_profile_test", set("name", text("memory_grows_from_evidence")), set("baseline", text("memory/baseline.json")),
		set("deltas", glob("memory/turns/*.json")), set("expect", text("memory/content.sha256")),
		set("expect_refused", &build.DictExpr{List: []*build.KeyValueExpr{{Key: text("digest_mismatch"), Value: text("1")}}}),
	), "Did it learn only from evidence?")
	return build.Format(f)
}

// moduleFile is the MODULE.bazel of a new workspace. The path names a checkout of Selfsame; "" leaves it to the registry.
func moduleFile(path string) []byte {
	f := &build.File{Path: "MODULE.bazel", Type: build.TypeModule}
	dep := func(name, version string) {
		f.Stmt = append(f.Stmt, call("bazel_dep", set("name", text(name)), set("version", text(version))))
	}
	dep("rules_shell", rulesShellVersion)
	dep("selfsame", version)
	if path != "" {
		override := call("local_path_override", set("module_name", text("selfsame")), set("path", text(path)))
		override.ForceMultiLine = true
		f.Stmt = append(f.Stmt, override)
	}
	return build.Format(f)
}

func noted[E build.Expr](e E, lines ...string) E {
	for _, l := range lines {
		e.Comment().Before = append(e.Comment().Before, build.Comment{Token: "# " + l})
	}
	return e
}

// block is a comment that belongs to no statement.
func block(lines ...string) build.Expr {
	b := &build.CommentBlock{}
	for _, l := range lines {
		b.After = append(b.After, build.Comment{Token: "# " + l})
	}
	return b
}

func text(value string) *build.StringExpr { return &build.StringExpr{Value: value} }

func list(values ...string) *build.ListExpr {
	l := &build.ListExpr{}
	for _, v := range values {
		l.List = append(l.List, text(v))
	}
	return l
}

func set(key string, value build.Expr) build.Expr {
	return &build.AssignExpr{LHS: &build.Ident{Name: key}, Op: "=", RHS: value}
}

func call(function string, args ...build.Expr) *build.CallExpr {
	return &build.CallExpr{X: &build.Ident{Name: function}, List: args}
}

// glob fails early where it matches nothing.
func glob(pattern string) *build.CallExpr {
	c := call("glob", list(pattern), set("allow_empty", &build.Ident{Name: "False"}))
	c.ForceMultiLine = true
	return c
}
