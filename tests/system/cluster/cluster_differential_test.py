#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compares a server that emulates a cluster with a redis-server that is a cluster of one node.

The replies of both servers must be equal byte by byte after ids, addresses and epochs are removed.
"""

import random
import re
import unittest

from harness import ServerTest, seed_from_environment, wait_until
from harness.resp import encode

COMMANDS = 4000
SLOTS = 16384
# Commands that both servers must answer in the same way. CLUSTER BUMPEPOCH is not among them,
# because it would give redis-server its first epoch.
QUESTIONS = """
CLUSTER|INFO
CLUSTER|SLOTS
CLUSTER|SHARDS
CLUSTER|NODES
CLUSTER|MYID
CLUSTER|LINKS
CLUSTER|KEYSLOT|foo
CLUSTER|KEYSLOT|{foo}bar
CLUSTER|KEYSLOT
CLUSTER|COUNTKEYSINSLOT|12182
CLUSTER|COUNTKEYSINSLOT|-1
CLUSTER|COUNTKEYSINSLOT|16384
CLUSTER|COUNTKEYSINSLOT|x
CLUSTER|GETKEYSINSLOT|12182|10
CLUSTER|GETKEYSINSLOT|12182|-1
CLUSTER|GETKEYSINSLOT|99999|1
CLUSTER|GETKEYSINSLOT|1|x
CLUSTER|REPLICAS|abc
CLUSTER|SLAVES|abc
CLUSTER|COUNT-FAILURE-REPORTS|abc
CLUSTER|SAVECONFIG
CLUSTER|FAILOVER
CLUSTER|FAILOVER|NOW
CLUSTER|FOO
CLUSTER
READONLY
READWRITE
ASKING
ASKING|x
SELECT|0
SELECT|1
SELECT|99
SELECT|x
SWAPDB|0|1
SWAPDB|x|1
MOVE|a|1
COPY|a|{a}b|DB|1
COPY|a|{a}b|DB|0
COPY|a|{a}b|DB|99
REPLICAOF|NO|ONE
SLAVEOF|a|1
FAILOVER
FAILOVER|ABORT
INFO|cluster
CONFIG|GET|databases
""".split("\n")


def without_identity(reply, port):
    """Returns the reply without ids, addresses and ports, which differ between the servers."""
    reply = re.sub(rb"[0-9a-f]{40}", b"ID", reply)
    reply = re.sub(rb"127\.0\.0\.1", b"", reply).replace(b"$9\r\n\r\n", b"$0\r\n\r\n")
    bus = port + 10000
    reply = reply.replace(b"%d@%d" % (port, bus), b"PORT@BUS").replace(b":%d\r" % port, b":PORT\r")
    # Removes the length of a bulk string that begins with an id. The string also contains ports,
    # which may have more digits on one of the servers.
    return re.sub(rb"^([$=])\d+\r\n(txt:)?ID", rb"\1N\r\n\2ID", reply)


class ClusterDifferentialTest(ServerTest):
    def setUp(self):
        self.rng = random.Random(seed_from_environment())
        self.servers = [
            self.start_server("--cluster-enabled", "emulated"),
            self.start_redis("--cluster-enabled", "yes"),
        ]
        self.both = [server.connect() for server in self.servers]
        for connection in self.both:
            self.addCleanup(connection.close)
        self.servers[1].expect_log("Cluster state changed: ok")
        self.both[1].call("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1)
        wait_until(
            lambda: b"cluster_state:ok" in self.both[1].call("CLUSTER", "INFO"),
            what="redis-server's cluster",
        )

    def compare(self, *command, strip=without_identity):
        for connection in self.both:
            connection.send(encode(*command))
        ours, theirs = (
            strip(connection.read_reply()[1], server.port)
            for connection, server in zip(self.both, self.servers)
        )
        self.assertEqual(ours, theirs, command)
        return ours

    def test_answers_about_the_cluster(self):
        for protocol in ("2", "3"):
            for connection in self.both:
                connection.call("HELLO", protocol)
                connection.call("SET", "foo", "1")
            for line in filter(None, QUESTIONS):
                self.compare(*line.split("|"))

    def test_slots_of_random_keys(self):
        for _ in range(COMMANDS):
            key = bytes(self.rng.choices(b"{}ab\x00\xff", k=self.rng.randrange(12)))
            self.compare("CLUSTER", "KEYSLOT", key, strip=lambda reply, _: reply)

    def test_keys_of_several_slots(self):
        """Sends random commands, some of them in transactions, and aborts some of the transactions.
        """
        keys = [b"a", b"b", b"{t}1", b"{t}2", b"{t}3", b"x{t}"]
        crossed = 0

        def key():
            return self.rng.choice(keys)

        makers = [
            lambda: ["SET", key(), "1"], lambda: ["GET", key()],
            lambda: ["MGET", key(), key()], lambda: ["MSET", key(), "1", key(), "2"],
            lambda: ["MSET", key(), "1", key()], lambda: ["DEL", key(), key(), key()],
            lambda: ["EXISTS", key(), key()], lambda: ["BITOP", "OR", key(), key(), key()],
            lambda: ["RENAME", key(), key()], lambda: ["COPY", key(), key()],
            lambda: ["LCS", key(), key()], lambda: ["WATCH", key(), key()], lambda: ["UNWATCH"],
            lambda: ["SPUBLISH", key(), "m"], lambda: ["MULTI"], lambda: ["MULTI"],
            lambda: ["EXEC"], lambda: ["EXEC"], lambda: ["DISCARD"], lambda: ["NOSUCH"],
            lambda: ["OBJECT", "ENCODING", key()], lambda: ["DBSIZE"], lambda: ["GET"],
            lambda: ["SELECT", self.rng.choice("01")], lambda: ["MSETNX", key(), "1", key(), "2"],
        ]  # fmt: skip
        for _ in range(COMMANDS):
            crossed += self.compare(*self.rng.choice(makers)()).startswith(b"-CROSSSLOT")
        self.assertGreater(crossed, COMMANDS / 20)


if __name__ == "__main__":
    unittest.main()
