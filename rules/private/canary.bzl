"""restart_canary_test and drift_canary_test: start an agent twice, and refuse to when it drifted."""

load(":command.bzl", "quoted")
load(":inputs.bzl", "add_inputs")
load(":providers.bzl", "IdentityManifestInfo")

def _canary_test_impl(ctx):
    info = ctx.attr.manifest[IdentityManifestInfo]
    listed = ctx.actions.declare_file(ctx.label.name + ".inputs")
    lines = ctx.actions.args()
    lines.set_param_file_format("multiline")
    add_inputs(lines, info.parts, runfiles = True)
    ctx.actions.write(listed, lines)

    runtime = ctx.attr.runtime[DefaultInfo]
    args = ["--manifest", info.manifest.short_path, "--timeout", "{}s".format(ctx.attr.timeout_seconds)]
    if runtime.files_to_run.executable:
        args += ["--runtime", runtime.files_to_run.executable.short_path]
    for argument in ctx.attr.runtime_args:
        args += ["--runtime-arg", argument]
    for pattern in ctx.attr.expect_change:
        args += ["--expect-change", pattern]
    files = [listed, info.manifest, ctx.executable._selfsame]
    if ctx.file.query:
        args += ["--query", ctx.file.query.short_path]
        files.append(ctx.file.query)
    inject = getattr(ctx.attr, "inject", None)
    if inject:
        args += ["--expect-drift", "--inject-drift", inject]

    launcher = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.expand_template(
        template = ctx.file._launcher,
        output = launcher,
        is_executable = True,
        substitutions = {
            "%{args}": " ".join([quoted(a) for a in args]),
            "%{inputs}": quoted(listed.short_path),
            "%{selfsame}": quoted(ctx.executable._selfsame.short_path),
        },
    )
    return [DefaultInfo(
        executable = launcher,
        runfiles = ctx.runfiles(files = files, transitive_files = info.inputs)
            .merge(runtime.default_runfiles)
            .merge(ctx.attr._selfsame[DefaultInfo].default_runfiles),
    )]

_ATTRS = {
    "expect_change": attr.string_list(
        doc = "Globs of profile files that a start may add or change. Default: none; any other change is drift.",
    ),
    "manifest": attr.label(
        doc = "identity_manifest of the agent (required).",
        mandatory = True,
        providers = [IdentityManifestInfo],
    ),
    "query": attr.label(
        doc = "identity-query.v1 to ask. Default: the fixed query to the agent of the manifest.",
        allow_single_file = [".json"],
    ),
    "runtime": attr.label(
        doc = "Program that speaks identity-runtime.v1, in any language. Default: the local responder.",
        default = "//canary/responder",
        cfg = "target",
        executable = True,
    ),
    "runtime_args": attr.string_list(
        doc = "Arguments of the runtime. Default: none.",
    ),
    "timeout_seconds": attr.int(
        doc = "How long one start may take. Default: 30.",
        default = 30,
    ),
    "_launcher": attr.label(
        default = "//rules/private:canary.sh",
        allow_single_file = True,
    ),
    "_selfsame": attr.label(
        default = "//tools/selfsame",
        # For the machine that the test runs on: where that is the one that builds, the tool is built once.
        cfg = config.exec("test"),
        executable = True,
    ),
}

restart_canary_test = rule(
    implementation = _canary_test_impl,
    doc = """Passes when two processes, each started from a newly compiled and verified profile, give the same answer.

The receipt (canary-receipt.v1, tier T2_runtime) is `canary-receipt.json` in the test's undeclared outputs.""",
    attrs = _ATTRS,
    test = True,
)

drift_canary_test = rule(
    implementation = _canary_test_impl,
    doc = """Passes when drift is detected before an answer, and nothing is started after it.

The receipt (canary-receipt.v1, tier T1_model, `goal_tier_satisfied` false) names the drifted surface.""",
    attrs = _ATTRS | {
        "inject": attr.string(
            doc = "SURFACE or SURFACE@first or SURFACE@second: what drifts, before which start. Default: the compiled SOUL.md before the second.",
            default = "compiled-profile/SOUL.md@second",
        ),
    },
    test = True,
)
