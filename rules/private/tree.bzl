"""identity_tree: which files make a tree, and where its root is."""

load(":inputs.bzl", "below")
load(":providers.bzl", "IdentityTreeInfo")

def _identity_tree_impl(ctx):
    package = ctx.label.package
    prefix = "/".join([p for p in [package, ctx.attr.root] if p])
    for file in ctx.files.srcs:
        if file.is_directory:
            fail("{}: {} is a folder made by an action; list single files, so that each is named in the manifest".format(ctx.label, file.short_path))
        if below(file, prefix) == None:
            fail("{}: {} is not below {}; set root to the folder of this package that holds all of srcs".format(ctx.label, file.short_path, prefix or "the repository"))
    files = depset(ctx.files.srcs)
    return [
        DefaultInfo(files = files),
        IdentityTreeInfo(files = files, prefix = prefix),
    ]

identity_tree = rule(
    implementation = _identity_tree_impl,
    doc = """A tree of input files, such as a profile template or the code of a runtime.

Links in the source tree are refused by name when the tree is read, folders without files do
not exist for Bazel, and permission bits are not part of a tree.""",
    attrs = {
        "root": attr.string(
            doc = "Folder of this package that is the tree's root; \"\" (default) is the package itself.",
        ),
        "srcs": attr.label_list(
            doc = "The tree's files, usually a `glob`. Required, not empty; `allow_empty = False` on the glob says early that it matches nothing.",
            allow_empty = False,
            allow_files = True,
            mandatory = True,
        ),
    },
    provides = [IdentityTreeInfo],
)
