#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that CONFIG RESETSTAT resets the same fields of INFO as in redis-server."""

import unittest

from harness import ServerTest, wait_until
from harness.info import info

# Fields of INFO stats that increase even without persistence and replication.
MOVED = {
    "total_connections_received",
    "total_commands_processed",
    "total_net_input_bytes",
    "total_net_output_bytes",
    "expired_keys",
    "expired_stale_perc",
    "keyspace_hits",
    "keyspace_misses",
    "total_error_replies",
    "total_reads_processed",
    "total_writes_processed",
    "rejected_connections",
}


class InfoTest(ServerTest):
    def setUp(self):
        self.server = self.start_server()
        self.client = self.server.connect()
        self.addCleanup(self.client.close)

    def make_events(self, server, client):
        """Sends commands that increase each field in MOVED."""
        client.call("CONFIG", "SET", "maxclients", "2")
        with server.connect(), server.connect() as refused:
            refused.read_to_end()
        client.call("CONFIG", "SET", "maxclients", "100")
        client.call("NOSUCH")
        client.call("GET", "none")
        for i in range(50):
            client.call("SET", f"k{i}", "x", "PX", 1)
        client.call("SET", "k", "x")
        client.call("GET", "k")
        wait_until(lambda: int(info(client, "stats")["expired_keys"]) == 50, what="expiry")
        wait_until(lambda: float(info(client, "stats")["expired_stale_perc"]) > 0, what="staleness")

    def test_resetstat_resets_the_same_as_redis(self):
        oracle = self.start_redis()
        with oracle.connect() as theirs:
            after = []
            for server, client in ((self.server, self.client), (oracle, theirs)):
                self.make_events(server, client)
                before = info(client, "stats")
                for name in MOVED:
                    self.assertGreater(float(before[name]), 0, name)
                self.assertEqual(client.call("CONFIG", "RESETSTAT"), b"OK")
                after.append(info(client, "stats"))
                self.assertEqual(list(info(client, "errorstats")), [])
                self.assertLessEqual(
                    set(info(client, "commandstats")),
                    {"cmdstat_config|resetstat", "cmdstat_info"},
                )
        # Since CONFIG RESETSTAT, the clients have sent only a few commands and bytes, so the fields
        # must be small.
        for name in MOVED:
            for figures in after:
                self.assertLess(float(figures[name]), 20_000 if "bytes" in name else 10, name)
        for name in after[1].keys() & after[0].keys():
            # As in Redis, the I/O threads also count the read and the write of the INFO command
            # itself, so io_threaded_* may differ from 0. Both servers update expired_stale_perc
            # several times a second.
            is_steady = not name.startswith("io_threaded_") and name != "expired_stale_perc"
            if float(after[1][name]) == 0 and is_steady:
                self.assertEqual(float(after[0][name]), 0, name)


if __name__ == "__main__":
    unittest.main()
