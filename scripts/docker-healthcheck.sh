#!/bin/sh
# SPDX-License-Identifier: MIT
#
# HEALTHCHECK of the container: asks the server that runs in it whether it serves. The port and TLS
# are those of the server's own arguments and configuration file.
# The server is process 1. If process 1 is an init, the server is the first process with one of
# the names bloomery-server, redis-server and valkey-server.
set -e

for process in /proc/[0-9]*; do
  words=$({ tr '\0' '\n' <"$process/cmdline" | head -n 2; } 2>/dev/null)
  case $words in
    *--health-check) continue ;; # skips processes that are health checks
  esac
  case ${words%%
*} in
    bloomery-server | redis-server | valkey-server | */bloomery-server | \
      */redis-server | */valkey-server)
      # Changes to the server's directory, because the path of its configuration file may be
      # relative.
      cd "$process/cwd" 2>/dev/null || true
      # shellcheck disable=SC2016
      exec xargs -0 -a "$process/cmdline" sh -c 'shift; exec bloomery-server --health-check "$@"' -
      ;;
  esac
done
echo 'no server runs in this container' >&2
exit 1
