#!/usr/bin/env bash
# Builds, or reuses, the Python environment of the oracle: PyTorch, the newest supported DeepSpeed with the
# front ends, and the older engines side by side. Source it for its variables, or run it.
#
#   ZEROPILOT_ORACLE_HOME   where it lives (default: the user's cache directory)
#
# Needs a C++ compiler and Python's headers. Adding an engine version: add it to ENGINE_VERSIONS, then run
# oracle/extract_all.sh.
set -euo pipefail

NEWEST_ENGINE=0.19.8
ENGINE_VERSIONS="0.14.5 0.15.4 0.16.9 0.17.6 0.18.9 0.19.8"
# What the newest engine would otherwise compile where it is first used. Ranks would do so beside each other and inside
# the limits of a test, and one that is killed meanwhile leaves a lock behind for which all others wait for ever.
OPERATORS="CPU_ADAM FUSED_ADAM CPU_ADAGRAD CPU_LION SHM_COMM"
LOCK_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

ORACLE_HOME=${ZEROPILOT_ORACLE_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/zeropilot}
ORACLE_PYTHON=$ORACLE_HOME/engine/bin/python

# The directory to put on PYTHONPATH for a version; empty for the one in the environment itself.
engine_path() {
  if [ "$1" != "$NEWEST_ENGINE" ]; then echo "$ORACLE_HOME/versions/$1"; fi
}

locked() { grep -E "^($1)==" "$LOCK_DIR/requirements.lock"; }

has_libaio() { echo '#include <libaio.h>' | c++ -x c++ -fsyntax-only - 2>/dev/null; }

# The newest engine with its operators, compiled anew where they are for another compiler or processor.
install_newest_engine() {
  command -v c++ >/dev/null || { echo "no C++ compiler: install g++ and python3-dev" >&2; exit 1; }
  local operators=$OPERATORS libraries="" stamp=$ORACLE_HOME/engine/.operators wanted flags
  # DeepSpeed links libaio only where it compiles at run time.
  if has_libaio; then operators+=" AIO PIN_MEMORY" libraries="-Wl,--no-as-needed -laio"; fi
  wanted=$(locked 'deepspeed|torch'; echo "$operators"; c++ --version | head -n 1; grep -m 1 '^flags' /proc/cpuinfo || true)
  if [ "$wanted" = "$(cat "$stamp" 2>/dev/null)" ]; then return; fi
  rm -f "$stamp"
  mapfile -t flags < <(printf 'DS_BUILD_%s=1\n' $operators)
  # Without pip's cache, whose wheel may be one without operators.
  env PATH="$ORACLE_HOME/engine/bin:$PATH" LDFLAGS="$libraries" DS_BUILD_OPS=0 DS_ENABLE_NINJA=1 "${flags[@]}" \
    "$ORACLE_PYTHON" -m pip install --quiet --no-deps --no-build-isolation --no-cache-dir --force-reinstall \
    "$(locked deepspeed)"
  echo "$wanted" > "$stamp"
}

install_engines() {
  local stamp=$ORACLE_HOME/engine/.installed
  if ! cmp -s "$LOCK_DIR/requirements.lock" "$stamp"; then
    mkdir -p "$ORACLE_HOME"
    python3 -m venv "$ORACLE_HOME/engine"
    # DeepSpeed's build needs torch, setuptools and wheel to be there already.
    "$ORACLE_PYTHON" -m pip install --quiet --no-deps $(locked 'setuptools|wheel|pip')
    "$ORACLE_PYTHON" -m pip install --quiet $(locked 'torch|numpy') -c "$LOCK_DIR/requirements.lock"
    grep -v '^deepspeed==' "$LOCK_DIR/requirements.lock" |
      "$ORACLE_PYTHON" -m pip install --quiet --no-build-isolation -r /dev/stdin
    cp "$LOCK_DIR/requirements.lock" "$stamp"
  fi
  install_newest_engine
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
