"""identity_manifest: pins what can change an agent's answer."""

load(":inputs.bzl", "VERIFY_HERE", "add_inputs", "below")
load(":providers.bzl", "IdentityManifestInfo", "IdentityTreeInfo")

# Which part of an input list an attribute fills.
_TREES = {
    "deployment_root": "deployment-root",
    "hermes_root": "hermes-root",
    "profile_template": "profile-template",
}
_DOCUMENTS = {
    "constitution": "constitution",
    "database_fingerprint": "database-fingerprint",
    "database_identity": "database-identity",
}

def _identity_manifest_impl(ctx):
    parts = []
    for attribute, part in _TREES.items():
        tree = getattr(ctx.attr, attribute)[IdentityTreeInfo]
        parts.append(struct(part = part, files = tree.files, prefix = tree.prefix))
    documents = {}
    for attribute, part in _DOCUMENTS.items():
        file = getattr(ctx.file, attribute)
        documents[part] = _logical(ctx, file)
        parts.append(struct(part = part, files = depset([file]), prefix = ctx.attr.source_root))
    for file in ctx.files.evidence:
        _logical(ctx, file)
    parts.append(struct(part = "source-root", files = depset(ctx.files.evidence), prefix = ctx.attr.source_root))
    inputs = depset(transitive = [p.files for p in parts])

    manifest = ctx.actions.declare_file(ctx.label.name + ".json")
    digest = ctx.actions.declare_file(ctx.label.name + ".json.sha256")
    behavior = ctx.actions.declare_file(ctx.label.name + ".behavior.json")
    provenance = ctx.actions.declare_file(ctx.label.name + ".provenance.json")
    verified = ctx.actions.declare_file(ctx.label.name + ".verified.json")

    listed = ctx.actions.args()
    listed.use_param_file("--input-list=%s", use_always = True)
    listed.set_param_file_format("multiline")
    add_inputs(listed, parts)

    generate = ctx.actions.args()
    generate.add_all(["--quiet", "manifest", "generate"])
    generate.add("--output", manifest)
    generate.add("--digest", digest)
    generate.add("--behavior-output", behavior)
    generate.add("--provenance", provenance)
    ctx.actions.run(
        mnemonic = "IdentityManifest",
        progress_message = "Pinning identity %{label}",
        executable = ctx.executable._selfsame,
        arguments = [generate, listed],
        inputs = inputs,
        outputs = [manifest, digest, behavior, provenance],
        execution_requirements = {"supports-path-mapping": "1"},
    )

    verify = ctx.actions.args()
    verify.add_all(["--quiet", "manifest", "verify", "--json"])
    verify.add("--manifest", manifest)
    verify.add("--digest", digest)
    verify.add("--behavior-manifest", behavior)
    verify.add("--provenance", provenance)
    verify.add("--output", verified)
    ctx.actions.run(
        mnemonic = "IdentityManifestVerify",
        progress_message = "Verifying identity %{label}",
        executable = ctx.executable._selfsame,
        arguments = [verify, listed],
        inputs = depset([manifest, digest, behavior, provenance], transitive = [inputs]),
        outputs = [verified],
        execution_requirements = VERIFY_HERE,
    )

    return [
        DefaultInfo(files = depset([manifest, digest, provenance])),
        OutputGroupInfo(
            behavior = depset([behavior]),
            digest = depset([digest]),
            _validation = depset([verified]),
        ),
        IdentityManifestInfo(
            manifest = manifest,
            digest = digest,
            behavior = behavior,
            provenance = provenance,
            inputs = inputs,
            parts = parts,
            documents = documents,
        ),
    ]

def _logical(ctx, file):
    path = below(file, ctx.attr.source_root)
    if path == None:
        fail("{}: {} is not below source_root {}; documents and evidence are named relative to it".format(ctx.label, file.short_path, ctx.attr.source_root))
    return path

identity_manifest = rule(
    implementation = _identity_manifest_impl,
    doc = """Pins an agent's identity in one canonical file.

Outputs `NAME.json` (identity-manifest.v1), `NAME.json.sha256` (manifest_sha256), `NAME.provenance.json`
and `NAME.behavior.json`. Output groups: `digest`, `behavior`. As a validation action all four are
rebuilt from the same inputs and compared; its result is never taken from a remote cache, whose outputs it checks. Nothing of the machine, the user, the time, the
checkout or the configuration is in any output.""",
    attrs = {
        "constitution": attr.label(
            doc = "identity-constitution.v1 (required).",
            allow_single_file = [".json"],
            mandatory = True,
        ),
        "database_fingerprint": attr.label(
            doc = "database-fingerprint.v1 (required).",
            allow_single_file = [".json"],
            mandatory = True,
        ),
        "database_identity": attr.label(
            doc = "database-identity.v1 (required).",
            allow_single_file = [".json"],
            mandatory = True,
        ),
        "deployment_root": attr.label(
            doc = "identity_tree of the deployment's code (required).",
            mandatory = True,
            providers = [IdentityTreeInfo],
        ),
        "evidence": attr.label_list(
            doc = "Evidence files that the database's rows cite by path. Default: none.",
            allow_files = True,
        ),
        "hermes_root": attr.label(
            doc = "identity_tree of the runtime's code (required).",
            mandatory = True,
            providers = [IdentityTreeInfo],
        ),
        "profile_template": attr.label(
            doc = "identity_tree of the profile template (required).",
            mandatory = True,
            providers = [IdentityTreeInfo],
        ),
        "source_root": attr.string(
            doc = "Folder below the repository's root that documents and evidence are named relative to. Default: the root.",
        ),
        "_selfsame": attr.label(
            default = "//tools/selfsame",
            cfg = "exec",
            executable = True,
        ),
    },
    provides = [IdentityManifestInfo],
)
