#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Starts the container by the rules that users know from the Redis and Valkey images:
# - a first argument that is an option or a *.conf file goes to bloomery-server
# - a server started by root takes ownership of its directory and then runs as the user bloomery
# - the server's files are readable only by its user (umask 0077), unless the caller chose a umask
# - BLOOM_EXTRA_FLAGS, VALKEY_EXTRA_FLAGS and REDIS_ARGS are appended to the server's options
# - commands that only print or check (--version, --check-rdb …), and other programs (redis-cli,
#   sh), run unchanged
set -e

[ $# -gt 0 ] || set -- bloomery-server
case $1 in
  -* | *.conf) set -- bloomery-server "$@" ;;
esac

case $1 in
  bloomery-server | redis-server | valkey-server)
    case ${2:-} in
      -v | --version | -h | --help | --check-* | --build-filter | --export-rdb | --health-check)
        is_server=no
        ;;
      *) is_server=yes ;;
    esac
    ;;
  *) is_server=no ;;
esac

if [ "$is_server" = yes ] && [ "$(id -u)" = 0 ]; then
  # Neither find nor chown follows a link, because a link in the data directory may name any file.
  find -P . \! -user bloomery -exec chown -h bloomery '{}' +
  exec setpriv --reuid=bloomery --regid=bloomery --clear-groups -- "$0" "$@"
fi

if [ "$(umask)" = 0022 ]; then
  umask 0077
fi

if [ "$is_server" = yes ]; then
  # Only the container's own network reaches the port, and the user decides whether to publish it.
  # Protected mode is therefore off by default, as in the images of Redis and Valkey. The caller's
  # options follow, so they take precedence.
  name=$1
  shift
  case ${1:-} in
    '' | -*)
      set -- "$name" --protected-mode no "$@"
      ;;
    *)
      file=$1
      shift
      if grep -Eqi '^[[:space:]]*protected-mode[[:space:]]' "$file" 2>/dev/null; then
        set -- "$name" "$file" "$@"
      else
        set -- "$name" "$file" --protected-mode no "$@"
      fi
      ;;
  esac
  # The flags are words, not patterns: a bare * must stay as it is.
  set -f
  # shellcheck disable=SC2086
  set -- "$@" $BLOOM_EXTRA_FLAGS $VALKEY_EXTRA_FLAGS $REDIS_ARGS
fi

exec "$@"
