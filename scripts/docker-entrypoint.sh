#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Starts the container by the rules that users know from the Redis and Valkey images. If the first
# argument is an option or a *.conf file, all arguments are passed to bloomery-server. If root
# starts the server, this script makes the user bloomery the owner of the data directory, and runs
# the server as that user. The server's files are readable only by its user (umask 0077), unless the
# caller chose a umask. BLOOM_EXTRA_FLAGS, VALKEY_EXTRA_FLAGS and REDIS_ARGS are appended to the
# server's options. Runs of bloomery-server that only print or check (--version, --check-rdb …)
# keep their user and their arguments, and so do other programs (redis-cli, sh).
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
  # find and chown do not follow symbolic links, because a link in the data directory may point to
  # any file of the container.
  find -P . \! -user bloomery -exec chown -h bloomery '{}' +
  exec setpriv --reuid=bloomery --regid=bloomery --clear-groups -- "$0" "$@"
fi

if [ "$(umask)" = 0022 ]; then
  umask 0077
fi

if [ "$is_server" = yes ]; then
  # Only the container's own network reaches the port, unless the user publishes the port. Protected
  # mode is therefore off by default, as in the images of Redis and Valkey. The caller's options are
  # placed after `--protected-mode no`, so they take precedence.
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
  # Disables file name expansion, because a flag may contain a `*`.
  set -f
  # shellcheck disable=SC2086
  set -- "$@" $BLOOM_EXTRA_FLAGS $VALKEY_EXTRA_FLAGS $REDIS_ARGS
fi

exec "$@"
