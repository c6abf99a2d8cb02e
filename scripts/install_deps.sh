#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Installs the Debian 12 packages that are missing; prints nothing if all are installed.
# Usage: scripts/install_deps.sh [run|test]
#   run   packages that building and running the server needs (default)
#   test  the packages of run, and the tools and clients that the tests use
set -euo pipefail

build_packages=(
  build-essential ccache cmake ninja-build
  libbenchmark-dev libboost-json1.81-dev libboost1.81-dev libcli11-dev libfmt-dev
  libgmock-dev libgtest-dev
  libisal-dev libjemalloc-dev liblzf-dev libspdlog-dev libssl-dev libsystemd-dev libxxhash-dev
  prometheus-cpp-dev redis-tools
)
test_packages=(
  chromium clang-14 clang-format-14 clang-tidy-14 debootstrap dpkg-dev e2fsprogs etcd-client
  etcd-server git iproute2 libclang-rt-14-dev mount openssl php-cli php-redis procps prometheus
  prometheus-redis-exporter python3 python3-redis redis-sentinel redis-server ruby ruby-redis
  strace systemd systemd-container util-linux
)

packages=("${build_packages[@]}")
case ${1:-run} in
  run) ;;
  test) packages+=("${test_packages[@]}") ;;
  *)
    echo "usage: $0 [run|test]" >&2
    exit 2
    ;;
esac

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
# Any version of Node is enough. Debian's npm conflicts with nodejs of other packagers, which
# contains npm.
if [ "${1:-run}" = test ]; then
  command -v node >/dev/null || missing+=(nodejs)
  command -v npm >/dev/null || missing+=(npm)
fi
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "missing: ${missing[*]}; run this script as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi

# The packages of etcd, redis-server, redis-sentinel and Prometheus start services, but the tests
# start these programs themselves. invoke-rc.d asks policy-rc.d, whose 101 means "do not start". An
# existing policy stays in force.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi

echo "installing: ${missing[*]}"
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get -qq -y -o Acquire::Retries=3 "$@"
}
apt update
apt install --no-install-recommends "${missing[@]}" >/dev/null

# Disable the services at boot too, if this script installed them.
for service in etcd redis-server redis-sentinel prometheus prometheus-redis-exporter; do
  if [[ " ${missing[*]} " == *" $service "* ]] && command -v systemctl >/dev/null; then
    "${as_root[@]}" systemctl disable --now "$service" >/dev/null 2>&1 || true
  fi
done
