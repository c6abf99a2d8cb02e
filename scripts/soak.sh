#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs a server under every kind of load for N minutes, after a warm-up of half a minute. The load
# includes saves, rewrites of the append log, a replica, keys that expire, windows that rotate and a
# dashboard that polls. The soak fails if memory grows by more than 1 MB a minute plus 1.5 MB. The
# 1.5 MB are allowed, because two samples may differ by as much without a leak. The soak also fails
# on an error-level log line and on a wrong reply. The last line is the verdict. The exit status is
# 0 if the soak passes.
# Usage: scripts/soak.sh [--minutes N]   (default 60; memory is not checked if N is below 1).
# BLOOMERY_SERVER names the server program. The default is the program of this tree, which is built
# if necessary.
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
