#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Makes a release of the checked-out commit: the artefacts, their checksums and the tag.
# CMakeLists.txt sets the version, and CHANGELOG.md must have a section for this version.
# Usage: BLOOMERY_MAINTAINER='NAME <ADDRESS>' [BLOOMERY_HOMEPAGE=URL] scripts/release.sh [OPTIONS]
#   --dry-run    makes the artefacts, prints why a release would be refused, and sets no tag
#   --build DIR  with --dry-run: packs the existing build in DIR instead of building
#   --out DIR    folder for the artefacts (default: build/artefacts). Artefacts in it are deleted.
#                If the folder has other files, the script exits with an error
#
# A release is refused if no maintainer is given, the tree has uncommitted changes, or the tag
# exists. It is also refused if CHANGELOG.md has entries under Unreleased, or has no dated section
# for the version. The package for arm64 must be made, too. Relative folders are relative to the top
# of the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  sed -n 's/^# \{0,1\}//; 6,10p' scripts/release.sh >&2
  exit 2
}

dry_run=no
build=
out=build/artefacts
while [ $# -gt 0 ]; do
  case $1 in
    --dry-run) dry_run=yes ;;
    --build | --out)
      [ $# -gt 1 ] || usage
      if [ "$1" = --build ]; then build=$2; else out=$2; fi
      shift
      ;;
    *) usage ;;
  esac
  shift
done
[ -z "$build" ] || [ $dry_run = yes ] || usage

version=$(sed -n 's/^project(bloomery VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
commit=$(git rev-parse HEAD)
tag=v$version

# Prints the entries of a section of CHANGELOG.md. argument: title of the section
section() {
  awk -v title="## [$1]" '
    index($0, "## ") == 1 { inside = index($0, title) == 1; next }
    inside { print }
  ' CHANGELOG.md | sed '/./,$!d'
}

refused=()
changes=$(section "$version")
if [ -z "$changes" ]; then
  refused+=("CHANGELOG.md has no section [$version]")
elif ! grep -Eq "^## \[$version\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md; then
  refused+=("the section [$version] of CHANGELOG.md has no date")
fi
unreleased=$(section Unreleased)
if grep -q '^- ' <<<"$unreleased"; then
  refused+=("CHANGELOG.md has entries under [Unreleased]")
fi
[[ ${BLOOMERY_MAINTAINER:-} =~ ^[^\<\>]+\ \<[^\<\>@\ ]+@[^\<\>@\ ]+\>$ ]] ||
  refused+=("BLOOMERY_MAINTAINER is no NAME <ADDRESS>")
[ -z "$(git status --porcelain)" ] || refused+=("the tree has changes that are not committed")
! git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null || refused+=("the tag $tag exists")

echo "version $version, commit $commit"
if [ ${#refused[@]} -gt 0 ]; then
  printf 'refused: %s\n' "${refused[@]}"
  [ $dry_run = yes ] || exit 1
fi
printf '\nchanges:\n%s\n\n' "${changes:-$unreleased}"

mkdir -p "$out"
out=$(realpath "$out")
artefacts=(-type f '('
  -name 'bloomery[-_]*.deb' -o -name 'bloomery-*.tar.gz' -o -name SHA256SUMS ')')
foreign=$(find "$out" -mindepth 1 -maxdepth 1 ! '(' "${artefacts[@]}" ')' -print -quit)
if [ -n "$foreign" ]; then
  echo "$foreign is no artefact of a release: name another folder by --out" >&2
  exit 1
fi
find "$out" -mindepth 1 -maxdepth 1 "${artefacts[@]}" -delete

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pack() { # runs cpack, and moves the packages to $out. argument: a build folder
  cpack --config "$1/CPackConfig.cmake" -B "$work/pack" >"$work/cpack.log" || {
    cat "$work/cpack.log" >&2
    exit 1
  }
  mv "$work"/pack/bloomery* "$out"
  rm -r "$work/pack"
}
if [ -n "$build" ]; then
  pack "$build"
else
  for preset in server portable; do
    cmake --preset "$preset" -D BLOOMERY_MAINTAINER="${BLOOMERY_MAINTAINER:-}" \
      -D BLOOMERY_HOMEPAGE="${BLOOMERY_HOMEPAGE:-}" >/dev/null
    cmake --build --preset "$preset" --parallel "$(nproc)"
    pack "build/$preset"
  done
  # Makes the arm64 package: cross-compiles it against the packages of Debian 12, installs it, and
  # starts its server under qemu.
  scripts/try_platform.sh arm64 build/try-arm64 | tee "$work/arm64.log"
  if grep -q '^arm64: passed' "$work/arm64.log"; then
    mv build/try-arm64/build/pack/bloomery_*_arm64.deb "$out"
  elif [ $dry_run = no ]; then
    echo 'refused: there is no package for arm64' && exit 1
  fi
fi
git archive --prefix="bloomery-$version/" -o "$out/bloomery-$version.tar.gz" HEAD

echo 'artefacts (bytes, SHA-256, name):'
(
  cd "$out"
  sha256sum -- * >SHA256SUMS
  while read -r sum name; do
    printf '%10d  %s  %s\n' "$(stat -c %s "$name")" "$sum" "$name"
  done <SHA256SUMS
)
cat <<IMAGE

image:
  BLOOMERY_VERSION=$version BLOOMERY_COMMIT=$commit \\
    BLOOMERY_MAINTAINER='${BLOOMERY_MAINTAINER:-}' BLOOMERY_HOMEPAGE='${BLOOMERY_HOMEPAGE:-}' \\
    docker buildx bake
IMAGE
[ $dry_run = no ] || exit 0
# By default, git removes the lines that begin with `#`: the headings of the changes.
git tag --annotate --cleanup=whitespace "$tag" --message "Bloomery $version" --message "$changes"
echo "tagged $tag; to publish: git push origin $tag, and upload $out"
