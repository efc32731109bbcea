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

extract() {
  export PYTHONPATH
  PYTHONPATH=$(engine_path "$1")
  "$ORACLE_PYTHON" "$here/extract_schema.py" "$out/$1.json"
  "$ORACLE_PYTHON" "$here/extract_constructors.py" > "$constructors/$1.json"
  echo "$1 -> $out/$1.json"
}

# As many at a time as there are processors; each imports an engine of its own.
running=()
for version in $ENGINE_VERSIONS; do
  extract "$version" &
  running+=($!)
  if [ "${#running[@]}" -ge "$(nproc)" ]; then
    wait "${running[0]}"
    running=("${running[@]:1}")
  fi
done
for job in "${running[@]}"; do wait "$job"; done
"$ORACLE_PYTHON" "$here/extract_environment.py" > "$environment"
