#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Tests in tiers; the last line is `N passed, N failed`. Without a tier everything that must hold,
# which is what the CI runs. scripts/test_tiers.py says what each tier does.
# Usage: scripts/test.sh [quick [FOLDER…] | unit | long | stress [N]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/install_deps.sh test
case ${1:-} in
  quick | unit | -h | --help) ;;
  *) scripts/install_node_packages.sh ;;
esac
exec /usr/bin/python3 scripts/test_tiers.py "$@"
