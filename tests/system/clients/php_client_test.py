#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests phpredis, a PHP client, as Debian ships it."""

import pathlib
import unittest

from harness import ServerTest


class PhpClientTest(ServerTest):
    def test_script(self):
        server = self.start_server()
        script = pathlib.Path(__file__).parent / "php" / "client.php"
        self.run_client(["php", script, server.port])


if __name__ == "__main__":
    unittest.main()
