#!/usr/bin/env bash
# Says where the tool is that writes the JavaScript beside the module: wasm-bindgen's own library, of the version in both
# lock files. It is built where it is missing and kept, since that takes minutes.
#
#   ZEROPILOT_CACHE  where tools are kept (default: the user's cache directory)
set -euo pipefail
cd "$(dirname "$0")"
cache=${ZEROPILOT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/zeropilot}
version=$(sed -n '/^name = "wasm-bindgen-cli-support"$/{n;s/version = "\(.*\)"/\1/p}' bindgen/Cargo.lock)
grep -A1 '^name = "wasm-bindgen"$' ../Cargo.lock | grep -q "\"$version\"" || {
  echo "web/bindgen has wasm-bindgen $version, the workspace another: make them the same" >&2
  exit 1
}
bindgen=$cache/bin/bindgen-$version
if [ ! -x "$bindgen" ]; then
  CARGO_TARGET_DIR=$cache/bindgen cargo build --locked --quiet --release --manifest-path bindgen/Cargo.toml
  mkdir -p "$cache/bin"
  cp "$cache/bindgen/release/bindgen" "$bindgen.new"
  mv "$bindgen.new" "$bindgen"
fi
echo "$bindgen"
