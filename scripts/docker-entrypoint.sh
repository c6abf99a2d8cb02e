#!/bin/sh
# SPDX-License-Identifier: MIT
#
# How the container starts; the rules are those users know from the Redis and Valkey images:
# - a first argument that is an option or a *.conf file goes to bloomery-server
# - a server started by root gets its directory and then runs as the user bloomery
# - files it makes are its own only (umask 0077), unless the caller chose a umask
# - BLOOM_EXTRA_FLAGS, VALKEY_EXTRA_FLAGS and REDIS_ARGS are appended to the server's options
# - what the server only tells or checks (--version, --check-rdb …), and other commands (redis-cli,
#   sh), are run as they are
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
  # Neither find nor chown follows a link: a link in the data directory can name any file.
  find -P . \! -user bloomery -exec chown -h bloomery '{}' +
  exec setpriv --reuid=bloomery --regid=bloomery --clear-groups -- "$0" "$@"
fi

if [ "$(umask)" = 0022 ]; then
  umask 0077
fi

if [ "$is_server" = yes ]; then
  # Only the container's own network reaches the port, and publishing it is a decision; so the
  # default is open, as in the other images. What the file or the caller says later wins.
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
  # Words, not patterns: a bare * among the flags is meant as one.
  set -f
  # shellcheck disable=SC2086
  set -- "$@" $BLOOM_EXTRA_FLAGS $VALKEY_EXTRA_FLAGS $REDIS_ARGS
fi

exec "$@"
