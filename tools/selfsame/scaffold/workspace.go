package scaffold

import "slices"

// Workspace returns the files of a new workspace with one package, that of the agent. selfsame is the way from
// the workspace to a checkout of Selfsame, "" for the registry.
func Workspace(agent, selfsame string) ([]File, error) {
	files, err := Package(agent, DefaultModules)
	if err != nil {
		return nil, err
	}
	for i := range files {
		files[i].Path = agent + "/" + files[i].Path
	}
	return slices.Concat([]File{
		{".bazelrc", []byte(bazelrc), 0o644},
		{".bazelversion", []byte(bazelVersion + "\n"), 0o644},
		{"MODULE.bazel", moduleFile(selfsame), 0o644},
	}, files), nil
}

const bazelrc = `# Versions are pinned by MODULE.bazel; a lock file would differ between registries.
common --lockfile_mode=off
# Actions and tests see nothing of the caller's environment, host or network, and a new /tmp each.
build --incompatible_strict_action_env --nosandbox_default_allow_network --sandbox_fake_hostname --incompatible_sandbox_hermetic_tmp
# With a disk or remote cache: the same action is the same entry, whatever the configuration's output folder.
build --experimental_output_paths=strip
# Receipts that tests leave are files to look at.
test --nozip_undeclared_test_outputs --test_output=errors
`
