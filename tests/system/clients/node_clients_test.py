#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests current Node.js clients, each with every protocol that it supports.
scripts/install_node_packages.sh installs the clients.
"""

import tempfile
import unittest

from harness import ServerTest, free_port
from harness.node import MODULES, SCRIPTS, node
from harness.tls_files import TlsFiles


class NodeClientsTest(ServerTest):
    def check(self, script, package, *protocols, tls=None):
        """Runs a script. If `tls` is given, the server and the client use TLS with these files."""
        folder = MODULES / f"node_modules_{package}"
        self.assertTrue(
            (folder / ".installed").exists(),
            f"{folder} is missing: run scripts/install_node_packages.sh",
        )
        for protocol in protocols:
            with self.subTest(package=package, protocol=protocol):
                port = free_port()
                server = self.start_server(*(tls.server_options(port) if tls else ()))
                words = [node(), SCRIPTS / script, port if tls else server.port, protocol, folder]
                words += [tls.path("ca.crt")] if tls else []
                self.run_client(words)

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

    def test_tls(self):
        with tempfile.TemporaryDirectory(prefix="bloomery-tls-") as folder:
            files = TlsFiles(folder)
            self.check("node_redis.cjs", "redis5", 3, tls=files)
            self.check("ioredis.cjs", "ioredis5", 2, tls=files)

    def test_valkey_glide(self):
        self.check("valkey_glide.cjs", "valkey_glide", 2, 3)


if __name__ == "__main__":
    unittest.main()
