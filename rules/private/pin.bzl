"""pinned_identity_test: the identity that is built, held against the one that was committed."""

load(":command.bzl", "COMMAND_ATTRS", "command_test")
load(":providers.bzl", "IdentityManifestInfo")

def _pinned_identity_test_impl(ctx):
    built = ctx.attr.manifest[IdentityManifestInfo].manifest
    return command_test(ctx, ["compare", "--json", ctx.file.expect.short_path, built.short_path], [ctx.file.expect, built])

pinned_identity_test = rule(
    implementation = _pinned_identity_test_impl,
    doc = """Passes when a manifest is the one that was committed.

It fails with a table of what differs, who owns it and what to do; the same as JSON (comparison.v1) is `result.json` in
the test's undeclared outputs. After a change that is meant, copy the built `NAME.json` over the committed file.""",
    attrs = COMMAND_ATTRS | {
        "expect": attr.label(
            doc = "The committed identity-manifest.v1 (required).",
            allow_single_file = [".json"],
            mandatory = True,
        ),
        "manifest": attr.label(
            doc = "The identity_manifest that is built (required).",
            mandatory = True,
            providers = [IdentityManifestInfo],
        ),
    },
    test = True,
)
