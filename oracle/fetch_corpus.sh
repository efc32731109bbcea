#!/usr/bin/env bash
# Downloads the public configs that docs/field-study.md and docs/parity.md are about: those of oracle/corpus.jsonl, each
# at its commit and with its SHA-256. Files that are there already stay; index.jsonl says where each comes from.
#
#   oracle/fetch_corpus.sh [--all] DIRECTORY
#
# Exit codes: 0 if at most 5% of the files cannot be had, since repositories disappear; with --all, only if none is
# missing. 1 otherwise, and if DIRECTORY has another file under a name of the list that could not be replaced. 2 for
# wrong arguments and missing programs.
#
#   ZEROPILOT_CORPUS_URL  where OWNER/NAME/COMMIT/PATH is found (default: https://raw.githubusercontent.com)
set -euo pipefail
# Bytes, so that names outside ASCII are encoded one by one.
export LC_ALL=C

tolerated=5
if [ "${1:-}" = --all ]; then
  tolerated=0
  shift
fi
if [ $# != 1 ] || [[ $1 == -* ]]; then
  echo "usage: oracle/fetch_corpus.sh [--all] DIRECTORY" >&2
  exit 2
fi
list=$(cd "$(dirname "$0")" && pwd)/corpus.jsonl
mkdir -p "$1"
directory=$(cd "$1" && pwd)
base=${ZEROPILOT_CORPUS_URL:-https://raw.githubusercontent.com}
command -v curl >/dev/null || { echo "curl is missing: install it" >&2; exit 2; }
if command -v sha256sum >/dev/null; then sha256=(sha256sum); else sha256=(shasum -a 256); fi

sum() { "${sha256[@]}" <"$1" | cut -d ' ' -f 1; }

# A path as part of a URL.
encoded() {
  local text=$1 out="" at char
  for ((at = 0; at < ${#text}; at++)); do
    char=${text:at:1}
    case $char in
      [A-Za-z0-9/._~-]) out+=$char ;;
      *) printf -v char '%d' "'$char" && printf -v char '%%%02X' $((char & 255)) && out+=$char ;;
    esac
  done
  printf '%s' "$out"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
line='^\{"file": "([^"\\/]+)", "repo": "([^"\\]+)", "path": "([^"\\]+)", "commit": "([0-9a-f]{40})", "sha256": "([0-9a-f]{64})"\}$'
files=() sources=() urls=() sums=()
while IFS= read -r entry; do
  [[ $entry =~ $line ]] || { echo "$list: not a line of the list: $entry" >&2; exit 2; }
  files+=("${BASH_REMATCH[1]}")
  sums+=("${BASH_REMATCH[5]}")
  sources+=("${entry%, \"sha256\": *}}")
  urls+=("$base/$(encoded "${BASH_REMATCH[2]}/${BASH_REMATCH[4]}/${BASH_REMATCH[3]}")")
done <"$list"

# Whether a file is that of a line.
is() { [ -f "$1" ] && [ "$(sum "$1")" = "${sums[$2]}" ]; }

wanted=()
for at in "${!files[@]}"; do
  if is "$directory/${files[at]}" "$at"; then continue; fi
  wanted+=("$at")
  printf 'url = "%s"\noutput = "%s"\n' "${urls[at]}" "$work/${files[at]}" >>"$work/requests"
done
echo "${#files[@]} files, $((${#files[@]} - ${#wanted[@]})) of them in $directory already"

declare -A answers=()
if [ ${#wanted[@]} != 0 ]; then
  # Its exit code is that of one transfer: each file is looked at instead.
  curl --config "$work/requests" --parallel --parallel-max 8 --globoff --location --fail --silent --no-progress-meter \
    --retry 3 --connect-timeout 20 --max-time 120 --write-out '%{http_code} %{filename_effective}\n' >"$work/answers" || true
  while read -r code got; do answers[$got]=$code; done <"$work/answers"
fi

missing=0 in_the_way=0
for at in "${wanted[@]}"; do
  file=${files[at]} got=$work/${files[at]}
  if is "$got" "$at"; then
    mv "$got" "$directory/$file"
    continue
  fi
  missing=$((missing + 1))
  sources[at]=""
  code=${answers[$got]:-000}
  case $code in
    2??) why="its SHA-256 is not ${sums[at]}" ;;
    000) why="no answer" ;;
    *) why="HTTP $code" ;;
  esac
  echo "missing: $file: $why: ${urls[at]}" >&2
  if [ -e "$directory/$file" ]; then
    in_the_way=$((in_the_way + 1))
    echo "  $directory/$file is another file: delete it, or tests read it" >&2
  fi
done

for source in "${sources[@]}"; do
  if [ -n "$source" ]; then printf '%s\n' "$source"; fi
done >"$work/index.jsonl"
mv "$work/index.jsonl" "$directory/index.jsonl"

echo "$((${#files[@]} - missing)) of ${#files[@]} files are in $directory, $missing missing"
if [ "$missing" != 0 ]; then
  echo "the field study needs all of them: set ZEROPILOT_FIELD_STUDY=0 for .ci/run" >&2
fi
[ "$in_the_way" = 0 ] && [ $((missing * 100)) -le $((${#files[@]} * tolerated)) ]
