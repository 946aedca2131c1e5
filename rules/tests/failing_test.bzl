"""failing_test: the negative control of a test rule."""

def _failing_test_impl(ctx):
    launcher = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(launcher, """#!/usr/bin/env bash
status=0
{} || status=$?
echo "status $status, expected 1"
test "$status" -eq 1
""".format(ctx.executable.of.short_path), is_executable = True)
    return [DefaultInfo(
        executable = launcher,
        runfiles = ctx.attr.of[DefaultInfo].default_runfiles.merge(ctx.runfiles([ctx.executable.of])),
    )]

failing_test = rule(
    implementation = _failing_test_impl,
    doc = "Passes exactly when another test ends with status 1: what it checks does not hold.",
    attrs = {"of": attr.label(cfg = "target", executable = True, mandatory = True)},
    test = True,
)
