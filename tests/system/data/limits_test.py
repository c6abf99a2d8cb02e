#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests limits on unread replies and on the memory of clients, which the server's timers enforce.
Also restarts a server with limits that its data exceed.
"""

import contextlib
import shutil
import socket
import tempfile
import time
import unittest

from harness import SERVER_IS_REDIS, ServerTest, wait_until
from harness.resp import encode

MIB = 1 << 20
# Size of a reply that exceeds the kernel's socket buffers of server and client together.
REPLY_BYTES = 16 * MIB


class OutputLimitTest(ServerTest):
    def setUp(self):
        self.server = self.start_server()
        self.server.expect_log("output buffer limits?|Client .* overcoming of output buffer")
        self.admin = self.server.connect()
        self.addCleanup(self.admin.close)
        self.admin.call("SET", "big", b"x" * REPLY_BYTES)

    def limit(self, words):
        reply = self.admin.call("CONFIG", "SET", "client-output-buffer-limit", words)
        self.assertEqual(reply, b"OK")

    def slow_client(self):
        """Returns a client that has requested a reply larger than the kernel's socket buffers, but
        has not read the reply.
        """
        client = self.server.connect()
        self.addCleanup(client.close)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        # After this reply the server has accepted the client, so CLIENT LIST contains it.
        self.assertEqual(client.call("PING"), b"PONG")
        client.send(encode("GET", "big"))
        return client

    def disconnections(self):
        for line in self.admin.call("INFO", "stats").decode().splitlines():
            if line.startswith("client_output_buffer_limit_disconnections:"):
                return int(line.split(":")[1])
        self.assertTrue(SERVER_IS_REDIS, "INFO does not count closed clients")
        return None

    def is_listed(self, client):
        port = client.socket.getsockname()[1]
        return f"addr=127.0.0.1:{port} " in self.admin.call("CLIENT", "LIST").decode()

    def wait_until_gone(self, client):
        wait_until(lambda: not self.is_listed(client), "the end of the client")

    def test_silent_client_over_the_soft_limit_is_found(self):
        self.limit("normal 0 1mb 1")
        start_s = time.monotonic()
        client = self.slow_client()
        self.wait_until_gone(client)
        self.assertGreater(time.monotonic() - start_s, 1)
        self.assertLess(len(client.read_to_end()), REPLY_BYTES)
        self.assertIn(self.disconnections(), (1, None))


class SumTest(ServerTest):
    def test_the_biggest_client_is_closed(self):
        server = self.start_server()
        with server.connect() as admin, server.connect() as small, server.connect() as big:
            self.assertEqual(admin.call("CONFIG", "SET", "maxmemory-clients", "8mb"), b"OK")
            self.assertEqual(small.call("PING"), b"PONG")
            # The send fails if the server closes the connection before it has received all bytes.
            with contextlib.suppress(OSError):
                big.send(b"*2\r\n$3\r\nGET\r\n$90000000\r\n" + b"x" * 80 * MIB)
            self.assertTrue(big.is_closed_by_server())
            self.assertEqual(small.call("PING"), b"PONG")
            self.assertIn(b"\r\nevicted_clients:1\r\n", admin.call("INFO", "stats"))


class LowerLimitsTest(ServerTest):
    def test_start_under_lower_limits_loads_all_data(self):
        directory = tempfile.mkdtemp(prefix="bloomery-test-")
        self.addCleanup(shutil.rmtree, directory)
        options = ["--appendonly", "yes", "--proto-max-bulk-len", "1mb"]
        options += ["--enable-debug-command", "yes"]
        first = self.start_server(*options, directory=directory)
        with first.connect() as client:
            # No rewrite of the append log runs. So the next start executes these commands again,
            # under the lower limits.
            self.assertEqual(client.call("CONFIG", "SET", "proto-max-bulk-len", "8mb"), b"OK")
            client.call("SETBIT", "bits", 16 << 20, 1)
            client.call("SET", "big", b"x" * (3 << 20))
            client.call("COPY", "big", "copy")
            client.call("BF.RESERVE", "filter", "0.01", "2000000")
            expected = [client.call("DEBUG", "DIGEST"), client.call("DBSIZE")]
            self.assertEqual(expected[1], 4)
        first.stop()
        limits = ["--maxmemory", "1mb", "--bf.bloom-memory-usage-limit", "1000"]
        second = self.start_server(*options, *limits, directory=directory)
        with second.connect() as client:
            self.assertEqual([client.call("DEBUG", "DIGEST"), client.call("DBSIZE")], expected)


if __name__ == "__main__":
    unittest.main()
