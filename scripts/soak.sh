#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Serves every kind of load for some minutes, after half a minute to warm up: with saves, rewrites,
# a replica, expiries, windows that turn and a dashboard that is polled. Judges at the end: no
# memory that grows by more than 1 MB a minute (and 1.5 MB, by which two moments differ), no
# error-level line in a log, no wrong reply. The last line is the verdict, the exit status 0 if it
# is good.
# Usage: scripts/soak.sh [--minutes N]   (default 60; below 1 memory is not judged).
# BLOOMERY_SERVER names another binary than the one of this tree, which is built if need be.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ -z "${BLOOMERY_SERVER:-}" ]; then
  "$top/scripts/install_deps.sh" run
  (
    cd "$top"
    cmake --preset release >/dev/null
    cmake --build --preset release --target bloomery-server --parallel "$(nproc)"
  )
fi
exec /usr/bin/python3 "$top/tests/system/operations/soak.py" "$@"
