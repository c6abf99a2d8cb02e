#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs tests in tiers. The last line is `N passed, N failed`. Without a tier it runs everything that
# the CI runs. scripts/test_tiers.py describes each tier.
# Usage: scripts/test.sh [quick [FOLDER…] | unit | long | stress [N]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/install_deps.sh test
case ${1:-} in
  quick | unit | -h | --help) ;;
  *) scripts/install_node_packages.sh ;;
esac
exec /usr/bin/python3 scripts/test_tiers.py "$@"
