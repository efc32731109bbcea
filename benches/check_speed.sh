#!/usr/bin/env bash
# `zeropilot check` against the engine's own loader on the same files, both sides measured in one run:
#   1. the whole corpus: our process against a fresh Python that does it with the engine
#   2. per file: our time against the engine's loader in a warm process
# Prints both ratios beside their goals (500 and 20); with ZEROPILOT_SPEED=1 it fails below a floor.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../oracle/setup.sh"
binary=${CARGO_TARGET_DIR:-$here/../target}/release/zeropilot
corpus=${ZEROPILOT_CORPUS:?set it to a directory of configs}
exec "$ORACLE_PYTHON" "$here/check_speed.py" "$binary" "$corpus"
