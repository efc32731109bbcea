#!/usr/bin/env bash
# Fuzzes each target for a while, keeps a minimised corpus of it for the next night, and prints a table. A target that
# fails does not stop the others.
#
#   fuzz/overnight.sh [SECONDS [TARGET...]]      (default: 3600 seconds of each target)
#
# Needs a nightly compiler (rustup toolchain install nightly) and builds cargo-fuzz if it is missing. Inputs that fail
# are in fuzz/artifacts, the whole output is in fuzz/target/overnight. The exit code is 1 if a target failed.
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:-3600}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "usage: fuzz/overnight.sh [SECONDS [TARGET...]]" >&2; exit 2; }
shift || true
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for file in fuzz_targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi
for target in "${targets[@]}"; do
  [ -f "fuzz_targets/$target.rs" ] || { echo "no target $target in fuzz/fuzz_targets" >&2; exit 2; }
done
command -v cargo-fuzz >/dev/null || cargo install --locked --debug cargo-fuzz
logs=target/overnight
mkdir -p "$logs"

# Where the first inputs of a target are: some read what another reads.
seeds() {
  case $1 in
    mend) echo seeds/config_syntax ;;
    memory) echo seeds/model_config ;;
    *) echo "seeds/$1" ;;
  esac
}

# A number that libFuzzer prints at the end.
final() { sed -n "s/^stat::$2: *//p" "$logs/$1.log" | tail -n 1; }

failed=0
rows=()
for target in "${targets[@]}"; do
  echo "$target: $seconds seconds" >&2
  corpus=corpus/$target
  mkdir -p "$corpus"
  given=("$corpus")
  if [ -d "$(seeds "$target")" ]; then given+=("$(seeds "$target")"); fi
  found=nothing
  if ! cargo +nightly fuzz run "$target" "${given[@]}" -- \
    "-max_total_time=$seconds" -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 >"$logs/$target.log" 2>&1; then
    failed=1
    found=$(grep -E 'panicked at|ERROR: |error(\[|:)' "$logs/$target.log" | head -n 1 | tr '|' '/' || true)
    found="**${found:-failed: see fuzz/$logs/$target.log}**"
    echo "$target failed: fuzz/$logs/$target.log" >&2
  # The inputs that a failure leaves are kept as they are.
  elif ! cargo +nightly fuzz cmin "$target" "$corpus" >"$logs/$target.cmin.log" 2>&1; then
    failed=1
    found="**its corpus cannot be minimised: see fuzz/$logs/$target.cmin.log**"
  fi
  covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$logs/$target.log" | tail -n 1)
  kept=$(find "$corpus" -type f | wc -l)
  rows+=("| \`$target\` | $(final "$target" number_of_executed_units) | ${covered:-} | $kept | $(final "$target" peak_rss_mb) | $found |")
done

printf '| target | executions | coverage | inputs kept | peak MB | found |\n| --- | ---: | ---: | ---: | ---: | --- |\n'
printf '%s\n' "${rows[@]}"
exit "$failed"
