#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Measures every figure that README and docs/ quote, for this server and redis-server in one run.
#   scripts/bench.sh               all sections except curves, about 20 minutes
#   scripts/bench.sh --quick       less work in most sections; the figures are less exact
#   scripts/bench.sh --only SECTION...   these sections only, separated by commas or spaces
#   scripts/bench.sh [--quick] goals [--before SERVER] [--only TEXT]   a table of the goals
#   scripts/bench.sh [--quick] report [--peer NAME=COMMAND]...         a report with charts
#
# The sections are commands, batches, memory, sparse, creation, growth, threads, durability, engine,
# deletable, windows, many, builder, loading, tls, admin, cluster, limits, expiry, hugepages and
# curves. The section curves redraws the pictures in docs/plots, so it runs only by --only curves.
#
# `goals` prints for each performance goal the figure, the command, and whether the goal was met or
# missed. It takes about 40 minutes. SERVER is the server program of an earlier build. With --only,
# it measures only goals whose name or command contains TEXT.
#
# `report` writes build/report/report.md with the machine, the versions, the commands and the ratios
# of one run. It takes about 10 minutes. Each --peer adds a server to the table of commands. It also
# adds a table with the latencies p50, p99 and p99.9 of this peer at fixed request rates.
#
# RedisBloom is measured too if its module is found: REDISBLOOM_MODULE=/path/to/redisbloom.so
# Boost.Bloom is measured too if the build has its headers. To add the headers, configure the build
# once with their folder, or with several folders separated by semicolons:
#   cmake --preset release -DBLOOMERY_BOOST_BLOOM_INCLUDE=/path/to/bloom/include
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

items=100000000
engine_options=()
server_options=()
threads_options=()
scale_options=()
goals_options=()
sections=(commands batches memory sparse creation growth threads durability engine deletable windows
  many builder loading tls admin cluster limits expiry hugepages)
while [ $# -gt 0 ]; do
  case $1 in
    --quick)
      items=3000000
      engine_options+=(--quick)
      server_options+=(--rounds 2 --scale 0.2)
      threads_options+=(--rounds 2 --seconds 0.2)
      scale_options+=(--scale 0.2)
      shift
      ;;
    --only)
      shift
      IFS=', ' read -r -a sections <<<"$*"
      break
      ;;
    report)
      sections=(report)
      shift
      server_options+=("$@")
      break
      ;;
    goals)
      sections=(goals)
      shift
      goals_options=("$@")
      break
      ;;
    *)
      echo "usage: scripts/bench.sh [--quick]" \
        "[report [--peer NAME=COMMAND]... | goals [OPTION...] | --only SECTION...]" >&2
      exit 2
      ;;
  esac
done

scripts/install_deps.sh test
cmake --preset release >/dev/null
cmake --build --preset release --parallel "$(nproc)" \
  --target bloomery-server bloom_bench bloom_growth_bench engine_bench hot_filter_load

for section in "${sections[@]}"; do
  case $section in
    engine)
      printf '\nThe engine in process, native against classic\n'
      build/release/bench/bloom_bench --items "$items"
      build/release/bench/bloom_growth_bench
      printf '\nThe engine in process, beside Boost.Bloom if the build has its headers\n'
      build/release/bench/engine_bench "${engine_options[@]}"
      ;;
    report)
      python3 bench/report.py "${server_options[@]}"
      ;;
    goals)
      python3 bench/goals.py "${scale_options[@]}" "${goals_options[@]}"
      ;;
    expiry)
      python3 bench/expiry_bench.py "${scale_options[@]}"
      ;;
    hugepages)
      python3 bench/huge_pages_bench.py "${scale_options[@]}"
      ;;
    curves)
      # Draws the curves of docs/bloom_math.md. With --quick, the figures are written to build/ and
      # not to docs/, because they are too coarse for the page.
      cmake --build --preset release --target curves_bench
      if [ ${#engine_options[@]} -eq 0 ]; then
        build/release/bench/curves_bench >build/curves.csv
        mv build/curves.csv docs/plots/curves.csv
        python3 bench/curves.py
      else
        build/release/bench/curves_bench --quick | tee build/curves.csv
      fi
      ;;
    durability)
      python3 bench/durability_bench.py "${server_options[@]}"
      ;;
    deletable)
      cmake --build --preset release --target deletable_bench
      build/release/bench/deletable_bench "${engine_options[@]}"
      python3 bench/deletable_server_bench.py "${server_options[@]}"
      ;;
    windows)
      cmake --build --preset release --target window_bench
      build/release/bench/window_bench "${engine_options[@]}"
      python3 bench/window_server_bench.py "${server_options[@]}"
      ;;
    threads)
      python3 bench/threads.py "${threads_options[@]}"
      ;;
    tls)
      python3 bench/tls_bench.py
      ;;
    admin)
      python3 bench/admin_bench.py
      ;;
    cluster)
      if command -v etcd >/dev/null; then
        cmake --build --preset release --target bloomery-cluster
        python3 bench/cluster_bench.py "${server_options[@]}"
      else
        echo "cluster: skipped, etcd is not installed (Debian: etcd-server)"
      fi
      ;;
    limits)
      python3 bench/limits_bench.py "${server_options[@]}"
      ;;
    loading)
      python3 bench/load_bench.py
      ;;
    builder)
      python3 bench/builder_bench.py --items "$items"
      ;;
    *)
      python3 bench/server_bench.py "${server_options[@]}" --only "$section"
      ;;
  esac
done
