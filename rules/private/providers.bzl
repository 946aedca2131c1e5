"""What the rules tell each other."""

IdentityTreeInfo = provider(
    doc = "The files of one tree, each with its path in it.",
    fields = {
        "files": "depset of File: the tree's files, sources or single generated files, no folders",
        "prefix": "string: the tree's root as a path below the repository's root, \"\" for the root itself",
    },
)

IdentityManifestInfo = provider(
    doc = "A pinned identity and what it was made from.",
    fields = {
        "manifest": "File: identity-manifest.v1, canonical JSON",
        "digest": "File: manifest_sha256, the SHA-256 of the manifest's bytes in hex, and a newline",
        "behavior": "File: behavior-manifest.v1",
        "provenance": "File: identity-provenance.v1, bound to the manifest by its digest",
        "inputs": "depset of File: every file that was observed",
        "parts": "list of struct(part, files, prefix): the inputs by part of an input list",
        "documents": "dict from part to logical path: database-fingerprint, constitution, database-identity",
    },
)

IdentityProfileInfo = provider(
    doc = "A compiled profile.",
    fields = {
        "profile": "File: the folder",
        "digest": "File: the folder's tree digest (selfsame-tree.v1) in hex, and a newline",
        "manifest": "IdentityManifestInfo: what it was compiled from",
    },
)
