"""The explicit list of inputs that the tool reads: part TAB logical path TAB file.

The tool never walks a sandbox or runfiles folder, where inputs are links.
"""

# Who can write to a remote cache can name any bytes as the outputs of an action, and Bazel
# believes it. Checks of such outputs are made on the machine that uses them.
VERIFY_HERE = {
    "no-remote-cache": "1",
    "supports-path-mapping": "1",
}

def below(file, prefix):
    """Returns the path of a file below prefix, or None if it lies elsewhere.

    Args:
      file: a File of any repository.
      prefix: a path below that repository's root, "" for the root.

    Returns:
      A slash path, the same in every configuration and for every canonical repository name.
    """
    path = file.short_path
    if path.startswith("../"):  # another repository: ../canonical_name/path
        path = path.split("/", 2)[2]
    if not prefix:
        return path
    if path.startswith(prefix + "/"):
        return path[len(prefix) + 1:]
    return None

def add_inputs(args, parts, runfiles = False):
    """Adds one line for each input.

    Args:
      args: an Args in the multiline format, which neither quotes nor escapes.
      parts: list of struct(part, files, prefix).
      runfiles: whether files are named as in runfiles instead of the exec root.
    """
    for part in parts:
        # The callback keeps Files, so that path mapping reaches them.
        args.add_all(
            part.files,
            map_each = _line(part.part, part.prefix, runfiles),
            allow_closure = True,
            expand_directories = False,
        )

def _line(part, prefix, runfiles):
    return lambda file: "\t".join([part, below(file, prefix), file.short_path if runfiles else file.path])
