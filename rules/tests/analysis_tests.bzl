"""Analysis tests: what the public rules declare, and what they refuse before anything runs."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//rules:defs.bzl", "IdentityManifestInfo", "IdentityProfileInfo", "IdentityTreeInfo", "identity_manifest", "identity_tree", "pinned_identity_test", "restart_canary_test")

def _names(files):
    return sorted([f.basename for f in files.to_list()])

def _action(env, mnemonic):
    found = [a for a in analysistest.target_actions(env) if a.mnemonic == mnemonic]
    asserts.equals(env, 1, len(found), "actions of mnemonic " + mnemonic)
    return found[0]

# Whatever an action makes, its check looks at; e2e/remote_cache shows what that is for.
def _all_verified(env, mnemonic):
    verified = _action(env, mnemonic + "Verify").inputs.to_list()
    for file in _action(env, mnemonic).outputs.to_list():
        asserts.true(env, file in verified, file.basename + " is verified")

def _tree_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[IdentityTreeInfo]
    asserts.equals(env, "fixtures/working-leo/leo-identity-v1/teleo-deployment", info.prefix)
    asserts.true(env, "deploy.yaml" in _names(info.files))
    return analysistest.end(env)

_tree_test = analysistest.make(_tree_impl)

def _manifest_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    info = target[IdentityManifestInfo]
    asserts.equals(env, ["leo.json", "leo.json.sha256", "leo.provenance.json"], _names(target[DefaultInfo].files))
    asserts.equals(env, ["leo.json.sha256"], _names(target[OutputGroupInfo].digest))
    asserts.equals(env, ["leo.behavior.json"], _names(target[OutputGroupInfo].behavior))
    asserts.equals(env, ["leo.verified.json"], _names(target[OutputGroupInfo]._validation))
    asserts.equals(env, "fixtures/working-leo/leo-identity-v1/leo-constitution-v1.json", info.documents["constitution"])
    _all_verified(env, "IdentityManifest")
    action = _action(env, "IdentityManifest")
    names = _names(action.inputs)
    for name in ["config.yaml", ".env", "prompt.py", "deploy.yaml", "role-charter.md", "leo-constitution-v1.json"]:
        asserts.true(env, name in names, name + " is an input")
    for name in ["stable-status.txt", "volatile-status.txt"]:
        asserts.false(env, name in names, name + " is no input")
    return analysistest.end(env)

_manifest_test = analysistest.make(_manifest_impl)

def _profile_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    asserts.true(env, target[IdentityProfileInfo].profile.is_directory)
    asserts.equals(env, ["leo.tree.sha256"], _names(target[OutputGroupInfo].digest))

    # That of the manifest is validated too.
    asserts.equals(env, ["leo.verified.json", "leo.verified.json"], _names(target[OutputGroupInfo]._validation))

    _all_verified(env, "IdentityProfile")

    # The folder is never the only output of its action.
    asserts.equals(env, ["leo", "leo.tree.sha256"], _names(_action(env, "IdentityProfile").outputs))
    return analysistest.end(env)

_profile_test = analysistest.make(_profile_impl)

def _canary_impl(ctx):
    env = analysistest.begin(ctx)
    runfiles = _names(analysistest.target_under_test(env)[DefaultInfo].default_runfiles.files)
    for name in ["leo.json", "config.yaml", "responder", "selfsame"]:
        asserts.true(env, name in runfiles, name + " is in the runfiles")
    return analysistest.end(env)

_canary_test = analysistest.make(_canary_impl)

def _failure_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, ctx.attr.message)
    return analysistest.end(env)

_failure_test = analysistest.make(
    _failure_impl,
    expect_failure = True,
    attrs = {"message": attr.string()},
)

_LEO = "//fixtures/working-leo:"

def _folder_impl(ctx):
    folder = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run_shell(outputs = [folder], command = "touch $1/file", arguments = [folder.path])
    return [DefaultInfo(files = depset([folder]))]

_folder = rule(implementation = _folder_impl)

def analysis_tests(name):
    """Declares the tests and the targets that they look at.

    Args:
      name: name of the test suite.
    """
    _tree_test(name = name + "_tree", target_under_test = _LEO + "teleo-deployment")
    _manifest_test(name = name + "_manifest", target_under_test = "//manifest:leo")
    _profile_test(name = name + "_profile", target_under_test = "//profile:leo")
    _canary_test(name = name + "_canary", target_under_test = ":leo_restarts")

    _folder(name = name + "_folder", tags = ["manual"])
    failures = {
        "document_elsewhere": "is not below source_root nowhere",
        "file_elsewhere": "is not below rules/tests/nowhere; set root",
        "made_folder": "is a folder made by an action",
        "no_manifest": "does not have mandatory providers",
        "no_pinned_manifest": "does not have mandatory providers",
        "no_tree": "does not have mandatory providers",
    }
    identity_tree(name = name + "_file_elsewhere_subject", srcs = ["analysis_tests.bzl"], root = "nowhere", tags = ["manual"])
    identity_tree(name = name + "_made_folder_subject", srcs = [name + "_folder"], tags = ["manual"])
    identity_manifest(name = name + "_document_elsewhere_subject", source_root = "nowhere", tags = ["manual"], **_inputs())
    identity_manifest(name = name + "_no_tree_subject", tags = ["manual"], **(_inputs() | {"hermes_root": _LEO + "evidence"}))
    restart_canary_test(name = name + "_no_manifest_subject", manifest = _LEO + "evidence", tags = ["manual"])
    pinned_identity_test(
        name = name + "_no_pinned_manifest_subject",
        expect = _LEO + "golden/leo-identity-manifest-v1.json",
        manifest = _LEO + "evidence",
        tags = ["manual"],
    )
    for failure, message in failures.items():
        _failure_test(
            name = "{}_{}".format(name, failure),
            message = message,
            target_under_test = ":{}_{}_subject".format(name, failure),
        )
    native.test_suite(
        name = name,
        tests = [":" + name + t for t in ["_tree", "_manifest", "_profile", "_canary"] + ["_" + f for f in failures]],
    )

def _inputs():
    return {
        "constitution": _LEO + "leo-identity-v1/leo-constitution-v1.json",
        "database_fingerprint": _LEO + "leo-identity-v1/leo-database-fingerprint-v1.json",
        "database_identity": _LEO + "leo-identity-v1/leo-database-identity-v1.json",
        "deployment_root": _LEO + "teleo-deployment",
        "hermes_root": _LEO + "hermes-runtime",
        "profile_template": _LEO + "profile-template",
    }
