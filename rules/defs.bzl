"""Public rules of Selfsame: pin an agent's identity, compile its profile, restart it; judge repairs; replay memory.

```starlark
load("@selfsame//rules:defs.bzl", "identity_manifest", "identity_profile", "identity_tree", "restart_canary_test")
```
"""

load("//rules/private:canary.bzl", _drift_canary_test = "drift_canary_test", _restart_canary_test = "restart_canary_test")
load("//rules/private:convergence.bzl", _convergence_test = "convergence_test")
load("//rules/private:living.bzl", _living_profile_test = "living_profile_test")
load("//rules/private:manifest.bzl", _identity_manifest = "identity_manifest")
load("//rules/private:pin.bzl", _pinned_identity_test = "pinned_identity_test")
load("//rules/private:profile.bzl", _identity_profile = "identity_profile")
load(
    "//rules/private:providers.bzl",
    _IdentityManifestInfo = "IdentityManifestInfo",
    _IdentityProfileInfo = "IdentityProfileInfo",
    _IdentityTreeInfo = "IdentityTreeInfo",
)
load("//rules/private:tree.bzl", _identity_tree = "identity_tree")

IdentityManifestInfo = _IdentityManifestInfo
IdentityProfileInfo = _IdentityProfileInfo
IdentityTreeInfo = _IdentityTreeInfo
identity_manifest = _identity_manifest
identity_profile = _identity_profile
identity_tree = _identity_tree
pinned_identity_test = _pinned_identity_test
drift_canary_test = _drift_canary_test
restart_canary_test = _restart_canary_test
convergence_test = _convergence_test
living_profile_test = _living_profile_test
