#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds this tree for another platform, in a bare root of its own, and tries the server. The server
# makes filters and is killed. The next start must find the filters. Only root can run this script.
# Usage: scripts/try_platform.sh debian13|arm64|portable [FOLDER]
#   debian13  compiled and started in a Debian 13
#   arm64     cross-compiled against arm64's packages of Debian 12, and started under qemu, as are
#             the unit tests of core/ and protocol/. Then its .deb is installed in a bare Debian 12
#             of arm64, and its server is tried
#   portable  the tarball of build/portable, unpacked in a bare Debian 13
#
# FOLDER keeps the roots and the build for the next time (default: build/try-PLATFORM).
# The last line is `PLATFORM: passed`, or `PLATFORM: skipped: REASON` where this machine lacks
# something. The exit status is 0 for both. BLOOMERY_DEBIAN_MIRROR names another mirror.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
platform=${1:-}
case $platform in
  debian13 | arm64 | portable) ;;
  *)
    echo "usage: scripts/try_platform.sh debian13|arm64|portable [FOLDER]" >&2
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

# Makes a minimal system. The root is either complete or absent.
make_root() { # arguments: suite, options of debootstrap
  local suite=$1
  shift
  [ ! -e "$root" ] || return 0
  rm -rf "$root.new"
  debootstrap --variant=minbase "$@" "$suite" "$root.new" "$mirror" >"$folder/root.log" 2>&1 ||
    skip "debootstrap cannot make a root of $suite; see $folder/root.log"
  mv "$root.new" "$root"
}

# The kernel starts programs of arm64 by qemu until this script ends. It keeps qemu open (F), so the
# root needs no qemu. If the machine has another emulator for them, that one is used.
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
  # The first bytes of a program of arm64, and the mask of the bits that count.
  magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
  ones='\xff\xff\xff\xff\xff\xff\xff'
  mask="$ones\x00$ones\xff\xfe\xff\xff\xff"
  echo ":${emulator##*/}:M::$magic:$mask:$(command -v qemu-aarch64-static):F" >"$misc/register" ||
    skip 'binfmt_misc takes no emulator: programs of arm64 cannot be started'
}

# Makes a minimal arm64 system. debootstrap unpacks it on this machine; the system configures itself
# under qemu.
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

# Runs a command in the root. The tree is at /src, read-only; $folder/build is at /build.
inside() {
  mkdir -p "$root/src" "$root/build" "$folder/build"
  unshare --mount --fork sh -c '
    mount --bind -o ro "$1" "$2/src" && mount -o remount,bind,ro "$2/src"
    mount --bind "$3" "$2/build" && mount -t proc proc "$2/proc"
    root=$2; shift 3
    exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C \
      DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
  ' - "$top" "$root" "$folder/build" "$@"
}

# Runs a smoke test. The arguments are the program's words inside the root. The server gets a
# separate network.
smoke_test() {
  local program=$1
  cat >"$folder/build/smoke.sh" <<'SMOKE'
set -e
program=$1
data=$(mktemp -d)
ask() { # sends one command by a unix socket, so that no port is used
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
$program --check-rdb "$data/dump.rdb" >/dev/null
rm -r "$data"
SMOKE
  inside sh /build/smoke.sh "$program"
}

# The root has no git. A package names its maintainer: scripts/release.sh demands one.
named=(-D BLOOMERY_COMMIT="$(git -C "$top" rev-parse HEAD 2>/dev/null || true)"
  -D BLOOMERY_MAINTAINER="${BLOOMERY_MAINTAINER:-}"
  -D BLOOMERY_HOMEPAGE="${BLOOMERY_HOMEPAGE:-}")

compile() { # arguments: options of cmake
  inside cmake -S /src -B /build/tree -G Ninja -D CMAKE_BUILD_TYPE=Release \
    -D BLOOMERY_GROUP_SOURCES=ON -D BLOOMERY_BENCH=OFF "${named[@]}" "$@" \
    >"$folder/configure.log" ||
    { cat "$folder/configure.log" && exit 1; }
}

build() {
  inside cmake --build /build/tree --parallel "$(nproc)" --target "$@" >"$folder/build.log" ||
    { tail -n 60 "$folder/build.log" && exit 1; }
}

case $platform in
  debian13)
    make_root trixie
    inside /src/scripts/install_deps.sh server
    compile -D BLOOMERY_TESTS=OFF
    build bloomery-server bloomery-cluster
    smoke_test /build/tree/bloomery-server
    ;;
  portable)
    tarball=$(ls -t "$top"/build/portable/bloomery-*.tar.gz 2>/dev/null | head -n 1)
    [ -n "$tarball" ] || skip 'build/portable has no tarball: build that preset, then cpack'
    make_root trixie
    mkdir -p "$folder/build/unpacked"
    tar -C "$folder/build/unpacked" --strip-components=1 -xzf "$tarball"
    smoke_test /build/unpacked/bin/bloomery-server
    ;;
  arm64)
    # The compiler runs on this machine's architecture, at full speed. The arm64 libraries are in a
    # separate root, because some libraries cannot be installed for two architectures.
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
    # These tests query which pages are resident, after calls of madvise() that qemu ignores.
    pages=PopulatePagesTest.WholePagesOfTheRangeGetMemory:ArrayMemoryTest.KnowsWhichPagesWereTouched
    pages+=:ArrayMemoryTest.FreedArrayKeepsItsBitsWhileAChildReadsThem
    pages+=:ArrayMemoryTest.OnlyWhatAChildCanSeeStays:BitArrayTest.FreedArrayGivesItsMemoryBack
    pages+=:BitArrayTest.SixGigabytesAreReservedAtOnceAndCostOnlyTouchedPages
    for tests in core_tests protocol_tests; do
      inside qemu-aarch64-static "/build/tree/tests/$tests" --gtest_brief=1 --gtest_filter="-$pages"
    done
    smoke_test 'qemu-aarch64-static /build/tree/bloomery-server'
    rm -rf "$folder/build/pack"
    inside env DEB_HOST_ARCH=arm64 cpack --config /build/tree/CPackConfig.cmake -B /build/pack \
      >"$folder/pack.log" || { cat "$folder/pack.log" && exit 1; }
    package=$(basename "$folder"/build/pack/*_arm64.deb)
    emulate_arm64
    root=$folder/target
    make_arm64_root
    inside apt-get update -qq
    inside apt-get install -qq -y --no-install-recommends "/build/pack/$package" >/dev/null
    smoke_test bloomery-server
    ;;
esac
echo "$platform: passed"
