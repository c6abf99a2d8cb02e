#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds the server if necessary and runs it in the foreground.
# Usage: scripts/run.sh [configuration file] [server options], e.g. scripts/run.sh --port 7000
# The server runs in build/data, which git ignores. Relative paths in options are relative to that
# folder, but the path of the configuration file is relative to the caller's directory.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
server=$top/build/release/bloomery-server

"$top/scripts/install_deps.sh" run
(
  cd "$top"
  mkdir -p build
  cmake --preset release >build/configure.log 2>&1 || {
    cat build/configure.log >&2
    exit 1
  }
  cmake --build --preset release --target bloomery-server --parallel "$(nproc)"
)

if [ $# -gt 0 ] && [[ $1 != -* ]]; then
  set -- "$(realpath "$1")" "${@:2}"
fi
data=$top/build/data
mkdir -p "$data"
cd "$data"

# --health-check prints the port on which a server with these options listens without TLS. If the
# first or last argument is `-`, the script does not run --health-check, which would read the
# configuration from the standard input. The server could then not read the configuration.
port=
if [ "${1:-}" != - ] && [ "${*: -1}" != - ]; then
  told=$("$server" --health-check "$@" --tls-port 0 2>/dev/null || true)
  if [[ $told =~ ^port\ ([0-9]+) ]]; then port=${BASH_REMATCH[1]}; fi
fi
if [ -n "$port" ]; then
  cat <<HINT

bloomery-server listens on port $port; Ctrl-C stops it. In another terminal:
  redis-cli -p $port BF.ADD visitors alice
  python3 -c 'import redis; print(redis.Redis(port=$port).bf().exists("visitors", "alice"))'

HINT
else
  cat <<HINT

bloomery-server says where it listens when it is ready, in its log; Ctrl-C stops it.

HINT
fi
exec "$server" "$@"
