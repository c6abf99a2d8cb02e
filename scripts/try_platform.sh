#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds this tree for another platform and tests the server, in a minimal root file system made by
# debootstrap. The server makes filters, is killed and starts again; the filters must still exist.
# Only the user root can run this script.
# Usage: scripts/try_platform.sh debian13|clang16|clang19|arm64|portable [FOLDER]
#   debian13  compiles the server in a minimal Debian 13 and runs the unit tests, then installs the
#             .deb in another minimal Debian 13 and tests the installed server
#   clang16   compiles the server with clang 16 in a minimal Debian 12, and runs the unit tests
#   clang19   compiles the server with clang 19 in a minimal Debian 13, and runs the unit tests
#   arm64     cross-compiles the server for arm64, and tests it under qemu
#   portable  unpacks the tarball of build/portable in a minimal Debian 13, and tests its server;
#             also checks that the tarball has the licence texts of its libraries
#
# For arm64, the script compiles against the packages of Debian 12. It also runs the unit tests of
# core/ and protocol/ under qemu. Then it installs the .deb in a minimal Debian 12 for arm64, and
# tests the installed server.
#
# FOLDER (default: build/try-PLATFORM) keeps the root file systems and the build for the next run.
# The last line is `PLATFORM: passed`, or `PLATFORM: skipped: REASON` if this machine lacks a needed
# tool. The exit status is 0 in both cases. BLOOMERY_DEBIAN_MIRROR is the URL of a Debian mirror.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
platform=${1:-}
case $platform in
  debian13 | clang16 | clang19 | arm64 | portable) ;;
  *)
    echo "usage: scripts/try_platform.sh debian13|clang16|clang19|arm64|portable [FOLDER]" >&2
    exit 2
    ;;
esac
folder=${2:-$top/build/try-$platform}
mirror=${BLOOMERY_DEBIAN_MIRROR:-http://deb.debian.org/debian}
mkdir -p "$folder"
folder=$(realpath "$folder")
root=$folder/root
emulator=/proc/sys/fs/binfmt_misc/bloomery-aarch64

skip() {
  echo "$platform: skipped: $1"
  exit 0
}

[ "$(id -u)" = 0 ] || skip 'only root can enter another root'
command -v debootstrap >/dev/null || skip 'there is no debootstrap'

# Makes a minimal Debian system in the folder $root. After a failure $root does not exist.
make_root() { # arguments: Debian suite, options of debootstrap
  local suite=$1
  shift
  [ ! -e "$root" ] || return 0
  rm -rf "$root.new"
  debootstrap --variant=minbase "$@" "$suite" "$root.new" "$mirror" >"$folder/root.log" 2>&1 ||
    skip "debootstrap cannot make a root of $suite; see $folder/root.log"
  echo '127.0.0.1 localhost' >"$root.new/etc/hosts"  # unit tests resolve localhost
  mv "$root.new" "$root"
}

# Registers qemu with the kernel (binfmt_misc) to start arm64 programs, until this script ends. The
# flag F makes the kernel keep qemu open, so the root file system needs no qemu. If the machine
# already has an emulator for arm64, nothing is registered.
mounted=
end_emulation() {
  [ ! -e "$emulator" ] || echo -1 >"$emulator"
  [ -z "$mounted" ] || umount "$mounted"
}
emulate_arm64() {
  local misc=${emulator%/*} entry magic ones mask
  trap end_emulation EXIT
  if [ ! -e "$misc/register" ]; then
    mount -t binfmt_misc none "$misc" 2>/dev/null ||
      skip 'binfmt_misc cannot be mounted: programs of arm64 cannot be started'
    mounted=$misc
  fi
  for entry in "$misc"/*; do
    ! grep -qs '^interpreter .*aarch64' "$entry" || return 0
  done
  # The first bytes of an arm64 ELF program, and the mask of the bits that the kernel compares.
  magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
  ones='\xff\xff\xff\xff\xff\xff\xff'
  mask="$ones\x00$ones\xff\xfe\xff\xff\xff"
  echo ":${emulator##*/}:M::$magic:$mask:$(command -v qemu-aarch64-static):F" >"$misc/register" ||
    skip 'binfmt_misc takes no emulator: programs of arm64 cannot be started'
}

# Makes a minimal arm64 system in the folder $root. The first stage of debootstrap unpacks the
# packages on this machine. The second stage configures them in the new system under qemu.
make_arm64_root() {
  [ ! -e "$root" ] || return 0
  rm -rf "$root.new"
  {
    debootstrap --arch=arm64 --foreign --variant=minbase bookworm "$root.new" "$mirror" &&
      chroot "$root.new" /debootstrap/debootstrap --second-stage
  } >"$folder/arm64-root.log" 2>&1 ||
    skip "debootstrap cannot make a root of arm64; see $folder/arm64-root.log"
  mv "$root.new" "$root"
}

# Runs a command in the root file system $root. There, /src is this tree, read-only, and /build is
# $folder/build. arguments: words of the command
inside() {
  mkdir -p "$root/src" "$root/build" "$folder/build"
  unshare --mount --fork sh -ec '
    mount --bind -o ro "$1" "$2/src"
    mount -o remount,bind,ro "$2/src"
    mount --bind "$3" "$2/build"
    mount -t proc proc "$2/proc"
    root=$2; shift 3
    exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C \
      DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
  ' - "$top" "$root" "$folder/build" "$@"
}

# Runs a smoke test of a server in the root file system $root. The server uses only a Unix socket.
# argument: command line of the server
smoke_test() {
  local program=$1
  cat >"$folder/build/smoke.sh" <<'SMOKE'
set -e
program=$1
data=$(mktemp -d)
server=
finish() { # ends the server, also after a failure
  [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
  rm -rf "$data"
}
trap finish EXIT
ask() { # sends a command over the Unix socket, and prints the first line of the reply
  printf '%s\r\n' "$1" | perl -MIO::Socket::UNIX -e '
    my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or exit 1;
    $s->print(scalar <STDIN>); $s->flush; print scalar <$s>;' "$data/socket" | tr -d '\r'
}
start() {
  $program --port 0 --unixsocket "$data/socket" --dir "$data" --appendonly yes >"$data/log" 2>&1 &
  server=$!
  for _ in $(seq 600); do
    [ "$(ask PING 2>/dev/null)" != +PONG ] || return 0
    kill -0 $server 2>/dev/null || break
    sleep 0.1
  done
  echo "the server is not ready:" && cat "$data/log"
  exit 1
}
expect() {
  answer=$(ask "$1")
  [ "$answer" = "$2" ] || { echo "$1: '$answer' instead of '$2'" && exit 1; }
}
$program --version
start
expect 'BF.RESERVE f 0.01 1000 DELETABLE' +OK
expect 'BF.ADD f item' :1
expect 'SETBIT bits 77 1' :0
expect 'BF.ADD g item' :1
kill -9 $server
wait $server 2>/dev/null || true
start
expect 'BF.EXISTS f item' :1
expect 'BF.DEL f item' '*1'
expect 'GETBIT bits 77' :1
expect 'BF.EXISTS g item' :1
expect SAVE +OK
kill $server
wait $server
server=
$program --check-rdb "$data/dump.rdb" >/dev/null
SMOKE
  inside sh /build/smoke.sh "$program"
}

# Options of cmake for the commit, the maintainer and the homepage. The root file system has no git,
# so the commit is read here. scripts/release.sh sets the maintainer, which every package needs.
named=(-D BLOOMERY_COMMIT="$(git -C "$top" rev-parse HEAD 2>/dev/null || true)"
  -D BLOOMERY_MAINTAINER="${BLOOMERY_MAINTAINER:-}"
  -D BLOOMERY_HOMEPAGE="${BLOOMERY_HOMEPAGE:-}")

compile() { # configures the build in /build/tree. arguments: options of cmake
  inside cmake -S /src -B /build/tree -G Ninja -D CMAKE_BUILD_TYPE=Release \
    -D BLOOMERY_GROUP_SOURCES=ON -D BLOOMERY_BENCH=OFF "${named[@]}" "$@" \
    >"$folder/configure.log" ||
    { cat "$folder/configure.log" && exit 1; }
}

build() {
  inside cmake --build /build/tree --parallel "$(nproc)" --target "$@" >"$folder/build.log" ||
    { tail -n 60 "$folder/build.log" && exit 1; }
}

# Compiles in the root file system $root and runs the unit tests, then a smoke test of the server.
# arguments: options of cmake
run_unit_tests() {
  inside /src/scripts/install_deps.sh run
  compile "$@"
  build bloomery-server bloomery-cluster unit_tests
  inside ctest --test-dir /build/tree --label-regex '^unit$' --parallel "$(nproc)" \
    --output-on-failure >"$folder/unit.log" || { tail -n 60 "$folder/unit.log" && exit 1; }
  smoke_test /build/tree/bloomery-server
}

# Packs the build of the root file system $root. Sets $package to the name of the .deb in
# $folder/build/pack. arguments: words before the command cpack
pack() {
  rm -rf "$folder/build/pack"
  inside "$@" cpack --config /build/tree/CPackConfig.cmake -B /build/pack >"$folder/pack.log" ||
    { cat "$folder/pack.log" && exit 1; }
  package=$(basename "$folder"/build/pack/*.deb)
}

# Installs the package $package in the root file system $root, and tests the installed server.
test_package() {
  inside apt-get update -qq
  inside apt-get install -qq -y --no-install-recommends "/build/pack/$package" >/dev/null
  smoke_test bloomery-server
}

# Checks that the tarball has the licence text of each library in it. This machine has built the
# tarball, so it knows the package of each library. argument: folder of the unpacked tarball
check_licenses() {
  local library package
  for library in "$1"/lib/bloomery/*; do
    for package in $(dpkg-query -S "*/${library##*/}" | sed 's/[:,].*//'); do
      [ ! -e "$1/share/doc/bloomery/licenses/$package.gz" ] || continue 2
    done
    echo "the tarball has ${library##*/} without its licence text" && exit 1
  done
}

case $platform in
  debian13)
    make_root trixie
    run_unit_tests
    pack env
    root=$folder/target
    make_root trixie
    test_package
    ;;
  clang16)
    make_root bookworm
    inside apt-get install -qq -y --no-install-recommends clang-16 >/dev/null
    run_unit_tests -D CMAKE_CXX_COMPILER=clang++-16
    ;;
  clang19)
    make_root trixie
    inside apt-get install -qq -y --no-install-recommends clang-19 >/dev/null
    run_unit_tests -D CMAKE_CXX_COMPILER=clang++-19
    ;;
  portable)
    tarball=$(ls -t "$top"/build/portable/bloomery-*.tar.gz 2>/dev/null | head -n 1 || true)
    [ -n "$tarball" ] || skip 'build/portable has no tarball: build that preset, then cpack'
    make_root trixie
    rm -rf "$folder/build/unpacked"
    mkdir -p "$folder/build/unpacked"
    tar -C "$folder/build/unpacked" --strip-components=1 -xzf "$tarball"
    check_licenses "$folder/build/unpacked"
    smoke_test /build/unpacked/bin/bloomery-server
    ;;
  arm64)
    # The cross-compiler is a program for this machine's architecture, because an arm64 compiler
    # would be slow under qemu. The arm64 libraries are in a separate root file system, because some
    # libraries cannot be installed for two architectures at once.
    command -v qemu-aarch64-static >/dev/null || skip 'there is no qemu-user-static'
    make_root bookworm
    inside dpkg --add-architecture arm64
    inside apt-get update -qq
    inside apt-get install -qq -y --no-install-recommends cmake ninja-build g++-aarch64-linux-gnu \
      dpkg-dev file libboost1.81-dev libcli11-dev >/dev/null
    inside apt-get install -qq -y --no-install-recommends \
      {libboost-json1.81-dev,libfmt-dev,libgmock-dev,libgtest-dev,libisal-dev}:arm64 \
      {libjemalloc-dev,liblzf-dev,libspdlog-dev,libssl-dev,libsystemd-dev,libxxhash-dev}:arm64 \
      prometheus-cpp-dev:arm64 >/dev/null
    mkdir -p "$root/usr/local/bin"
    cp "$(command -v qemu-aarch64-static)" "$root/usr/local/bin/"
    compile -D CMAKE_SYSTEM_NAME=Linux -D CMAKE_SYSTEM_PROCESSOR=aarch64 \
      -D CMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
      -D CMAKE_CROSSCOMPILING_EMULATOR=/usr/local/bin/qemu-aarch64-static
    build bloomery-server bloomery-cluster core_tests protocol_tests
    for tests in core_tests protocol_tests; do
      inside qemu-aarch64-static "/build/tree/tests/$tests" --gtest_brief=1
    done
    smoke_test 'qemu-aarch64-static /build/tree/bloomery-server'
    pack env DEB_HOST_ARCH=arm64
    emulate_arm64
    root=$folder/target
    make_arm64_root
    test_package
    ;;
esac
echo "$platform: passed"
