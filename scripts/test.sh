#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs the tests of a tier. scripts/test_tiers.py describes the tiers. Without a tier, this script
# runs the tests that the CI runs. The last line is `N passed, N failed`.
# Usage: scripts/test.sh [quick [LIBRARY…] | unit | long | stress [N]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/install_deps.sh test
exec /usr/bin/python3 scripts/test_tiers.py "$@"
