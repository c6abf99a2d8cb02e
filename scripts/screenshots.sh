#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the screenshots of the dashboard in docs/images with a headless Chromium. Look at the images
# before you commit them.
#
# Requires a release build, which scripts/run.sh makes. Also requires the test packages, which
# `scripts/install_deps.sh test` and scripts/install_node_packages.sh install.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
BLOOMERY_SERVER=${BLOOMERY_SERVER:-build/release/bloomery-server} BLOOMERY_SCREENSHOTS=$folder \
  BLOOMERY_SCREENSHOTS_LOAD_S=${BLOOMERY_SCREENSHOTS_LOAD_S:-45} \
  /usr/bin/python3 tests/system/operations/dashboard_test.py \
  DashboardTest.test_charts_and_every_view_in_every_look
mkdir -p docs/images
for view in filters operations; do
  cp "$folder/$view"-1280-light.png "$folder/$view"-1280-dark.png "$folder/$view"-390-light.png \
    "$folder/$view"-390-dark.png docs/images/
done
cp "$folder"/window-1280-light.png "$folder"/planner-1280-light.png docs/images/
