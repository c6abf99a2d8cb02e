#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests this server as the replica of Debian's redis-server: under load, cut off, and restarted."""

import random
import tempfile
import threading
import unittest

from harness import seed_from_environment, wait_until
from harness.cutting_proxy import CuttingProxy
from harness.info import info
from harness.replication import ReplicaTest
from harness.resp import Connection, encode


class Writer(threading.Thread):
    """Writes strings and bitmaps over one connection, until stop()."""

    def __init__(self, port, name, seed):
        super().__init__(daemon=True)
        self.connection = Connection(port)
        self.name = name
        self.random = random.Random(seed)
        self.count = 0
        self.stopping = False

    def command(self):
        key = f"{self.name}:{self.random.randrange(50)}"
        kind = self.random.randrange(9)
        if kind < 3:
            return encode("SET", "s" + key, "x" * self.random.randrange(2000))
        if kind < 6:
            return encode("SETBIT", "b" + key, self.random.randrange(50000), 1)
        if kind == 6:
            return encode("INCR", "n" + key)
        if kind == 7:
            return encode("DEL", "s" + key)
        return b"".join(
            encode(*words)
            for words in (("MULTI",), ("APPEND", "a" + key, "y"), ("INCR", "n" + key), ("EXEC",))
        )

    def run(self):
        while not self.stopping:
            commands = [self.command() for _ in range(20)]
            self.connection.send(b"".join(commands))
            for command in commands:
                for _ in range(4 if b"MULTI" in command else 1):
                    self.connection.read_reply()
            self.count += len(commands)
        self.connection.close()

    def stop(self):
        self.stopping = True
        self.join()


def contents(connection):
    """Returns all keys with their values and expiries."""
    keys = sorted(connection.call("KEYS", "*"))
    values = connection.pipeline([("GET", key) for key in keys])
    expiries = connection.pipeline([("PEXPIRETIME", key) for key in keys])
    return {key: (value[0], expiry[0]) for key, value, expiry in zip(keys, values, expiries)}


class RedisLeaderTest(ReplicaTest):
    def start_leader(self, *options):
        leader = self.start_redis("--repl-diskless-sync-delay", "0", *options)
        # redis-server warns when it loses a replica, so the test accepts all its warnings.
        leader.expect_log("")
        return leader, self.connect(leader)

    def start_replica(self, *options):
        replica = self.start_server(*options)
        return replica, self.connect(replica)

    def check_equal(self, leader, replica):
        self.wait_until_equal_offsets(leader, replica)
        expected = contents(leader)
        found = contents(replica)
        self.assertEqual(sorted(expected), sorted(found))
        for key, value in expected.items():
            self.assertEqual(found[key], value, key)
        return len(expected)

    def test_both_forms_of_a_full_sync(self):
        for diskless in ("yes", "no"):
            with self.subTest(diskless=diskless):
                redis, leader = self.start_leader("--repl-diskless-sync", diskless)
                for number in range(1000):
                    leader.call("SET", f"key:{number}", "v" * number)
                leader.call("SELECT", "3")
                leader.call("SETBIT", "bits", "100000", "1")
                _, replica = self.start_replica()
                replica.call("SET", "old", "goes")
                self.follow(replica, redis.port)
                self.wait_for_link(replica)
                leader.call("SELECT", "0")
                self.assertEqual(self.check_equal(leader, replica), 1000)
                leader.call("SELECT", "3")
                replica.call("SELECT", "3")
                leader.call("SETBIT", "bits", "7", "1")
                self.check_equal(leader, replica)

    def test_follows_under_load(self):
        seed = seed_from_environment()
        redis, leader = self.start_leader()
        writers = [Writer(redis.port, f"w{number}", seed + number) for number in range(3)]
        for writer in writers:
            writer.start()
        self.wait_for_writes(writers, 300)
        _, replica = self.start_replica("--appendonly", "yes")
        self.follow(replica, redis.port)
        self.wait_for_link(replica)
        self.wait_for_writes(writers, 3000)
        for writer in writers:
            writer.stop()
        keys = self.check_equal(leader, replica)
        print(f"{sum(writer.count for writer in writers)} writes, {keys} keys equal")
        self.assertGreater(keys, 100)

    def test_cuts_go_on_with_continue(self):
        seed = seed_from_environment()
        chance = random.Random(seed)
        redis, leader = self.start_leader("--repl-backlog-size", "512mb")
        # The first connection is cut only after 200,000 bytes, so it receives the whole snapshot.
        # Later connections are cut after a random number of bytes, even during the handshake.
        budgets = iter([200_000])
        proxy = CuttingProxy(
            redis.port, lambda: next(budgets, None) or int(10 ** chance.uniform(0, 5.5))
        )
        self.addCleanup(proxy.close)
        writers = [Writer(redis.port, f"w{number}", seed + number) for number in range(3)]
        replica_server, replica = self.start_replica()
        self.follow(replica, proxy.port)
        self.wait_for_link(replica)
        for writer in writers:
            writer.start()
        wait_until(lambda: proxy.cuts >= 25, "25 cuts")
        for writer in writers:
            writer.stop()
        proxy.budget = lambda: None
        proxy.cut_all()
        keys = self.check_equal(leader, replica)
        stats = info(leader, "stats")
        print(f"{proxy.cuts} cuts, {keys} keys equal, full {stats['sync_full']}, "
              f"partial {stats['sync_partial_ok']}")
        self.assertEqual(stats["sync_full"], "1")
        self.assertGreater(int(stats["sync_partial_ok"]), 5)
        self.assertFalse(replica_server.unexpected_lines())

    def test_restart_asks_for_the_rest(self):
        redis, leader = self.start_leader()
        directory = tempfile.mkdtemp(prefix="bloomery-replica-")
        options = ("--replicaof", f"127.0.0.1 {redis.port}", "--save", "3600 1")
        server, replica = self.start_replica(*options, "--dir", directory)
        leader.call("SET", "a", "1")
        leader.call("SET", "gone", "1")
        self.wait_for_link(replica)
        self.check_equal(leader, replica)
        leader.call("PEXPIRE", "gone", "300")
        self.wait_until_equal_offsets(leader, replica)
        self.assertFalse(server.stop())
        leader.call("SET", "b", "2")
        wait_until(lambda: leader.call("EXISTS", "gone") == 0, "the expiry")
        _, replica = self.start_replica(*options, "--dir", directory)
        self.wait_for_link(replica)
        self.assertEqual(self.check_equal(leader, replica), 2)
        self.assertEqual(info(leader, "stats")["sync_full"], "1")
        self.assertEqual(info(leader, "stats")["sync_partial_ok"], "1")


if __name__ == "__main__":
    unittest.main()
