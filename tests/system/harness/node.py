# SPDX-License-Identifier: MIT
"""Finds Node and the packages that scripts/install_node_packages.sh has installed."""

import os
import pathlib

from harness.settings import ROOT, SYSTEM_TESTS

SCRIPTS = SYSTEM_TESTS / "clients" / "node"
MODULES = pathlib.Path(os.environ.get("BLOOMERY_NODE_MODULES", ROOT / "build"))


def node():
    """Returns the program to run as Node: the one that scripts/install_node_packages.sh installed,
    else the system's.
    """
    own = MODULES / "node_modules_node" / "node_modules" / "node" / "bin" / "node"
    return own if own.exists() else "node"
