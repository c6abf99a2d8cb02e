#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Serves every kind of load for some minutes, after a warm-up of half a minute. The load includes
# saves, rewrites, a replica, expiries, windows that rotate and a dashboard that is polled. The soak
# fails if memory grows by more than 1 MB a minute (plus 1.5 MB, the difference between two
# samples). It also fails on an error-level line in a log and on a wrong reply. The last line is the
# verdict; the exit status is 0 if the soak passes.
# Usage: scripts/soak.sh [--minutes N]   (default 60; below 1 memory is not checked).
# BLOOMERY_SERVER names another binary than the one of this tree, which is built if necessary.
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
