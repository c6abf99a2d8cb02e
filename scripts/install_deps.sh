#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Installs the missing Debian packages. Prints nothing if no package is missing.
# Tested on Debian 12 and 13; `test` on Debian 12 only, because Debian 13 has no clang-14. Ubuntu
# 24.04 has the package names of Debian 13, but is not tested.
# Usage: scripts/install_deps.sh [server|run|test]
#   server  packages to build and pack only the programs (cmake --preset server, cpack)
#   run     packages of `server`, and those for scripts/run.sh and to build the tests (default)
#   test    packages of `run`, and the tools and clients that the tests use
set -euo pipefail

# The package `file` is for cpack, which finds the Debian package's dependencies with this program.
server_packages=(
  build-essential ca-certificates cmake file libcli11-dev libfmt-dev libisal-dev libjemalloc-dev
  liblzf-dev libspdlog-dev libssl-dev libsystemd-dev libxxhash-dev ninja-build prometheus-cpp-dev
)
# Boost must be at least 1.81. The script installs the first of these pairs of packages that the
# system offers in version 1.81 or later.
boost_packages=("libboost-dev libboost-json-dev" "libboost1.81-dev libboost-json1.81-dev")
build_packages=(ccache libbenchmark-dev libgmock-dev libgtest-dev redis-tools)
test_packages=(
  chromium clang-14 clang-format-14 clang-tidy-14 debootstrap dpkg-dev e2fsprogs etcd-client
  etcd-server git golang-github-masterminds-sprig-dev golang-go
  golang-gopkg-yaml.v2-dev iproute2 libclang-rt-14-dev lld mount openssl php-cli php-redis procps
  prometheus
  prometheus-redis-exporter python3 python3-redis redis-sentinel redis-server ruby ruby-redis
  strace systemd systemd-container util-linux
)

packages=("${server_packages[@]}")
case ${1:-run} in
  server) ;;
  run) packages+=("${build_packages[@]}") ;;
  test) packages+=("${build_packages[@]}" "${test_packages[@]}") ;;
  *)
    echo "usage: $0 [server|run|test]" >&2
    exit 2
    ;;
esac

supported='Debian 12 and 13 (Ubuntu 24.04 and later should do, untested)'
[ "${1:-run}" != test ] || supported='Debian 12'
if ! command -v apt-get >/dev/null; then
  echo "$0: this system has no apt-get; supported: $supported." >&2
  echo "Install these libraries by hand: docs/platforms.md." >&2
  exit 1
fi

is_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]
}

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
has_boost=no
for pair in "${boost_packages[@]}"; do
  for package in $pair; do
    is_installed "$package" || continue 2
  done
  has_boost=yes
done
# Checks whether the commands exist and not whether Debian's packages are installed, because the
# nodejs package of another vendor may be installed. It contains npm, and conflicts with Debian's
# package npm.
if [ "${1:-run}" = test ]; then
  command -v node >/dev/null || missing+=(nodejs)
  command -v npm >/dev/null || missing+=(npm)
fi
[ ${#missing[@]} -gt 0 ] || [ $has_boost = no ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "missing: ${missing[*]} boost; run this script as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi

# The packages of etcd, redis-server, redis-sentinel and Prometheus start services, but the tests
# start these programs themselves. So the script creates a temporary policy-rc.d that exits with
# status 101, which prevents invoke-rc.d from starting services. An existing policy-rc.d is kept.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get -qq -y -o Acquire::Retries=3 "$@"
}
apt update

# Prints the version that apt would install. Prints nothing if apt does not know the package.
candidate() {
  apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: //p' | grep -v '^(none)$' || true
}

# Prints that this system does not offer $1, and ends the script.
unsupported() {
  local system
  system=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)
  echo "$0: ${system:-this system} has no $1; supported: $supported" >&2
  exit 1
}

# Succeeds if apt offers each of the given packages in version 1.81 or later.
offers_boost() {
  local package version
  for package in "$@"; do
    version=$(candidate "$package")
    [ -n "$version" ] && dpkg --compare-versions "$version" ge 1.81 || return 1
  done
}

if [ $has_boost = no ]; then
  chosen=
  for pair in "${boost_packages[@]}"; do
    # shellcheck disable=SC2086
    if [ -z "$chosen" ] && offers_boost $pair; then
      chosen=$pair
    fi
  done
  if [ -z "$chosen" ]; then
    unsupported 'Boost 1.81 or later, with libboost-json-dev'
  fi
  # shellcheck disable=SC2206
  missing+=($chosen)
fi
unknown=()
for package in "${missing[@]}"; do
  [ -n "$(candidate "$package")" ] || unknown+=("$package")
done
if [ ${#unknown[@]} -gt 0 ]; then
  unsupported "package ${unknown[*]}"
fi

echo "installing: ${missing[*]}"
apt install --no-install-recommends "${missing[@]}" >/dev/null

# Stops the services that this script has installed, and prevents their start at boot.
for service in etcd redis-server redis-sentinel prometheus prometheus-redis-exporter; do
  if [[ " ${missing[*]} " == *" $service "* ]] && command -v systemctl >/dev/null; then
    "${as_root[@]}" systemctl disable --now "$service" >/dev/null 2>&1 || true
  fi
done
