#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests phpredis, the Redis client that Debian ships for PHP."""

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
