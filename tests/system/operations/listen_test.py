#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests a server whose listen addresses are unavailable: at its start, and after CONFIG SET of bind
and port.
"""

import shutil
import socket
import subprocess
import tempfile
import unittest

from harness import DEADLINE_S, SERVER, ServerTest, wait_until
from harness.resp import Connection, ErrorReply


def accepts(address, port):
    try:
        with Connection(port, host=address) as connection:
            return connection.call("PING") == b"PONG"
    except OSError:
        return False


class ListenTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.server = self.start_server()
        self.client = self.server.connect()
        self.addCleanup(self.client.close)
        self.taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.taken.close)

    def set_config(self, *words):
        return self.client.call("CONFIG", "SET", *words)

    def test_unavailable_addresses_are_rolled_back(self):
        self.server.expect_log("Could not create server TCP listening socket")
        self.server.expect_log("Could not resolve bind address")
        port = self.taken.getsockname()[1]
        for option, value in (
            ("port", port), ("bind", "192.0.2.1"), ("bind", "127.0.0.2 192.0.2.1"),
        ):  # fmt: skip
            reply = self.set_config(option, value)
            self.assertIsInstance(reply, ErrorReply)
            self.assertRegex(reply.text, f"^ERR CONFIG SET .*'{option}'")
        self.assertEqual(self.client.call("CONFIG", "GET", "port")[1], b"%d" % self.server.port)
        self.assertEqual(self.client.call("CONFIG", "GET", "bind")[1], b"127.0.0.1")
        wait_until(lambda: accepts("127.0.0.1", self.server.port))
        self.assertFalse(accepts("127.0.0.2", self.server.port))
        self.assertTrue(any(f" PID: {self.server.pid}" in line for line in self.server.log))

    def test_a_taken_port_ends_the_start(self):
        port = self.taken.getsockname()[1]
        directory = tempfile.mkdtemp(prefix="bloomery-test-")
        self.addCleanup(shutil.rmtree, directory)
        ended = subprocess.run(
            [SERVER, "--port", str(port), "--bind", "127.0.0.1", "--dir", directory],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn(f"Failed listening on port {port}", ended.stdout)


if __name__ == "__main__":
    unittest.main()
