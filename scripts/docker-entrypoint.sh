#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Starts the container by the rules that users know from the Redis and Valkey images. If the first
# argument is an option or a *.conf file, all arguments are passed to bloomery-server. If root
# starts the server, this script makes the user bloomery the owner of the data directory, and runs
# the server as that user. The server's files are readable only by its user (umask 0077), unless the
# caller chose a umask. BLOOM_EXTRA_FLAGS, VALKEY_EXTRA_FLAGS and REDIS_ARGS are appended to the
# server's options. They are split at white space only, so quotes in them have no meaning. Runs of
# bloomery-server that only print or check (--version, --check-rdb …) keep their user and their
# arguments, and so do other programs (redis-cli, sh).
set -e

# Succeeds if a configuration file, or a file that it includes, sets protected-mode.
# arguments: the file, and how deep includes are searched
sets_protected_mode() (
  if grep -Eqi "^[[:space:]]*[\"']?protected-mode[\"']?[[:space:]]" "$1" 2>/dev/null; then
    exit 0
  fi
  [ "$2" -gt 0 ] || exit 1
  # Splits the list of included paths at line ends only. A path may be a pattern.
  IFS='
'
  # shellcheck disable=SC2013
  for included in $(sed -nE "s/^[[:space:]]*[\"']?include[\"']?[[:space:]]+[\"']?//I; T
      s/[\"']?[[:space:]]*$//p" "$1" 2>/dev/null); do
    if sets_protected_mode "$included" $(($2 - 1)); then
      exit 0
    fi
  done
  exit 1
)

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
  # any file of the container. A file may be unchangeable, for example on a read-only mount.
  find -P . \! -user bloomery -exec chown -h bloomery '{}' + ||
    echo "docker-entrypoint.sh: some files in $PWD keep their owner" >&2
  exec setpriv --reuid=bloomery --regid=bloomery --clear-groups -- "$0" "$@"
fi

if [ "$(umask)" = 0022 ]; then
  umask 0077
fi

if [ "$is_server" = yes ]; then
  name=$1
  shift
  file=
  case ${1:-} in
    '' | -*) ;;
    *) file=$1 && shift ;;
  esac
  # The server reads standard input if the first or the last argument is `-`. This argument is
  # removed here, and appended after the last option below.
  reads_stdin=no
  if [ -z "$file" ] && [ "${1:-}" = - ]; then
    reads_stdin=yes
    shift
  else
    for last; do :; done
    if [ $# -gt 0 ] && [ "$last" = - ]; then
      reads_stdin=yes
      left=$#
      for word; do
        shift
        left=$((left - 1))
        [ $left -eq 0 ] || set -- "$@" "$word"
      done
    fi
  fi

  # Only the container's own network reaches the port, unless the user publishes the port. Protected
  # mode is therefore off by default, as in the images of Redis and Valkey. The caller's files and
  # options take precedence. Options override files, so the default is an option only if no file
  # sets protected-mode. A line before the caller's standard input has no such effect.
  default=option
  if [ -n "$file" ] && sets_protected_mode "$file" 5; then
    default=
  elif [ $reads_stdin = yes ]; then
    default=line
  fi
  [ "$default" != option ] || set -- --protected-mode no "$@"
  [ -z "$file" ] || set -- "$file" "$@"

  # Disables file name expansion, because a flag may contain a `*`.
  set -f
  # shellcheck disable=SC2086
  set -- "$name" "$@" $BLOOM_EXTRA_FLAGS $VALKEY_EXTRA_FLAGS $REDIS_ARGS
  [ $reads_stdin = no ] || set -- "$@" -
  if [ "$default" = line ]; then
    exec "$@" <<INPUT
protected-mode no
$(cat)
INPUT
  fi
fi

exec "$@"
