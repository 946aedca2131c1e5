"""The checkout's own text, as one filegroup that tests can read.

A glob cannot cross packages. This repository links every source file of the checkout, and
Bazel watches the folders that it listed, so a new file is seen too.
"""

_SKIPPED = [".bazelrc.user", ".git"]

def _checkout_impl(ctx):
    root = ctx.path(Label("//:MODULE.bazel")).dirname
    folders = [root]
    files = []

    # Starlark has no unbounded loop; no checkout comes near this bound.
    for _ in range(100000):
        if not folders:
            break
        for entry in folders.pop().readdir(watch = "yes"):
            name = entry.basename
            if name in _SKIPPED or name.startswith("bazel-"):
                continue
            if entry.is_dir:
                folders.append(entry)
            else:
                files.append(str(entry)[len(str(root)) + 1:])
    if folders:
        fail("the checkout has more folders than this rule walks")
    for path in files:
        # No package of this repository but its root: BUILD files keep their content, not their name's effect.
        ctx.symlink(root.get_child(path), "checkout/" + path + ".source")
    ctx.file("BUILD.bazel", """exports_files(["checkout/MODULE.bazel.source"])

filegroup(
    name = "checkout",
    srcs = glob(["checkout/**"]),
    visibility = ["//visibility:public"],
)
""")

_checkout = repository_rule(
    implementation = _checkout_impl,
    local = True,
    doc = "Links the files of the checkout, each with `.source` behind its name.",
)

def _sources_impl(_ctx):
    _checkout(name = "selfsame_sources")

sources = module_extension(
    implementation = _sources_impl,
    doc = "Brings `@selfsame_sources//:checkout`.",
)
