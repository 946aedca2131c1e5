"""A test that is one call of the tool."""

COMMAND_ATTRS = {
    "_launcher": attr.label(
        default = "//rules/private:command.sh",
        allow_single_file = True,
    ),
    "_selfsame": attr.label(
        default = "//tools/selfsame",
        # For the machine that the test runs on: where that is the one that builds, the tool is built once.
        cfg = config.exec("test"),
        executable = True,
    ),
}

def command_test(ctx, args, files):
    """Makes the test's launcher.

    Args:
      ctx: context of a test rule that has COMMAND_ATTRS.
      args: arguments of the tool; files are named by short_path.
      files: list of File that they name.

    Returns:
      Providers of the test.
    """
    launcher = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.expand_template(
        template = ctx.file._launcher,
        output = launcher,
        is_executable = True,
        substitutions = {
            "%{command}": " ".join([quoted(a) for a in [ctx.executable._selfsame.short_path] + args]),
        },
    )
    return [DefaultInfo(
        executable = launcher,
        runfiles = ctx.runfiles(files = files + [ctx.executable._selfsame])
            .merge(ctx.attr._selfsame[DefaultInfo].default_runfiles),
    )]

def quoted(text):
    """Returns text as one word of a shell."""
    return "'" + text.replace("'", "'\\''") + "'"
