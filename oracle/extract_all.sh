#!/usr/bin/env bash
# Writes knowledge/schema/<version>.json for every engine version that oracle/setup.sh installed.
#   oracle/extract_all.sh [OUTPUT_DIRECTORY]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../knowledge/schema}
source "$here/setup.sh"
mkdir -p "$out"
for version in $ENGINE_VERSIONS; do
  PYTHONPATH=$(engine_path "$version") "$ORACLE_PYTHON" "$here/extract_schema.py" "$out/$version.json"
  echo "$version -> $out/$version.json"
done
