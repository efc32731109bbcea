#!/usr/bin/env bash
# Builds, or reuses, the Python environment of the oracle: PyTorch, the newest supported DeepSpeed with the
# front ends, and the older engines side by side. Source it for its variables, or run it.
#
#   ZEROPILOT_ORACLE_HOME   where it lives (default: the user's cache directory)
#
# Adding an engine version: add it to ENGINE_VERSIONS, then run oracle/extract_all.sh.
set -euo pipefail

NEWEST_ENGINE=0.19.8
ENGINE_VERSIONS="0.14.5 0.15.4 0.16.9 0.17.6 0.18.9 0.19.8"
LOCK_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

ORACLE_HOME=${ZEROPILOT_ORACLE_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/zeropilot}
ORACLE_PYTHON=$ORACLE_HOME/engine/bin/python

# The directory to put on PYTHONPATH for a version; empty for the one in the environment itself.
engine_path() {
  if [ "$1" != "$NEWEST_ENGINE" ]; then echo "$ORACLE_HOME/versions/$1"; fi
}

install_engines() {
  local stamp=$ORACLE_HOME/engine/.installed
  if ! cmp -s "$LOCK_DIR/requirements.lock" "$stamp"; then
    mkdir -p "$ORACLE_HOME"
    python3 -m venv "$ORACLE_HOME/engine"
    # DeepSpeed's build needs torch, setuptools and wheel to be there already.
    "$ORACLE_PYTHON" -m pip install --quiet --no-deps $(grep -E '^(setuptools|wheel|pip)==' "$LOCK_DIR/requirements.lock")
    "$ORACLE_PYTHON" -m pip install --quiet $(grep -E '^(torch|numpy)==' "$LOCK_DIR/requirements.lock") \
      -c "$LOCK_DIR/requirements.lock"
    DS_BUILD_OPS=0 "$ORACLE_PYTHON" -m pip install --quiet --no-build-isolation -r "$LOCK_DIR/requirements.lock"
    cp "$LOCK_DIR/requirements.lock" "$stamp"
  fi
  local version
  for version in $ENGINE_VERSIONS; do
    local target=$ORACLE_HOME/versions/$version
    if [ "$version" = "$NEWEST_ENGINE" ] || [ -f "$target/.installed" ]; then continue; fi
    rm -rf "$target"
    DS_BUILD_OPS=0 "$ORACLE_PYTHON" -m pip install --quiet --no-deps --no-build-isolation \
      --target "$target" "deepspeed==$version"
    touch "$target/.installed"
  done
}

export DS_ACCELERATOR=cpu OMP_NUM_THREADS=1
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  install_engines
  echo "$ORACLE_PYTHON"
fi
