"""living_profile_test: a history of turn reports, replayed."""

load(":command.bzl", "COMMAND_ATTRS", "command_test")

def _living_profile_test_impl(ctx):
    args = ["living", "replay", "--json", "--baseline", ctx.file.baseline.short_path, "--expect-file", ctx.file.expect.short_path]
    for reason, count in sorted(ctx.attr.expect_refused.items()):
        args += ["--expect-refused", "{}={}".format(reason, count)]
    args += [f.short_path for f in ctx.files.deltas]
    return command_test(ctx, args, [ctx.file.baseline, ctx.file.expect] + ctx.files.deltas)

living_profile_test = rule(
    implementation = _living_profile_test_impl,
    doc = """Passes when a history of turns comes to the expected content, in order, in other orders and doubled.

What each turn changed and what was refused (living-replay.v1) is `result.json` in the test's undeclared outputs.""",
    attrs = COMMAND_ATTRS | {
        "baseline": attr.label(
            doc = "living-baseline.v1 (required): owner, axes, caps, limits and the frozen scope.",
            allow_single_file = [".json"],
            mandatory = True,
        ),
        "deltas": attr.label_list(
            doc = "Turn reports (living-turn.v1), in order (required, not empty).",
            allow_empty = False,
            allow_files = [".json"],
            mandatory = True,
        ),
        "expect": attr.label(
            doc = "File with the content digest that the history must come to (required).",
            allow_single_file = True,
            mandatory = True,
        ),
        "expect_refused": attr.string_dict(
            doc = "How many claims must be refused, by reason. Default: none.",
        ),
    },
    test = True,
)
