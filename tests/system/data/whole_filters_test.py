#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests commands on whole filters (BF.MERGE, BF.CLEAR), on many filters (BF.KADD) and with an
expiry at creation, while child processes save. A restarted server and a replica must have the same
data.
"""

import pathlib
import random
import shutil
import tempfile
import unittest

from harness import seed_from_environment, wait_until, wait_until_loaded
from harness.counts import count
from harness.info import info
from harness.replication import ReplicaTest

LAYOUTS = ("native", "native-2", "redisbloom", "valkey-bloom")
ROUNDS = count("WHOLE_FILTER_ROUNDS")
# Capacity of a filter whose bit array exceeds 1 MiB, so that the server shares the array with child
# processes that save.
WIDE = 1_500_000


class WholeFiltersTest(ReplicaTest):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-whole-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.rng = random.Random(seed_from_environment())

    def start(self, *options):
        server = self.start_server(
            "--enable-debug-command", "yes", "--bf.bloom-use-random-seed", "no",
            "--repl-diskless-sync-delay", "0", *options,
            directory=self.directory,
        )  # fmt: skip
        connection = self.connect(server)
        wait_until_loaded(connection)
        return server, connection

    def fill(self, connection):
        for database in (0, 5):
            connection.call("SELECT", database)
            for layout in LAYOUTS:
                for name in "ab":
                    key = f"{layout}:{name}"
                    connection.call("BF.RESERVE", key, "0.01", WIDE, "LAYOUT", layout)
                    for start in range(0, 20_000, 1000):
                        connection.call("BF.MADD", key, *range(start, start + 1000))

    def commands(self):
        """Returns a few random commands, of which none may fail with WRONGTYPE."""
        chance = self.rng
        layout = chance.choice(LAYOUTS)
        one, other = (f"{layout}:{name}" for name in chance.sample("abc", 2))
        items = [chance.randrange(10**9) for _ in range(chance.randrange(1, 50))]
        return chance.choice([
            [("BF.KADD", 2, f"{layout}:a", f"{layout}:b", *items)],
            [("BF.MADD", f"{layout}:a", *items), ("BF.MERGE", f"{layout}:b", f"{layout}:a"),
             ("BF.MADD", f"{layout}:a", *items[:3], "later"), ("BF.CARD", f"{layout}:b")],
            [("BF.MERGE", one, f"{layout}:a", f"{layout}:b", other, "FORCE"),
             ("BF.ADD", one, items[0])],
            [("MULTI",), ("BF.MERGE", f"{layout}:c", f"{layout}:a"),
             ("BF.CLEAR", f"{layout}:c"), ("BF.MADD", f"{layout}:c", *items), ("EXEC",)],
            [("BF.INSERT", f"gone:{items[0]}", "PX", 1, "ITEMS", "x"),
             ("BF.INSERT", f"kept:{items[0]}", "EX", 1000, "ITEMS", *items)],
            [("BF.CLEAR", f"kept:{items[0]}"), ("BF.RESERVE", "r", "0.01", 100, "PXAT", 1)],
        ])  # fmt: skip

    def write(self, connection, rounds):
        commands = [command for _ in range(rounds) for command in self.commands()]
        for reply in connection.pipeline([("SELECT", self.rng.choice([0, 5])), *commands]):
            self.assertNotIn(b"WRONGTYPE", str(reply).encode())

    def digest(self, connection):
        """Waits until the keys with a short expiry are gone, and returns the digest of the data."""
        wait_until(lambda: not self.keys_that_go(connection), "the end of what expires")
        for database in (0, 5):
            connection.call("SELECT", database)
            self.wait_until_deleted_what_expired(connection)
        return connection.call("DEBUG", "DIGEST")

    def keys_that_go(self, connection):
        left = []
        for database in (0, 5):
            connection.call("SELECT", database)
            left += connection.call("KEYS", "gone:*") + connection.call("KEYS", "r")
        return left

    def is_saving(self, connection):
        fields = info(connection, "persistence")
        return "1" in (fields["rdb_bgsave_in_progress"], fields["aof_rewrite_in_progress"])

    def test_a_log_and_a_replica_repeat_them(self):
        options = ("--appendonly", "yes", "--appendfsync", "always")
        server, connection = self.start(*options)
        self.fill(connection)
        replica = self.start_server("--enable-debug-command", "yes")
        follower = self.connect(replica)
        overlaps = 0
        for number in range(ROUNDS):
            self.follow(follower, server.port)
            self.write(connection, 10)
            connection.call("CONFIG", "SET", "aof-use-rdb-preamble", "yes" if number % 2 else "no")
            connection.call("BGREWRITEAOF")
            for _ in range(20):
                overlaps += self.is_saving(connection)
                self.write(connection, 3)
            wait_until(lambda: not self.is_saving(connection), "the children")
            self.write(connection, 3)
            self.wait_for_link(follower)
            expected = self.digest(connection)
            self.wait_until_equal_offsets(connection, follower)
            self.assertEqual(follower.call("DEBUG", "DIGEST"), expected)
            server.crash()
            server, connection = self.start(*options)
            self.assertEqual(self.digest(connection), expected)
        print(f"{ROUNDS} kills, {overlaps} times a child was saving", flush=True)
        self.assertGreater(overlaps, 0)

    def test_a_snapshot_holds_them(self):
        server, connection = self.start("--appendonly", "no")
        self.fill(connection)
        self.write(connection, 100)
        expected = self.digest(connection)
        self.assertEqual(connection.call("SAVE"), b"OK")
        server.crash()
        server, connection = self.start("--appendonly", "no")
        self.assertEqual(self.digest(connection), expected)


if __name__ == "__main__":
    unittest.main()
