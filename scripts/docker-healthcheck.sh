#!/bin/sh
# SPDX-License-Identifier: MIT
#
# HEALTHCHECK of the container: runs `bloomery-server --health-check` with the arguments of the
# server process, which give the port and the TLS options. The server process is the first process
# with the name bloomery-server, redis-server or valkey-server. It is process 1 if the container has
# no init.
set -e

for process in /proc/[0-9]*; do
  words=$({ tr '\0' '\n' <"$process/cmdline" | head -n 2; } 2>/dev/null)
  case $words in
    *--health-check) continue ;; # skips processes that run a health check
  esac
  case ${words%%
*} in
    bloomery-server | redis-server | valkey-server | */bloomery-server | \
      */redis-server | */valkey-server)
      # Changes to the server's working directory, because the path of its configuration file may
      # be relative.
      cd "$process/cwd" 2>/dev/null || true
      # shellcheck disable=SC2016
      exec xargs -0 -a "$process/cmdline" sh -c 'shift; exec bloomery-server --health-check "$@"' -
      ;;
  esac
done
echo 'no server runs in this container' >&2
exit 1
