#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Every figure that README and docs quote, ours beside redis-server in one run.
#   scripts/bench.sh               all of it, about 15 minutes
#   scripts/bench.sh --quick       a tenth of the work, coarser figures
#   scripts/bench.sh --only SECTION...   commands batches memory sparse creation growth threads
#                                        durability engine
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/install_deps.sh test
cmake --preset release >/dev/null
cmake --build --preset release --parallel "$(nproc)" \
  --target bloomery-server bloom_bench bloom_growth_bench hot_filter_load

items=100000000
server_options=()
sections=(commands batches memory sparse creation growth threads durability engine)
while [ $# -gt 0 ]; do
  case $1 in
    --quick)
      items=3000000
      server_options+=(--rounds 2 --scale 0.2)
      shift
      ;;
    --only)
      shift
      sections=("$@")
      break
      ;;
    *)
      echo "usage: scripts/bench.sh [--quick] [--only SECTION...]" >&2
      exit 2
      ;;
  esac
done

for section in "${sections[@]}"; do
  if [ "$section" = engine ]; then
    printf '\nThe engine in process, native against classic\n'
    build/release/bench/bloom_bench --items "$items"
    build/release/bench/bloom_growth_bench
  elif [ "$section" = durability ]; then
    python3 bench/durability_bench.py "${server_options[@]}"
  else
    python3 bench/server_bench.py "${server_options[@]}" --only "$section"
  fi
done
