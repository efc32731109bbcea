#!/usr/bin/env bash
# Builds the wheel: the command goes in as a native program beside the module, so that nothing starts Python to run it.
#
#   python/build_wheel.sh DIRECTORY [PROFILE]
#
#   ZEROPILOT_CACHE  where maturin is kept if it is not on the path (default: the user's cache directory)
#   ZEROPILOT_GLIBC  see release/build.sh
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
profile=${2:-release}
data=python/zeropilot.data
tools=${ZEROPILOT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/zeropilot}/wheel-tools
target=$(cargo metadata --format-version 1 --no-deps --locked | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
built=$([ "$profile" = dev ] && echo debug || echo "$profile")

if ! command -v maturin >/dev/null; then
  [ -x "$tools/bin/python" ] || python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
  PATH=$tools/bin:$PATH
fi
build=(build)
zig=()
if [ -n "${ZEROPILOT_GLIBC:-}" ]; then
  triple=$(rustc -vV | sed -n 's/^host: //p')
  build=(zigbuild --target "$triple.$ZEROPILOT_GLIBC")
  zig=(--zig --target "$triple" --compatibility "manylinux_${ZEROPILOT_GLIBC/./_}")
  built=$triple/$built
fi
cargo "${build[@]}" --locked --quiet -p zeropilot --profile "$profile"
rm -rf "$data"
mkdir -p "$data/scripts"
trap 'rm -rf "$data"' EXIT
cp "$target/$built/zeropilot" "$data/scripts/"
maturin build --locked --quiet --profile "$profile" --out "$out" "${zig[@]}"
