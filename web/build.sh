#!/usr/bin/env bash
# Builds the page into web/dist: the engine as WebAssembly, the JavaScript beside it, the page itself.
# The same sources and lock files give the same files.
#
#   ZEROPILOT_CACHE   where tools are kept (default: the user's cache directory)
#   CARGO_TARGET_DIR  where cargo builds (default: target)
set -euo pipefail
cd "$(dirname "$0")"
cache=${ZEROPILOT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/zeropilot}
root=$(cd .. && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
triple=wasm32-unknown-unknown

# Paths of this machine have no place in what is published.
remap="--remap-path-prefix=$root=zeropilot --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
sysroot=$(cd "$root" && rustc --print sysroot)
if [ -d "$sysroot/lib/rustlib/$triple" ]; then
  (cd "$root" && RUSTFLAGS=$remap cargo build --locked --quiet --profile wasm --target $triple -p zeropilot_wasm)
else
  # Debian: apt-get install rustc-web rust-web-src lld-19
  echo "no $triple in $sysroot: building with the standard library from Debian's rust-web-src" >&2
  (cd "$root" && RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 RUSTFLAGS="$remap -C linker=/usr/bin/wasm-ld-19" \
    cargo build --locked --quiet -Z build-std=std,panic_abort --target $triple --profile wasm -p zeropilot_wasm)
fi

# wasm-bindgen's library of the version in both lock files; kept, since it takes minutes.
version=$(sed -n '/^name = "wasm-bindgen-cli-support"$/{n;s/version = "\(.*\)"/\1/p}' bindgen/Cargo.lock)
grep -A1 '^name = "wasm-bindgen"$' "$root/Cargo.lock" | grep -q "\"$version\"" || {
  echo "web/bindgen has wasm-bindgen $version, the workspace another: make them the same" >&2
  exit 1
}
bindgen=$cache/bin/bindgen-$version
if [ ! -x "$bindgen" ]; then
  CARGO_TARGET_DIR=$cache/bindgen cargo build --locked --quiet --release --manifest-path bindgen/Cargo.toml
  mkdir -p "$cache/bin"
  cp "$cache/bindgen/release/bindgen" "$bindgen"
fi

[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --ignore-scripts --no-audit --no-fund --silent

rm -rf dist
mkdir -p dist/engine
"$bindgen" "$target/$triple/wasm/zeropilot_wasm.wasm" dist/engine
mv dist/engine/zeropilot_wasm_bg.wasm dist/zeropilot_wasm_bg.wasm
npx tsc --noEmit
npx esbuild src/main.ts src/worker.ts --bundle --format=esm --minify --target=es2022 --outdir=dist --log-level=warning \
  --legal-comments=linked
npx esbuild src/style.css --minify --outfile=dist/style.css --log-level=warning
cp src/index.html src/icon.svg dist/
rm -r dist/engine
total=0
for file in dist/*; do
  size=$(gzip -9 -c "$file" | wc -c)
  total=$((total + size))
done
echo "page: $total bytes compressed"
