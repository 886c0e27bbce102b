#!/bin/bash
# `make fuzz`: runs each fuzzer for FUZZ_SECONDS on its corpus; what it finds stays in BUILD as crash-*.
#   fuzz.sh FUZZER...     names of programs in BUILD; the seeds of fuzz_NAME are tests/fuzz/corpus/NAME/
set -u
passed=0 failed=0
for fuzzer; do
  seeds=tests/fuzz/corpus/${fuzzer#fuzz_}
  grown=$BUILD/corpus/${fuzzer#fuzz_} # what it learns is kept out of the tree
  mkdir -p "$grown"
  places=("$grown")
  [ ! -d "$seeds" ] || places+=("$seeds")
  echo "== $fuzzer, ${FUZZ_SECONDS:=30} s"
  if "$BUILD/$fuzzer" -max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$BUILD/$fuzzer-" "${places[@]}" 2>&1 | tail -n 12; [ "${PIPESTATUS[0]}" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $fuzzer"
  fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
