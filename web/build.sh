#!/usr/bin/env bash
# Builds the page into web/dist: the engine as WebAssembly, the JavaScript beside it, the page itself, and what a static host needs.
# The same sources and lock files give the same files.
#
#   ZEROPILOT_CACHE     where tools are kept (default: the user's cache directory)
#   CARGO_TARGET_DIR    where cargo builds (default: target)
#   ZEROPILOT_WASM_STD  toolchain: the standard library that came with rustc; debian: the one in Debian's rust-web-src
#                       (default: the first that is there)
#   ZEROPILOT_PAGE_URL, ZEROPILOT_DOCS_URL, ZEROPILOT_SOURCE_URL
#                       where the page, the book and the source are published (default: nowhere; the page then has no such link)
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd .. && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
triple=wasm32-unknown-unknown

# Paths of this machine have no place in what is published.
remap="--remap-path-prefix=$root=zeropilot --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo --remap-path-prefix=$target=target"
sysroot=$(cd "$root" && rustc --print sysroot)
std=${ZEROPILOT_WASM_STD:-$(compgen -G "$sysroot/lib/rustlib/$triple/lib/libstd-*.rlib" >/dev/null && echo toolchain || echo debian)}
cargo=(cargo build --locked --quiet --profile wasm --target $triple -p zeropilot_wasm)
if [ "$std" = toolchain ]; then
  (cd "$root" && RUSTFLAGS=$remap "${cargo[@]}")
else
  # Debian's compiler with the standard library built from Debian's sources.
  source=$(realpath /usr/lib/rustlib/src/rust) || {
    echo "no $triple in $sysroot; either rustup target add $triple, or on Debian: apt-get install rustc-web rust-web-src lld-19" >&2
    exit 1
  }
  flags="$remap --remap-path-prefix=/usr/lib/rustlib/src/rust=rust --remap-path-prefix=$source=rust -C linker=/usr/bin/wasm-ld-19"
  (cd "$root" && RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags "${cargo[@]}" -Z build-std=std,panic_abort)
fi

bindgen=$(./bindgen.sh)
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --ignore-scripts --no-audit --no-fund --silent

rm -rf dist
mkdir -p dist/engine
"$bindgen" "$target/$triple/wasm/zeropilot_wasm.wasm" dist/engine
# These passes make the module smaller when it is compressed; wasm-opt's levels, -Oz too, make it larger.
node_modules/.bin/wasm-opt --enable-bulk-memory --enable-bulk-memory-opt --enable-sign-ext --enable-mutable-globals --enable-nontrapping-float-to-int \
  --enable-reference-types --enable-multivalue --remove-unused-module-elements --duplicate-function-elimination --dce --pick-load-signs --precompute \
  --optimize-instructions --merge-blocks --remove-unused-brs --remove-unused-names --simplify-locals-notee-nostructure --rse --vacuum \
  --duplicate-function-elimination dist/engine/zeropilot_wasm_bg.wasm -o dist/engine/zeropilot_wasm_bg.wasm
# The name of a file tells its content, so that hosts and browsers may keep it for good.
wasm=zeropilot-$(sha256sum dist/engine/zeropilot_wasm_bg.wasm | cut -c1-8 | tr a-f A-F).wasm
mv dist/engine/zeropilot_wasm_bg.wasm "dist/$wasm"
npx tsc --noEmit
bundle=(npx esbuild --bundle --minify --target=es2022 --outdir=dist "--entry-names=[name]-[hash]" --log-level=warning)
script=("${bundle[@]}" --format=esm --splitting "--chunk-names=part-[hash]" --legal-comments=linked)
named() { (cd dist && ls "$1"-????????."$2"); }
"${script[@]}" src/worker.ts
worker=$(named worker js)
"${script[@]}" src/main.ts "--define:WASM=\"$wasm\"" "--define:WORKER=\"$worker\""
"${bundle[@]}" src/style.css
cp src/icon.svg src/card.png dist/
page=${ZEROPILOT_PAGE_URL:-}
escaped() { printf '%s' "$1" | sed 's/&/\&amp;/g; s/"/\&quot;/g; s/[&|\\]/\\&/g'; }
sed -e "s|PAGE_URL|$(escaped "${page:+${page%/}/}")|g" -e "s|DOCS_URL|$(escaped "${ZEROPILOT_DOCS_URL:-}")|" \
  -e "s|SOURCE_URL|$(escaped "${ZEROPILOT_SOURCE_URL:-}")|" \
  -e "s|\"main.js\"|\"$(named main js)\"|" -e "s|\"style.css\"|\"$(named style css)\"|" -e "s|\"engine.wasm\"|\"$wasm\"|" src/index.html >dist/index.html
# Without the lists of single rows, which are in the book.
sed '/^## Every row/,/^## /{/^## Every row/d;/^## /!d}' ../docs/accuracy.md >dist/accuracy.txt
rm -r dist/engine
# What the browser keeps, told by its content: any change is another build.
version=$(cd dist && sha256sum -- * | sha256sum | cut -c1-16)
files=$(cd dist && printf '"%s",' *.html *.js *.css *.svg *.txt *.wasm)
npx esbuild src/offline.ts --bundle --format=iife --minify --target=es2022 --outfile=dist/offline.js --log-level=warning \
  "--define:BUILD=\"$version\"" "--define:FILES=[\"./\",${files%,}]"
node host.mjs
