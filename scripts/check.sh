#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Checks the tree before a commit: clang-format on all sources, clang-tidy on the sources that
# changed since BASE, and the house rules (scripts/check_tree.py).
# Usage: scripts/check.sh [BASE]
# By default, BASE is the commit where this branch left main. If HEAD is a commit of main, BASE is
# the commit before HEAD.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
failed=0

sources=()
while IFS= read -r path; do
  [ ! -e "$path" ] || sources+=("$path") # git also lists deleted files
done < <(git ls-files --cached --others --exclude-standard -- '*.h' '*.cpp')
echo "format: ${#sources[@]} files"
if [ ${#sources[@]} -gt 0 ] && ! clang-format-14 --dry-run -Werror "${sources[@]}"; then
  echo 'cure: clang-format-14 -i on the files named above'
  failed=1
fi

base=${1:-$(git merge-base HEAD main 2>/dev/null || true)}
if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
  base=$(git rev-parse --verify --quiet HEAD~1 || git rev-parse HEAD)
fi
# Only .cpp files are listed: clang-tidy checks headers through the .cpp files that include them.
mapfile -t changed < <(
  {
    git diff --name-only --diff-filter=d "$base" -- '*.cpp'
    git ls-files --others --exclude-standard -- '*.cpp'
  } | grep -v '^tests/fuzz/' | sort -u
)
if [ ${#changed[@]} -gt 0 ]; then
  echo "clang-tidy since ${base:0:12}: ${#changed[@]} files"
  # The build is configured for g++. Clang does not know all warning options of g++, and cannot read
  # the precompiled headers that g++ makes.
  cmake --preset release -B build/tidy -DBLOOMERY_PRECOMPILE=OFF -DBLOOMERY_GROUP_SOURCES=OFF \
    >/dev/null &&
    printf '%s\0' "${changed[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy-14 --quiet \
      -p build/tidy --extra-arg=-Wno-unknown-warning-option || failed=1
fi

python3 scripts/check_tree.py || failed=1
exit "$failed"
