#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests filters whose windows rotate during snapshots, rewrites, moves of keys, replication and
kill -9. A replica and a server that replays its log must have the same data as the leader.
"""

import pathlib
import random
import shutil
import tempfile
import unittest

from harness import free_port, let_time_pass, pace, seed_from_environment, wait_until
from harness.info import info
from harness.replication import DEBUG, ReplicaTest, digest

WINDOW_S = 2
ROUNDS = 250
FILTERS = {
    "time": ("0.001", 2000, "WINDOW", WINDOW_S),
    "one layer": ("0.001", 2_000_000, "WINDOW", WINDOW_S, "GENERATIONS", 2),
    "grown": ("0.001", 60, "WINDOW", WINDOW_S, "GENERATIONS", 8),
    "refreshed": ("0.001", 400, "WINDOW", WINDOW_S, "REFRESH"),
    "items": ("0.001", 500, "WINDOW", 500, "ITEMS"),
}


class WindowTest(ReplicaTest):
    def setUp(self):
        self.rng = random.Random(f"{seed_from_environment()}/{self.id()}")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-window-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def start_logged(self, *options):
        server = self.start_server(
            "--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0",
            *DEBUG, *options, directory=self.directory,
        )  # fmt: skip
        server.expect_log(r"Replica .* is disconnected|There is a child saving. Killing it!")
        server.expect_log(r"is torn: .* cut off at offset|onnect.* refused|MASTER|leader")
        return server

    def add(self, connection):
        for key in FILTERS:
            items = [self.rng.randrange(3000) for _ in range(20)]
            self.assertEqual(len(connection.call("BF.MADD", key, *items)), len(items))

    def disturb(self, connection, step):
        """Runs one of eight events, such as a move or a save, on one key or on all keys."""
        key = self.rng.choice(list(FILTERS))
        what = step % 8
        if what == 0:
            connection.call("BGREWRITEAOF")
        elif what == 1:
            connection.call("BGSAVE")
        elif what == 2:
            connection.call("COPY", key, f"copy of {key}", "REPLACE")
        elif what == 3:
            connection.call("RENAME", key, "moving")
            self.assertEqual(connection.call("MOVE", "moving", 1), 1)
            connection.call("SWAPDB", 1, 2)
            connection.call("SELECT", 2)
            connection.call("MOVE", "moving", 0)
            connection.call("SELECT", 0)
            self.assertEqual(connection.call("RENAME", "moving", key), b"OK")
        elif what == 4:
            payload = connection.call("DUMP", key)
            restored = connection.call("RESTORE", f"restored {key}", 0, payload, "REPLACE")
            self.assertEqual(restored, b"OK")
        elif what == 5:
            connection.call("COPY", key, "expiring", "REPLACE")
            connection.call("PEXPIRE", "expiring", 300)
        elif what == 6:
            for command in (("MULTI",), ("BF.ADD", key, step), ("BF.ADD", "time", step), ("EXEC",)):
                connection.call(*command)
        else:
            connection.call("BF.CLEAR", f"copy of {key}")

    def generations(self, connection, key):
        stats = connection.call("BF.STATS", key)
        window = stats[stats.index(b"window") + 1]
        return window[window.index(b"alive") + 1]

    def run_for_a_while(self, connection):
        step = 0
        for _ in range(ROUNDS):
            self.add(connection)
            if self.rng.random() < 0.2:
                self.disturb(connection, step)
                step += 1
            pace(0.01)
        wait_until(lambda: self.is_rich(connection), "generations and layers")

    def counts_new_items(self, connection):
        connection.call("BF.MADD", "time", *range(20))
        return connection.call("BF.CARD", "time") > 0

    def is_rich(self, connection):
        """Adds items, then returns whether the filter named `time` has five generations, and a
        generation of the filter named `grown` has at least three layers.
        """
        self.add(connection)
        # Three layers need 25 items in one generation, which lasts a quarter of a second.
        connection.call("BF.MADD", "grown", *(self.rng.randrange(3000) for _ in range(40)))
        layers = [fields[fields.index(b"layers") + 1] for fields in
                  self.generations(connection, "grown")]  # fmt: skip
        return len(self.generations(connection, "time")) == 5 and max(layers) >= 3

    def test_rotations_are_the_same_everywhere(self):
        leader = self.start_logged()
        connection = self.connect(leader)
        for key, words in FILTERS.items():
            self.assertEqual(connection.call("BF.RESERVE", key, *words), b"OK")
        replica = self.connect(self.start_server("--repl-timeout", "10", *DEBUG))
        self.follow(replica, leader.port)
        self.wait_for_link(replica)
        self.run_for_a_while(connection)

        # CLIENT PAUSE stops not only writes but also the rotation of windows.
        connection.call("CLIENT", "PAUSE", 3_600_000, "WRITE")
        self.wait_until_equal_offsets(connection, replica)
        before = digest(connection)
        let_time_pass(0.7, why="generations would rotate, were writes not paused")
        self.assertEqual(digest(connection), before)
        self.assertEqual(digest(replica), before)
        leader.crash()

        # A server that starts as a replica rotates no window by itself. So after the start its data
        # must equal the data of the killed leader.
        server = self.start_logged("--replicaof", f"127.0.0.1 {free_port()}")
        again = self.connect(server)
        wait_until(lambda: info(again, "persistence")["loading"] == "0", "the data")
        self.assertEqual(digest(again), before)

        # Replicas do not rotate windows by the clock. After their promotion both servers do, even
        # if no client writes.
        for promoted in (again, replica):
            self.assertEqual(promoted.call("REPLICAOF", "NO", "ONE"), b"OK")
        for promoted in (again, replica):
            for key in FILTERS:
                if key != "items":
                    wait_until(
                        lambda one=promoted, key=key: one.call("BF.CARD", key) == 0,
                        f"nothing is left in {key}",
                    )
            self.assertGreaterEqual(promoted.call("BF.CARD", "items"), 375)
            # The window lasts two seconds, so on a busy machine it may end before BF.CARD.
            wait_until(lambda one=promoted: self.counts_new_items(one), "items after a promotion")

    def test_a_replica_may_evict_a_window(self):
        leading = self.start_server("--repl-diskless-sync-delay", "0")
        leader = self.connect(leading)
        leader.call("BF.RESERVE", "time", *FILTERS["time"])
        leader.call("BF.MADD", "time", *range(20))
        server = self.start_server("--replica-ignore-maxmemory", "no",
                                   "--maxmemory-policy", "allkeys-lru")  # fmt: skip
        server.expect_log("A command of the leader failed: 'BF.TURN'")
        replica = self.connect(server)
        self.follow(replica, leading.port)
        self.wait_for_link(replica)
        replica.call("CONFIG", "SET", "maxmemory", 1)
        wait_until(lambda: replica.call("DBSIZE") == 0, "the eviction of the window")
        failed = "unexpected_error_replies"
        wait_until(lambda: int(info(replica, "stats")[failed]) > 0, "a rotation of the leader")
        leader.call("SET", "last", 1)
        self.wait_until_equal_offsets(leader, replica)
        self.assertEqual(info(leader, "stats")["sync_full"], "1")


if __name__ == "__main__":
    unittest.main()
