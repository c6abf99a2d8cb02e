#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures the memory of an idle connection, plain and with TLS.

Environment:
  BLOOMERY_IDLE_CONNECTIONS  number of connections
"""

import resource
import unittest

from harness import SANITIZED
from harness.counts import count
from harness.resp import encode
from harness.tls import TlsTest

COUNT = count("IDLE_CONNECTIONS")
PLAIN_BYTES_MAX = 4 << 10
TLS_BYTES_MAX = 40 << 10


class IdleConnectionsTest(TlsTest):
    def setUp(self):
        super().setUp()
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, COUNT + 1000), hard))
        self.server = self.start_tls_server("--maxclients", COUNT + 300)

    def measure(self, connect):
        """Makes COUNT connections by connect(), and leaves them idle. Returns the server's memory
        per connection.
        """
        warm = [connect() for _ in range(100)]
        before = self.server.resident_bytes()
        resting = [connect() for _ in range(COUNT)]
        after = self.server.resident_bytes()
        for connection in warm + resting:
            connection.close()
        return (after - before) / COUNT

    def used(self, connection):
        connection.send(encode("SET", "key", "x" * 20_000) + encode("GET", "key"))
        self.assertEqual(connection.read_reply()[0], b"OK")
        self.assertEqual(len(connection.read_reply()[0]), 20_000)
        return connection

    def check(self, name, connect, bytes_max):
        size = self.measure(connect)
        print(f"{COUNT} resting connections, {name}: {size:.0f} bytes each", flush=True)
        if not SANITIZED:
            self.assertLessEqual(size, bytes_max)

    def test_plain(self):
        self.check("plain", lambda: self.used(self.server.connect()), PLAIN_BYTES_MAX)

    def test_tls(self):
        context = self.files.client_context()
        self.check("TLS", lambda: self.used(self.connect_tls(context=context)), TLS_BYTES_MAX)


if __name__ == "__main__":
    unittest.main()
