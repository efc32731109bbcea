#!/usr/bin/env bash
# Installs the command as `cargo install zeropilot` will: from the packages that crates.io would get, and from nothing else of
# this checkout. Cargo finds them, and every crate of others, in a directory that stands for crates.io.
#
#   release/from_packages.sh DIRECTORY [OPTION...]   the command is DIRECTORY/bin/zeropilot; options go to `cargo install`,
#                                                    such as --debug
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What is not for crates.io says so.
mapfile -t names < <(cargo metadata --no-deps --locked --format-version 1 | python3 -c '
import json, sys
print(*(package["name"] for package in json.load(sys.stdin)["packages"] if package["publish"] != []), sep="\n")')
cargo package --locked --quiet --no-verify --allow-dirty --target-dir "$work/packages" "${names[@]/#/--package=}"

cargo vendor --locked --quiet --versioned-dirs "$work/crates" >/dev/null
python3 - "$work" "${names[@]}" <<'P'
import hashlib, json, pathlib, sys, tarfile

work, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
packages = sorted((work / "packages/package").glob("*.crate"))
assert len(packages) == len(names), (packages, names)
for package in packages:
    with tarfile.open(package) as archive:
        archive.extractall(work / "crates")
    # Cargo compares the lock file with this checksum, and here no file on its own.
    checksum = {"files": {}, "package": hashlib.sha256(package.read_bytes()).hexdigest()}
    (work / "crates" / package.stem / ".cargo-checksum.json").write_text(json.dumps(checksum))
print(f"{len(packages)} packages")
P

# Where nothing of this checkout is.
mkdir "$work/elsewhere"
cd "$work/elsewhere"
CARGO_TARGET_DIR=$work/target cargo install zeropilot --locked --offline --quiet --root "$out" \
  --config 'source.crates-io.replace-with="packages"' --config "source.packages.directory='$work/crates'" "$@"
"$out/bin/zeropilot" --version
