#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests a server whose wall clock is in a far century, or is set while clients are connected."""

import unittest

from harness import ServerTest, let_time_pass
from harness.preloads import SimulatedClock
from harness.resp import encode

DAY_MS = 86_400_000
# A time after the year 2262, in which a count of nanoseconds since 1970 no longer fits into 64
# bits.
YEAR_2300_MS = 10_413_792_000_000
NOW_MS = 1_790_000_000_000


class ClockTest(ServerTest):
    def serve(self, now_ms, *options):
        self.clock = SimulatedClock(now_ms)
        self.addCleanup(self.clock.close)
        return self.start_server(*options, prefix=self.clock.prefix)

    def test_pause_and_expiry_in_the_year_2300(self):
        server = self.serve(YEAR_2300_MS)
        with server.connect() as client, server.connect() as other:
            self.assertEqual(int(client.call("TIME")[0]), YEAR_2300_MS // 1000)
            client.call("SET", "key", "value", "PX", "120000")
            self.assertEqual(client.call("PEXPIRETIME", "key"), YEAR_2300_MS + 120_000)
            self.assertEqual(client.call("CLIENT", "PAUSE", "60000", "WRITE"), b"OK")
            other.send(encode("INCR", "counter"))
            self.assertEqual(client.call("EXISTS", "counter"), 0)
            self.clock.advance(60_001)
            self.assertEqual(other.read_reply()[0], 1)
            self.assertEqual(client.call("EXISTS", "key"), 1)
            self.clock.advance(60_000)
            self.assertEqual(client.call("EXISTS", "key"), 0)

    def test_clock_step_closes_no_idle_client(self):
        server = self.serve(NOW_MS, "--timeout", "300")
        with server.connect() as idle, server.connect() as client:
            number = idle.call("CLIENT", "ID")
            self.clock.advance(DAY_MS)
            let_time_pass(2.5, why="once a second the server closes clients that are idle")
            line = client.call("CLIENT", "LIST", "ID", str(number)).decode()
            fields = dict(word.split("=", 1) for word in line.split())
            self.assertLess(int(fields["idle"]), 300)
            self.assertLess(int(fields["age"]), 300)
            self.assertEqual(idle.call("PING"), b"PONG")


if __name__ == "__main__":
    unittest.main()
