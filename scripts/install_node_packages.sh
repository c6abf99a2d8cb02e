#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Installs the Node clients and tools that the system tests use. Each entry of `clients` gets a
# folder of its own, because several major versions of one package are tested. A folder whose
# packages are complete is not installed again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Each entry is the suffix of a folder build/node_modules_SUFFIX, followed by packages with their
# pinned versions.
clients=(
  'redis6 redis@6'
  'redis5 redis@5'
  'redis4 redis@4'
  'ioredis6 ioredis@6'
  'ioredis5 ioredis@5'
  'valkey_glide @valkey/valkey-glide@2'
  'redis_commander redis-commander@0.9'
  'browser puppeteer-core@24 axe-core@4'
)

# Debian 12 has Node 18, but the newest clients need Node 20. The npm package `node` contains the
# Node program.
if [ "$(node -p 'parseInt(process.versions.node)')" -lt 20 ]; then
  clients=('node node@22' "${clients[@]}")
fi

for client in "${clients[@]}"; do
  read -r -a words <<<"$client"
  folder=build/node_modules_${words[0]}
  # The file .installed is written last. A folder without it is incomplete, and is installed again.
  [ -e "$folder/.installed" ] && continue
  mkdir -p "$folder"
  echo "installing ${words[*]:1} into $folder"
  npm install --prefix "$folder" --no-save --no-audit --no-fund --loglevel=error \
    "${words[@]:1}"
  touch "$folder/.installed"
done
