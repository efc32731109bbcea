#!/usr/bin/env bash
# Builds the wheel: the command goes in as a native program beside the module, so that nothing starts Python to run it.
#
#   python/build_wheel.sh DIRECTORY [PROFILE]
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
profile=${2:-release}
data=python/zeropilot.data
target=$(cargo metadata --format-version 1 --no-deps --locked | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
built=$([ "$profile" = dev ] && echo debug || echo "$profile")

cargo build --locked --quiet -p zeropilot --profile "$profile"
rm -rf "$data"
mkdir -p "$data/scripts"
trap 'rm -rf "$data"' EXIT
cp "$target/$built/zeropilot" "$data/scripts/"
maturin build --locked --quiet --profile "$profile" --out "$out"
