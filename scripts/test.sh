#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Every test there is; what the CI runs. The last line is `N passed, N failed`; the one before it
# names tests that this machine cannot run, if there are any: these have not passed.
#   release      all tests: unit, scripts, system, clients
#   asan, tsan   unit tests and the quick system tests
#   fuzz         each fuzzer for a short while
# Environment: BLOOMERY_FUZZ_SECONDS (default 15); BLOOMERY_SEED of the random tests (default 1:
# a change is judged by the same cases as the one before it; BLOOMERY_SEED=$RANDOM tries others).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
jobs=$(nproc)
fuzz_seconds=${BLOOMERY_FUZZ_SECONDS:-15}
passed=0
failed=0
failures=$PWD/build/failures.log # told again at the end: a log is often read from there
skipped=$PWD/build/skipped.log
export GTEST_COLOR=no CTEST_OUTPUT_ON_FAILURE=1
export BLOOMERY_SEED=${BLOOMERY_SEED:-1}
mkdir -p build
: >"$failures"
: >"$skipped"

# Runs a part, says how long it took; a part that fails counts as one failed test.
part() { # name, command...
  local name=$1 started=$SECONDS
  shift
  echo "== $name"
  if "$@"; then
    echo "== $name: ok, $((SECONDS - started)) s"
  else
    echo "== $name: FAILED, $((SECONDS - started)) s" | tee -a "$failures"
    failed=$((failed + 1))
    return 1
  fi
}

build() { # preset, more options for the build...
  cmake --preset "$1" >"build/configure-$1.log" 2>&1 || {
    cat "build/configure-$1.log"
    return 1
  }
  cmake --build --preset "$1" --parallel "$jobs" "${@:2}"
}

# Runs ctest and adds what its report says to the sums.
run_ctest() { # preset, name of the report, jobs, ctest options...
  local preset=$1 parallel=$3 report=$PWD/build/ctest-$2.xml started=$SECONDS name=$2
  shift 3
  echo "== tests of $name"
  rm -f "$report"
  ctest --preset "$preset" --parallel "$parallel" --output-junit "$report" \
    --test-output-size-passed 4000000 --test-output-size-failed 4000000 "$@" || true
  local counts
  # Its output is where skipped tests are told.
  if ! counts=$(scripts/count_tests.py "$preset" "$report" "$failures" "$skipped"); then
    echo "no report of $name: $counts" | tee -a "$failures"
    failed=$((failed + 1))
    return
  fi
  read -r good bad <<<"$counts"
  passed=$((passed + good))
  failed=$((failed + bad))
  echo "== tests of $name: $good passed, $bad failed, $((SECONDS - started)) s"
}

# A crash leaves its input in build/fuzz-findings, to be put into the corpus.
run_fuzzer() { # path
  local name corpus seeds
  name=$(basename "$1")
  corpus=build/fuzz-corpus/$name
  mkdir -p "$corpus"
  seeds=("$corpus")
  [ -d "tests/fuzz/corpus/${name%_fuzzer}" ] && seeds+=("tests/fuzz/corpus/${name%_fuzzer}")
  "$1" -max_total_time="$fuzz_seconds" -timeout=10 -verbosity=0 -malloc_limit_mb=64 \
    -artifact_prefix="build/fuzz-findings/$name-" "${seeds[@]}"
}

# As many at once as there are processors.
fuzz_all() {
  local fuzzers names pids i
  mapfile -t fuzzers < <(find build/fuzz -maxdepth 4 -type f -name '*_fuzzer' -perm -u+x | sort)
  if [ ${#fuzzers[@]} -eq 0 ]; then
    echo 'no fuzzer was built' | tee -a "$failures"
    failed=$((failed + 1))
    return
  fi
  mkdir -p build/fuzz-findings
  while [ ${#fuzzers[@]} -gt 0 ]; do
    names=() pids=()
    for fuzzer in "${fuzzers[@]:0:jobs}"; do
      names+=("$(basename "$fuzzer")")
      run_fuzzer "$fuzzer" >"build/${names[-1]}.log" 2>&1 &
      pids+=($!)
    done
    fuzzers=("${fuzzers[@]:jobs}")
    for i in "${!pids[@]}"; do
      if part "fuzz ${names[i]}" wait "${pids[i]}"; then
        passed=$((passed + 1))
      else
        tail -n 60 "build/${names[i]}.log" | tee -a "$failures"
      fi
    done
  done
}

part 'packages' scripts/install_deps.sh test
part 'node packages' scripts/install_node_packages.sh

if part 'build release' build release; then
  # The system tests wait much of their time; two that watch the clock leave room for each other.
  run_ctest release release-calm 4 --label-regex calm
  run_ctest release release "$((jobs + 2))" --label-exclude calm
fi
for preset in asan tsan; do
  if part "build $preset" build "$preset"; then
    run_ctest "$preset" "$preset" "$jobs" --label-exclude release-only
  fi
done
if [ -e tests/fuzz/CMakeLists.txt ]; then
  # Only the fuzzers: the rest has been built three times by now.
  part 'build fuzz' build fuzz --target tests/fuzz/all && fuzz_all
fi

cat "$failures"
echo "== everything: $SECONDS s"
if [ -s "$skipped" ]; then
  echo "$(wc -l <"$skipped") skipped: $(paste -sd, "$skipped" | sed 's/,/, /g')"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
