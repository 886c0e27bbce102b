#!/bin/bash
# Runs every test program and sums up: run.sh PROGRAM...
# A program is summed up by its last line `N passed, N failed`, which may go on with `, N skipped`, or by Criterion's
# "Synthesis" line. One that ends badly and reports no failure counts as one.
# ONLY=WORD: the programs whose path contains it.
set -u

passed=0 failed=0 skipped=0
broken=()
output=$(mktemp)
trap 'rm -f "$output"' EXIT

count() { # NAME STATUS PASSED FAILED SKIPPED
  local fails=$4
  if [ "$2" -ne 0 ] && [ "$fails" -eq 0 ]; then
    echo "$1: ended with status $2"
    fails=1
  fi
  [ "$fails" -eq 0 ] || broken+=("$1")
  passed=$((passed + $3)) failed=$((failed + fails)) skipped=$((skipped + $5))
}

run() {
  "$1" </dev/null 2>&1 | tee "$output"
  local status=${PIPESTATUS[0]} synthesis
  synthesis=$(sed 's/\x1b\[[0-9;]*m//g' "$output" | grep -a 'Synthesis: Tested:' | tail -1)
  if [[ $(tail -1 "$output") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
    count "$1" "$status" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[4]:-0}"
  elif [[ $synthesis =~ Passing:\ ([0-9]+)\ .*Failing:\ ([0-9]+)\ .*Crashing:\ ([0-9]+) ]]; then
    count "$1" "$status" "${BASH_REMATCH[1]}" $((BASH_REMATCH[2] + BASH_REMATCH[3])) 0
  else
    count "$1" "$((status ? status : 1))" 0 0 0
  fi
}

for program; do
  [[ $program == *"${ONLY:-}"* ]] || continue
  echo "== ${program##*/tests/}"
  run "$program"
done

[ $skipped -eq 0 ] || echo "$skipped skipped, each with its reason above"
for name in "${broken[@]}"; do
  echo "failed: $name"
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
