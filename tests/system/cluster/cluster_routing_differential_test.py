#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compares a cluster of three of our servers with a cluster of three redis-servers.

The same command to the same node must get the same reply in both clusters, apart from ports and
ids."""

import random
import re
import unittest

from harness import seed_from_environment
from harness.cluster import ClusterTest
from harness.counts import count
from harness.resp import encode

COMMANDS = count("CLUSTER_COMMANDS")
KEYS = [b"a", b"b", b"c", b"d", b"{a}1", b"{a}2", b"{b}1", b"{b}2", b"{c}1", b"x{c}"]
QUESTIONS = """
CLUSTER|KEYSLOT|foo
CLUSTER|COUNTKEYSINSLOT|15495
CLUSTER|COUNTKEYSINSLOT|16384
CLUSTER|COUNTKEYSINSLOT|x
CLUSTER|GETKEYSINSLOT|15495|10
CLUSTER|GETKEYSINSLOT|1|-1
CLUSTER|REPLICAS|abc
CLUSTER|FAILOVER
CLUSTER|FOO
CLUSTER|SAVECONFIG
CLUSTER
READONLY
READWRITE
ASKING
SELECT|0
SELECT|1
SWAPDB|0|1
MOVE|a|1
COPY|a|{a}b|DB|1
REPLICAOF|NO|ONE
FAILOVER
INFO|cluster
""".split("\n")


class ClusterRoutingDifferentialTest(ClusterTest):
    def setUp(self):
        self.rng = random.Random(seed_from_environment())
        self.ours = self.start_cluster(3)
        self.theirs = self.start_redis_cluster(3)
        self.pairs = [
            (one.connect(), other.connect()) for one, other in zip(self.ours, self.theirs)
        ]
        for connection in (each for pair in self.pairs for each in pair):
            self.addCleanup(connection.close)

    def plain(self, reply, servers):
        """Returns the reply with each port replaced by the number of its node."""
        for number, server in enumerate(servers):
            reply = re.sub(rb":%d\b" % server.port, b":NODE%d" % number, reply)
            reply = re.sub(rb"@%d\b" % (server.port + 10000), b"@BUS%d" % number, reply)
        return reply

    def compare(self, node, *command):
        for connection in self.pairs[node]:
            connection.send(encode(*command))
        ours, theirs = (connection.read_reply()[1] for connection in self.pairs[node])
        ours, theirs = self.plain(ours, self.ours), self.plain(theirs, self.theirs)
        self.assertEqual(ours, theirs, (node, command))
        return ours

    def test_questions(self):
        for node in range(3):
            for line in filter(None, QUESTIONS):
                self.compare(node, *line.split("|"))

    def test_slots(self):
        for protocol in ("2", "3"):
            for node in range(3):
                answers = []
                for connection, servers in zip(
                    self.pairs[node], (self.ours, self.theirs)
                ):
                    connection.call("HELLO", protocol)
                    connection.send(encode("CLUSTER", "SLOTS"))
                    reply = connection.read_reply()[1]
                    reply = re.sub(rb"[0-9a-f]{40}", b"ID", reply)
                    answers.append(re.sub(rb":(\d+)\r\n\$40", b":PORT\r\n$40", reply))
                # Redis sorts the slot ranges in its reply, so the order of our ranges must be the
                # same.
                self.assertEqual(*answers)

    def test_random_commands(self):
        """Sends random commands, also in transactions, with WATCH, and on shard channels. The keys
        of a command are in one slot or in several slots."""
        rng = self.rng

        def key():
            return rng.choice(KEYS)

        def same():
            return rng.choice([[b"{a}1", b"{a}2"], [b"{b}1", b"{b}2"], [b"{c}1", b"x{c}"]])

        makers = [
            lambda: ["SET", key(), rng.choice("123")], lambda: ["GET", key()],
            lambda: ["SETBIT", key(), "7", "1"], lambda: ["APPEND", key(), "x"],
            lambda: ["MGET", key(), key()], lambda: ["MGET", *same()],
            lambda: ["MSET", key(), "1", key(), "2"], lambda: ["DEL", *same()],
            lambda: ["DEL", key(), key(), key()], lambda: ["EXISTS", key(), key()],
            lambda: ["BITOP", "OR", key(), key(), key()], lambda: ["RENAME", *same()],
            lambda: ["RENAME", key(), key()], lambda: ["COPY", key(), key()],
            lambda: ["WATCH", key()], lambda: ["WATCH", key(), key()], lambda: ["UNWATCH"],
            lambda: ["SPUBLISH", key(), "m"], lambda: ["MULTI"], lambda: ["MULTI"],
            lambda: ["EXEC"], lambda: ["EXEC"], lambda: ["EXEC"], lambda: ["DISCARD"],
            lambda: ["NOSUCH"], lambda: ["OBJECT", "ENCODING", key()], lambda: ["DBSIZE"],
            lambda: ["GET"], lambda: ["SELECT", rng.choice("01")],
            lambda: ["MSETNX", key(), "1", key(), "2"], lambda: ["READONLY"],
            lambda: ["READWRITE"], lambda: ["ASKING"], lambda: ["PING"],
            lambda: ["CLUSTER", "COUNTKEYSINSLOT", rng.choice(["15495", "3300", "7365"])],
        ]  # fmt: skip
        seen = {}
        for _ in range(COMMANDS):
            reply = self.compare(rng.randrange(3), *rng.choice(makers)())
            code = reply.split(b" ")[0].split(b"\r")[0]
            seen[code] = seen.get(code, 0) + 1
        for code in (b"-MOVED", b"-CROSSSLOT", b"-EXECABORT", b"+QUEUED", b"+OK"):
            self.assertGreater(seen.get(code, 0), COMMANDS / 200, seen)

    def test_shard_channels(self):
        for node in range(3):
            for name in KEYS:
                reply = self.compare(node, "SSUBSCRIBE", name)
                if not reply.startswith(b"-"):
                    self.compare(node, "SUNSUBSCRIBE", name)


class NewLeaderTest(ClusterTest):
    def test_writes_without_keys_wait_for_its_permit(self):
        """A new leader reports `cluster_state:ok` before it may acknowledge writes. Until it may
        acknowledge them, it delays its replies to FLUSHALL and FLUSHDB."""
        leader = self.start_cluster(1)[0]
        with leader.connect() as connection:
            for command in ("FLUSHALL", "FLUSHDB"):
                self.assertEqual(connection.call(command), b"OK")
            reply = connection.call("SWAPDB", "0", "1")
            self.assertRegex(reply.text, "^ERR SWAPDB ")


if __name__ == "__main__":
    unittest.main()
