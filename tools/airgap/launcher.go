package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// inDebian are modules that Debian packages; its own rc file overrides all but these.
var inDebian = map[string]string{"rules_shell": "/usr/share/bazel/rules/shell"}

// writeRC writes airgap.bazelrc into dir, naming modules at their final place.
func writeRC(dir, final string) error {
	var rc strings.Builder
	fmt.Fprintf(&rc, `# Made by tools/airgap: what Bazel needs to know where the internet ends.
# Where the JNI parts of Debian's Bazel lie.
startup --host_jvm_args=-Djava.library.path=/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu
# The WORKSPACE suffix fetches.
common --noenable_workspace
# Every module is overridden below; asking for another must fail here, not on the network.
common --registry=file://%[1]s/registry
# The tests that start a Bazel of their own use this one.
build --test_env=SELFSAME_BAZEL=/usr/bin/bazel --test_env=SELFSAME_BAZELRC=%[1]s/airgap.bazelrc
# Debian's rc file keeps every sandbox for debugging.
build --nosandbox_debug
`, final)
	paths := map[string]string{}
	for name, path := range inDebian {
		paths[name] = path
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "registry" {
			paths[name] = filepath.Join(final, name)
		}
	}
	names := make([]string, 0, len(paths))
	for name := range paths {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(&rc, "common --override_module=%s=%s\n", name, paths[name])
	}
	return os.WriteFile(filepath.Join(dir, "airgap.bazelrc"), []byte(rc.String()), 0o644)
}

// launcherScript enters the Debian root with bubblewrap and starts its Bazel there. Folders of
// the host that the root does not bring itself keep their places, so that checkouts,
// caches and output roots have the same path on both sides.
//
// /proc is bound, not mounted anew: with a new one Bazel's own linux-sandbox cannot mount
// its /proc and Bazel falls back to a weaker sandbox without saying so.
const launcherScript = `#!/bin/sh
# Made by tools/airgap; starts Bazel inside %[1]s.
set -eu
root='%[1]s' modules='%[2]s' goroot='%[3]s'
workspace=${SELFSAME_WORKSPACE:-$PWD}
mkdir -p "$HOME"
unset LD_PRELOAD LD_LIBRARY_PATH
# Options of this script are collected in front of the user's arguments.
count=$#
for dir in /*; do
  case $dir in
    /bin|/boot|/dev|/etc|/lib|/lib32|/lib64|/libx32|/proc|/run|/sbin|/sys|/usr|/var) ;;
    *) if [ -d "$dir" ] && [ ! -L "$dir" ]; then set -- "$@" --bind "$dir" "$dir"; fi ;;
  esac
done
for dir in /var/tmp "$HOME" "$workspace" "$PWD"; do
  set -- "$@" --bind "$dir" "$dir"
done
for path in /etc/ssl /etc/resolv.conf /etc/hosts "$goroot" "$modules"; do
  if [ -e "$path" ]; then set -- "$@" --ro-bind "$path" "$path"; fi
done
# The property ends a server that was started in another root.
set -- "$@" --chdir "$PWD" /usr/bin/bazel --bazelrc="$modules/airgap.bazelrc" --host_jvm_args=-Dselfsame.root="$root"
i=0
while [ "$i" -lt "$count" ]; do
  set -- "$@" "$1"
  shift
  i=$((i + 1))
done
SELFSAME_GOROOT=$goroot GOPROXY=$(go env GOPROXY) GOSUMDB=$(go env GOSUMDB)
export SELFSAME_GOROOT GOPROXY GOSUMDB
# What "bazel run" starts may start a Bazel of its own.
export SELFSAME_BAZEL=/usr/bin/bazel SELFSAME_BAZELRC="$modules/airgap.bazelrc"
unset GOROOT GOFLAGS GOTOOLCHAIN GOBIN GOPATH GOMODCACHE GOCACHE
exec '%[4]s' --library-path '%[5]s' "$root/usr/bin/bwrap" --bind "$root" / \
  --dev-bind /dev /dev --dev-bind /proc /proc --bind /sys /sys --tmpfs /run "$@"
`

// writeLauncher writes the script that bazelw starts. It is the last thing made: where it
// is, everything is.
func writeLauncher(path, root, modules, goroot string) error {
	loaders, err := filepath.Glob(filepath.Join(root, "usr/lib*/ld-linux*"))
	if err != nil || len(loaders) == 0 {
		return fmt.Errorf("%s has no dynamic loader: %w", root, err)
	}
	libraries, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu"))
	if err != nil || len(libraries) == 0 {
		return fmt.Errorf("%s has no library folder: %w", root, err)
	}
	script := fmt.Sprintf(launcherScript, root, modules, goroot, loaders[0], libraries[0])
	temporary := path + unfinished
	if err := os.WriteFile(temporary, []byte(script), 0o755); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
