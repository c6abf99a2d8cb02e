#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests ruby-redis, the Redis client that Debian ships for Ruby."""

import pathlib
import unittest

from harness import ServerTest


class RubyClientTest(ServerTest):
    def test_script(self):
        server = self.start_server()
        script = pathlib.Path(__file__).parent / "ruby" / "client.rb"
        self.run_client(["ruby", "-W0", script, server.port])


if __name__ == "__main__":
    unittest.main()
