#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""INFO and CLIENT LIST tell what is, and CONFIG RESETSTAT what has been since."""

import socket
import unittest

from harness import SERVER_IS_REDIS, ServerTest, wait_until
from resp import encode

# Fields of INFO stats that a server without persistence and replication makes move here.
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


def info(client, section):
    lines = client.call("INFO", section).decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


class InfoTest(ServerTest):
    def setUp(self):
        self.server = self.start_server()
        self.client = self.server.connect()
        self.addCleanup(self.client.close)

    def line_of(self, client):
        """CLIENT LIST's fields of one client, asked for by another."""
        address = "addr=127.0.0.1:%d" % client.socket.getsockname()[1]
        for line in self.client.call("CLIENT", "LIST").decode().splitlines():
            if address in line.split():
                return dict(word.split("=", 1) for word in line.split())
        return self.fail(f"no client has {address}")

    def average_ttl_ms(self, database="db0"):
        words = info(self.client, "keyspace")[database].split(",")
        return int(dict(word.split("=") for word in words)["avg_ttl"])

    def test_average_ttl(self):
        for i in range(100):
            self.client.call("SET", f"short{i}", "x", "PX", 100_000)
            self.client.call("SET", f"long{i}", "x", "PX", 300_000)
        wait_until(lambda: self.average_ttl_ms() > 0, what="an average")
        self.assertAlmostEqual(self.average_ttl_ms(), 200_000, delta=20_000)
        self.client.call("FLUSHALL")
        self.client.call("SET", "stays", "x")
        wait_until(lambda: self.average_ttl_ms() == 0, what="no average without expiring keys")

    def make_events(self, server, client):
        """Something of everything that INFO counts."""
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

    def test_resetstat_takes_back_what_redis_takes_back(self):
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
        # Of the commands since then there are few bytes and a few calls.
        for name in MOVED:
            for figures in after:
                self.assertLess(float(figures[name]), 20_000 if "bytes" in name else 10, name)
        for name in after[1].keys() & after[0].keys():
            # The threads of ours read and write whatever Redis does, this INFO too.
            if float(after[1][name]) == 0 and not name.startswith("io_threaded_"):
                self.assertEqual(float(after[0][name]), 0, name)

    def test_client_list_tells_the_reply_buffer(self):
        size_bytes = 16 << 20
        self.client.call("SET", "big", b"x" * size_bytes)
        with self.server.connect() as other:
            other.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
            other.call("PING")
            if not SERVER_IS_REDIS:
                self.assertEqual(self.line_of(other)["rbs"], "0")
            other.send(encode("GET", "big"))
            wait_until(lambda: int(self.line_of(other)["omem"]) > 0, what="unsent replies")
            line = self.line_of(other)
            if not SERVER_IS_REDIS:
                self.assertGreaterEqual(int(line["rbs"]), int(line["omem"]))
                self.assertGreaterEqual(int(line["rbp"]), size_bytes)
            self.assertGreater(int(line["tot-mem"]), int(line["omem"]))
            other.read_reply()
            wait_until(lambda: self.line_of(other)["omem"] == "0", what="an empty buffer")
            if not SERVER_IS_REDIS:
                wait_until(lambda: self.line_of(other)["rbs"] == "0", what="memory given back")
                # The peak is that of the last seconds.
                self.assertEqual(other.call("PING"), b"PONG")
                wait_until(lambda: int(self.line_of(other)["rbp"]) < 1000, what="a new peak")


if __name__ == "__main__":
    unittest.main()
