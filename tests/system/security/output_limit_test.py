#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures the memory of one large reply, with and without client-output-buffer-limit."""

import pathlib
import re
import unittest

from harness import DEADLINE_S, ServerTest
from harness.resp import encode

MEBIBYTE = 1 << 20
VALUE_BYTES = 16 * MEBIBYTE
COUNT = 32
LIMIT_BYTES = 64 * MEBIBYTE
# The measured peak may exceed the calculated peak by this many bytes, because the allocator needs
# some memory.
SLACK_BYTES = 48 * MEBIBYTE


class OutputLimitTest(ServerTest):
    def start(self, *options):
        self.server = self.start_server("--io-threads", 1, *options)
        self.other = self.server.connect()
        self.addCleanup(self.other.close)
        self.assertEqual(self.other.call("SET", "key", b"x" * VALUE_BYTES), b"OK")
        self.before = self.peak_bytes()

    def peak_bytes(self):
        """Returns the peak resident memory of the server so far."""
        status = pathlib.Path(f"/proc/{self.server.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10

    def request(self, client, *commands):
        client.send(b"".join(encode(*command) for command in commands))

    def received_bytes(self, client, most=None):
        """Reads until the server closes the connection or `most` bytes have arrived. Returns the
        number of bytes.
        """
        client.socket.settimeout(DEADLINE_S)
        count = 0
        while most is None or count < most:
            try:
                got = client.socket.recv(MEBIBYTE)
            except ConnectionResetError:
                break
            if not got:
                break
            count += len(got)
        return count

    def check_closed(self, *commands):
        self.start("--client-output-buffer-limit", f"normal {LIMIT_BYTES} 0 0")
        self.server.expect_log("Closing client .*output buffer limit")
        with self.server.connect() as client:
            self.request(client, *commands)
            self.assertLess(self.received_bytes(client), LIMIT_BYTES)
        self.server.wait_for_log("Closing client .*output buffer limit")
        grown = self.peak_bytes() - self.before
        self.assertLess(grown, LIMIT_BYTES + VALUE_BYTES + SLACK_BYTES)
        self.assertEqual(self.other.call("PING"), b"PONG")
        self.assertEqual(self.other.call("STRLEN", "key"), VALUE_BYTES)

    def test_a_reply_beyond_the_limit_is_not_built(self):
        self.check_closed(("MGET", *["key"] * COUNT))

    def test_a_transaction_beyond_the_limit_is_not_built(self):
        reads = [("GET", "key"), ("GETRANGE", "key", 0, -1)] * (COUNT // 2)
        self.check_closed(("MULTI",), *reads, ("EXEC",))

    def test_a_pipeline_of_a_client_that_does_not_read(self):
        """Once some megabytes of replies are unsent, the server executes no more commands of the
        pipeline. So the client stays below its output limit and is not closed.
        """
        self.start("--client-output-buffer-limit", f"normal {LIMIT_BYTES} 0 0")
        with self.server.connect() as client:
            self.request(client, *[("GET", "key")] * COUNT)
            self.assertEqual(self.other.call("PING"), b"PONG")
            header = len(b"$16777216\r\n\r\n")
            expected = COUNT * (VALUE_BYTES + header)
            self.assertEqual(self.received_bytes(client, expected), expected)
        grown = self.peak_bytes() - self.before
        self.assertLess(grown, LIMIT_BYTES + VALUE_BYTES + SLACK_BYTES)

    def test_without_a_limit_a_reply_is_held_once(self):
        self.start()
        with self.server.connect() as client:
            self.request(client, ("MGET", *["key"] * COUNT))
            expected = len(b"*32\r\n") + COUNT * (VALUE_BYTES + len(b"$16777216\r\n\r\n"))
            self.assertEqual(self.received_bytes(client, expected), expected)
            self.assertEqual(client.call("PING"), b"PONG")
        self.assertLess(self.peak_bytes() - self.before, COUNT * VALUE_BYTES + SLACK_BYTES)


if __name__ == "__main__":
    unittest.main()
