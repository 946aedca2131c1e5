"""identity_profile: compiles what a manifest pins."""

load(":inputs.bzl", "VERIFY_HERE", "add_inputs")
load(":providers.bzl", "IdentityManifestInfo", "IdentityProfileInfo")

def _identity_profile_impl(ctx):
    info = ctx.attr.manifest[IdentityManifestInfo]
    profile = ctx.actions.declare_directory(ctx.label.name)
    digest = ctx.actions.declare_file(ctx.label.name + ".tree.sha256")
    verified = ctx.actions.declare_file(ctx.label.name + ".verified.json")

    listed = ctx.actions.args()
    listed.use_param_file("--input-list=%s", use_always = True)
    listed.set_param_file_format("multiline")
    add_inputs(listed, info.parts)

    # The digest is a file beside the folder: a folder alone can be cached empty.
    compile = ctx.actions.args()
    compile.add_all(["--quiet", "profile", "compile"])
    compile.add("--manifest", info.manifest)
    compile.add_all([profile], before_each = "--profile", expand_directories = False)
    compile.add("--digest", digest)
    ctx.actions.run(
        mnemonic = "IdentityProfile",
        progress_message = "Compiling profile %{label}",
        executable = ctx.executable._selfsame,
        arguments = [compile, listed],
        inputs = depset([info.manifest], transitive = [info.inputs]),
        outputs = [profile, digest],
        execution_requirements = {"supports-path-mapping": "1"},
    )

    # Files of a folder are staged as links and lose their modes: a list names them, and content
    # alone is verified.
    files = ctx.actions.args()
    files.use_param_file("--profile-list=%s", use_always = True)
    files.set_param_file_format("multiline")
    files.add_all([profile], map_each = _profile_line)
    verify = ctx.actions.args()
    verify.add_all(["--quiet", "profile", "verify", "--json"])
    verify.add("--manifest", info.manifest)
    verify.add("--digest", digest)
    verify.add("--output", verified)
    ctx.actions.run(
        mnemonic = "IdentityProfileVerify",
        progress_message = "Verifying profile %{label}",
        executable = ctx.executable._selfsame,
        arguments = [verify, files],
        inputs = [info.manifest, profile, digest],
        outputs = [verified],
        execution_requirements = VERIFY_HERE,
    )

    return [
        DefaultInfo(files = depset([profile, digest])),
        OutputGroupInfo(
            digest = depset([digest]),
            _validation = depset([verified]),
        ),
        IdentityProfileInfo(profile = profile, digest = digest, manifest = info),
    ]

def _profile_line(file):
    return file.tree_relative_path + "\t" + file.path

identity_profile = rule(
    implementation = _identity_profile_impl,
    doc = """Compiles a profile from a manifest into a folder.

Outputs the folder `NAME` and `NAME.tree.sha256`, its tree digest (selfsame-tree.v1). Output group:
`digest`. As a validation action the folder's exact set of files, their content and the digest are verified
against the manifest, never by a remote cache. A start verifies declared modes as well; Bazel does not keep modes.""",
    attrs = {
        "manifest": attr.label(
            doc = "identity_manifest to compile (required).",
            mandatory = True,
            providers = [IdentityManifestInfo],
        ),
        "_selfsame": attr.label(
            default = "//tools/selfsame",
            cfg = "exec",
            executable = True,
        ),
    },
    provides = [IdentityProfileInfo],
)
