#!/usr/bin/env bash
# Builds everything a release publishes for this machine's platform: the archive with the command, its completions and
# manual pages; the wheel; the list of what is in them (CycloneDX); checksums.
#
#   release/build.sh DIRECTORY
#
#   ZEROPILOT_CACHE  where tools are kept (default: the user's cache directory)
#   ZEROPILOT_GLIBC  build for this version of glibc or newer, such as 2.17, with zig as the linker
#                    (pip install ziglang cargo-zigbuild); otherwise for the one that is here
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
cache=${ZEROPILOT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/zeropilot}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
triple=$(rustc -vV | sed -n 's/^host: //p')
name=zeropilot-$version-$triple

python/build_wheel.sh "$out" release
command=$CARGO_TARGET_DIR/${ZEROPILOT_GLIBC:+$triple/}release/zeropilot

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/$name/completions" "$stage/$name/man/man1" "$stage/$name/man/zh_CN/man1"
cp "$command" README.md README.zh-CN.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$stage/$name/"
"$command" completions bash >"$stage/$name/completions/zeropilot.bash"
"$command" completions zsh >"$stage/$name/completions/_zeropilot"
"$command" completions fish >"$stage/$name/completions/zeropilot.fish"
"$command" --lang en man "$stage/$name/man/man1"
"$command" --lang zh man "$stage/$name/man/zh_CN/man1"
# The same sources give the same archive: no times, no owners, a fixed order.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -C "$stage" -cf - "$name" |
  gzip -9n >"$out/$name.tar.gz"

PATH=$cache/bin:$PATH
command -v cargo-cyclonedx >/dev/null || cargo install --locked --quiet --debug --root "$cache" cargo-cyclonedx
cargo cyclonedx --quiet --manifest-path crates/zeropilot/Cargo.toml --format json --spec-version 1.5 --override-filename sbom
mv crates/zeropilot/sbom.json "$out/$name.cdx.json"
find crates knowledge -name sbom.json -delete

(cd "$out" && sha256sum ./*.tar.gz ./*.whl ./*.json >SHA256SUMS)
ls -l "$out"
