#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The Node clients of today, each in the protocols it speaks; scripts/test.sh installs them."""

import os
import pathlib
import unittest

from harness import ROOT, ServerTest

SCRIPTS = pathlib.Path(__file__).parent / "node"
MODULES = pathlib.Path(os.environ.get("BLOOMERY_NODE_MODULES", ROOT / "build"))


def node():
    """The Node to run: one of our own where the system's is too old for the newest clients."""
    own = MODULES / "node_modules_node" / "node_modules" / "node" / "bin" / "node"
    return own if own.exists() else "node"


class NodeClientsTest(ServerTest):
    def check(self, script, package, *protocols):
        folder = MODULES / f"node_modules_{package}"
        self.assertTrue(
            (folder / ".installed").exists(),
            f"{folder} is missing: run scripts/install_node_packages.sh",
        )
        for protocol in protocols:
            with self.subTest(package=package, protocol=protocol):
                server = self.start_server()
                self.run_client(
                    [node(), SCRIPTS / script, server.port, protocol, folder], timeout_s=60
                )

    def test_node_redis_4(self):
        self.check("node_redis.cjs", "redis4", 2)

    def test_node_redis_5(self):
        self.check("node_redis.cjs", "redis5", 2, 3)

    def test_node_redis_6(self):
        self.check("node_redis.cjs", "redis6", 2, 3)

    def test_ioredis_5(self):
        self.check("ioredis.cjs", "ioredis5", 2)

    def test_ioredis_6(self):
        self.check("ioredis.cjs", "ioredis6", 2, 3)

    def test_valkey_glide(self):
        self.check("valkey_glide.cjs", "valkey_glide", 2, 3)


if __name__ == "__main__":
    unittest.main()
