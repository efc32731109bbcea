#!/usr/bin/env bash
# Writes knowledge/schema/<version>.json and knowledge/constructors/<version>.json for every engine version that
# oracle/setup.sh installed, and knowledge/environment.json for the newest.
#   oracle/extract_all.sh [SCHEMA_DIRECTORY] [CONSTRUCTORS_DIRECTORY] [ENVIRONMENT_FILE]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../knowledge/schema}
constructors=${2:-$here/../knowledge/constructors}
environment=${3:-$here/../knowledge/environment.json}
source "$here/setup.sh"
mkdir -p "$out" "$constructors"
for version in $ENGINE_VERSIONS; do
  PYTHONPATH=$(engine_path "$version") "$ORACLE_PYTHON" "$here/extract_schema.py" "$out/$version.json"
  PYTHONPATH=$(engine_path "$version") "$ORACLE_PYTHON" "$here/extract_constructors.py" > "$constructors/$version.json"
  echo "$version -> $out/$version.json"
done
"$ORACLE_PYTHON" "$here/extract_environment.py" > "$environment"
