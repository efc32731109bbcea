#!/usr/bin/env bash
# Writes knowledge/schema/<version>.json and knowledge/constructors/<version>.json for every engine version that
# oracle/setup.sh installed.
#   oracle/extract_all.sh [SCHEMA_DIRECTORY] [CONSTRUCTORS_DIRECTORY]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../knowledge/schema}
constructors=${2:-$here/../knowledge/constructors}
source "$here/setup.sh"
mkdir -p "$out" "$constructors"
for version in $ENGINE_VERSIONS; do
  PYTHONPATH=$(engine_path "$version") "$ORACLE_PYTHON" "$here/extract_schema.py" "$out/$version.json"
  PYTHONPATH=$(engine_path "$version") "$ORACLE_PYTHON" "$here/extract_constructors.py" > "$constructors/$version.json"
  echo "$version -> $out/$version.json"
done
