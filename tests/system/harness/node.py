# SPDX-License-Identifier: MIT
"""Node and its packages, as scripts/install_node_packages.sh installs them."""

import os
import pathlib

from harness.settings import ROOT, SYSTEM_TESTS

SCRIPTS = SYSTEM_TESTS / "clients" / "node"
MODULES = pathlib.Path(os.environ.get("BLOOMERY_NODE_MODULES", ROOT / "build"))


def node():
    """Returns the Node to run: our own if the system's is too old for the newest clients."""
    own = MODULES / "node_modules_node" / "node_modules" / "node" / "bin" / "node"
    return own if own.exists() else "node"
