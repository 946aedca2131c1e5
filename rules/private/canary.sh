#!/usr/bin/env bash
# Made by a canary test rule. Runfiles are links into the build; the agent is started
# from a copy, whose content is held against the manifest that the build pinned.
set -euo pipefail
runfiles=$PWD
inputs=$TEST_TMPDIR/inputs
mkdir "$inputs"
while IFS=$'\t' read -r part logical file; do
  staged=$part/$logical
  mkdir -p "$inputs/$(dirname "$staged")"
  cp -L "$runfiles/$file" "$inputs/$staged"
  printf '%s\t%s\t%s\n' "$part" "$logical" "$staged" >>"$inputs/list"
done <%{inputs}
arguments=(%{args})
for ((i = 0; i < ${#arguments[@]}; i++)); do
  case ${arguments[i]} in
    --manifest | --query | --runtime) arguments[i + 1]=$runfiles/${arguments[i + 1]} ;;
  esac
done
cd "$inputs"
exec "$runfiles"/%{selfsame} canary run --input-list list "${arguments[@]}"
