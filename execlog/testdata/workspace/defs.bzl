"""Small rules whose actions show every kind of entry of an execution log."""

def _step_impl(ctx):
    if ctx.attr.folder:
        out = ctx.actions.declare_directory(ctx.label.name)
    else:
        out = ctx.actions.declare_file(ctx.label.name + ".txt")
    args = ctx.actions.args()
    args.add_all([out], expand_directories = False)
    args.add("-I" + ctx.var.get("root", "/home/alice/planted") + "/include")
    args.add_all(ctx.files.srcs)
    ctx.actions.run_shell(
        outputs = [out],
        inputs = ctx.files.srcs + ([ctx.version_file] if ctx.attr.stamped else []),
        tools = [t[DefaultInfo].files_to_run for t in ctx.attr.programs],
        command = "out=$1; shift 2; " + ctx.attr.command,
        arguments = [args],
        mnemonic = ctx.attr.mnemonic,
        execution_requirements = {"supports-path-mapping": ""},
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([out]))]

step = rule(
    implementation = _step_impl,
    attrs = {
        "command": attr.string(default = 'cat "$@" >$out'),
        "folder": attr.bool(),
        "mnemonic": attr.string(default = "Step"),
        "programs": attr.label_list(cfg = "exec"),
        "srcs": attr.label_list(allow_files = True),
        "stamped": attr.bool(),
    },
)

def _program_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = out, target_file = ctx.file.src, is_executable = True)
    return [DefaultInfo(executable = out, runfiles = ctx.runfiles(ctx.files.data))]

program = rule(
    implementation = _program_impl,
    attrs = {
        "data": attr.label_list(allow_files = True),
        "src": attr.label(allow_single_file = True),
    },
    executable = True,
)
