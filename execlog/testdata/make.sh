#!/usr/bin/env bash
# Makes the logs of this folder anew, with a real Bazel: execlog/testdata/make.sh
# Each log is of the same workspace with one thing changed; base is that with nothing changed. Takes some minutes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
bazel=${BAZEL:-$here/../../bazelw}
scratch=$(mktemp -d /var/tmp/selfsame-execlog.XXXXXX)
work=$scratch/w
# The output root of a machine is in no log; an empty override leaves out modules that an rc file names and this
# workspace has not.
startup=(--output_user_root="$scratch/root")
options=(--incompatible_strict_action_env --action_env=GREETING=hello --spawn_strategy=sandboxed --nostamp --lockfile_mode=off
  --override_module=gazelle= --override_module=package_metadata= --override_module=rules_go= --override_module=rules_shell=)
cleanup() {
  (cd "$work" 2>/dev/null && "$bazel" "${startup[@]}" shutdown >/dev/null 2>&1)
  chmod -R u+w "$scratch" && rm -rf "$scratch"
}
trap cleanup EXIT

fresh() {
  rm -rf "$work"
  cp -r "$here/workspace" "$work"
  cp "$here/../../.bazelversion" "$work"
  # Git keeps no other bit of a mode.
  chmod -R u=rwX,go=rX "$work"
  chmod 755 "$work"/*.sh
}

# modes NAME: lists the modes of the workspace's files, for --modes-a and --modes-b.
modes() { (cd "$work" && find . -type f -printf '%m %P\n') | LC_ALL=C sort -k 2 >"$here/logs/$1.modes"; }

# log NAME compact|json|binary [OPTION|TARGET]...: builds everything from nothing.
log() {
  local name=$1 form=$2 file
  shift 2
  file=$here/logs/$name.$form
  [[ $form != compact ]] || file+=.zst
  rm -f "$file"
  (cd "$work" && "$bazel" "${startup[@]}" clean && "$bazel" "${startup[@]}" build "${options[@]}" --execution_log_"$form"_file="$file" "${@:-//...}") >"$scratch/out" 2>&1 || {
    cat "$scratch/out"
    exit 1
  }
  echo "$file"
}

fresh
modes base
for form in compact json binary; do log base $form; done
log again compact
for form in compact json; do log environment $form --action_env=GREETING=hallo //...; done
for form in compact json; do log mapped $form --experimental_output_paths=strip //...; done
log path compact --define=root=/home/bob/work/planted //...
log opt compact --compilation_mode=opt //...
for form in compact json; do log fewer $form //:link //:mode; done
for side in a b; do
  log "stamp-$side" compact //:after_stamped
  log "random-$side" compact //:after_random
done
change() { echo "# changed" >>"$work/$1"; }
for kind in input:input.txt tool:tool.sh external:dep/data.txt runfiles:data.txt folder:other.txt; do
  fresh
  change "${kind#*:}"
  for form in compact json; do log "${kind%%:*}" $form; done
done
fresh
change input.txt
log mapped-input json --experimental_output_paths=strip //...
fresh
chmod 700 "$work/mode.txt"
modes mode
log mode compact
