#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Deletes items during snapshots, log rewrites, moves of keys, replication and kill -9. Items that
were added and not deleted must survive, and all servers must have the same data.
"""

import pathlib
import random
import shutil
import tempfile
import unittest

from harness import let_time_pass, seed_from_environment, wait_until
from harness.info import info
from harness.replication import DEBUG, ReplicaTest, digest

ROUNDS = 300
FILTERS = {
    "fingerprints": ("0.001", 200_000, "DELETABLE"),
    "fingerprints grown": ("0.001", 60, "DELETABLE"),
    "regions": ("0.001", 2_000_000, "DELETABLE", "REGIONS", 4),
    "regions grown": ("0.001", 60, "DELETABLE", "REGIONS", 10),
}


class DeletionTest(ReplicaTest):
    def setUp(self):
        self.rng = random.Random(f"{seed_from_environment()}/{self.id()}")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-deletion-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        # For each filter, the items whose BF.ADD answered 1 and that are not deleted.
        self.kept = {key: set() for key in FILTERS}

    def start_logged(self):
        server = self.start_server(
            "--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0",
            *DEBUG, directory=self.directory,
        )  # fmt: skip
        server.expect_log(r"Replica .* is disconnected|There is a child saving. Killing it!")
        server.expect_log(r"is torn: .* cut off at offset")
        return server

    def churn(self, connection):
        for key, kept in self.kept.items():
            items = self.rng.sample(range(3000), 20)
            answers = connection.call("BF.MADD", key, *items)
            kept.update(item for item, answer in zip(items, answers) if answer == 1)
            gone = self.rng.sample(sorted(kept), min(len(kept) // 2, self.rng.randrange(40)))
            if not gone:
                continue
            answers = connection.call("BF.DEL", key, *gone)
            # BF.DEL answers 0 only for an absent item, and all of these items are present.
            self.assertNotIn(0, answers, key)
            kept.difference_update(gone)

    def disturb(self, connection, step):
        key = self.rng.choice(list(FILTERS))
        what = step % 6
        if what == 0:
            connection.call("BGREWRITEAOF")
        elif what == 1:
            connection.call("BGSAVE")
        elif what == 2:
            self.assertEqual(connection.call("COPY", key, f"copy of {key}", "REPLACE"), 1)
            connection.call("PEXPIRE", f"copy of {key}", 300)
        elif what == 3:
            self.assertEqual(connection.call("RENAME", key, "moving"), b"OK")
            self.assertEqual(connection.call("RENAME", "moving", key), b"OK")
        elif what == 4:
            payload = connection.call("DUMP", key)
            restored = connection.call("RESTORE", key, 0, payload, "REPLACE")
            self.assertEqual(restored, b"OK")
        elif connection.call("BF.EXISTS", key, "x") == 0:
            # BF.ADD would not add "x" if it were a false positive, and BF.DEL would then remove
            # another item.
            for command in (("MULTI",), ("BF.ADD", key, "x"), ("BF.DEL", key, "x"), ("EXEC",)):
                connection.call(*command)

    def check(self, connection):
        for key, kept in self.kept.items():
            items = sorted(kept)
            self.assertEqual(set(connection.call("BF.MEXISTS", key, *items)), {1}, key)

    def test_deletions_are_the_same_everywhere(self):
        leader = self.start_logged()
        connection = self.connect(leader)
        for key, words in FILTERS.items():
            self.assertEqual(connection.call("BF.RESERVE", key, *words), b"OK")
        replica = self.connect(self.start_server("--repl-timeout", "10", *DEBUG))
        self.follow(replica, leader.port)
        self.wait_for_link(replica)
        most_layers = 1
        for step in range(10_000):
            if step >= ROUNDS and most_layers > 1:
                break
            self.churn(connection)
            if self.rng.random() < 0.3:
                self.disturb(connection, step)
            layers = connection.call("BF.INFO", "fingerprints grown", "FILTERS")[0]
            most_layers = max(most_layers, layers)
        self.check(connection)
        self.assertGreater(most_layers, 1)
        for key in FILTERS:
            connection.call("DEL", f"copy of {key}")
        self.wait_until_equal_offsets(connection, replica)
        before = digest(connection)
        self.assertEqual(digest(replica), before)
        for key in FILTERS:
            self.assertEqual(connection.call("COPY", key, f"short {key}"), 1)
            self.assertEqual(connection.call("COPY", key, f"long {key}"), 1)
            self.assertEqual(connection.call("PEXPIRE", f"short {key}", 100), 1)
            self.assertEqual(connection.call("EXPIRE", f"long {key}", 1000), 1)
        leader.crash()
        let_time_pass(0.11, why="keys with 100 ms to live expire while no server runs")

        again = self.connect(self.start_logged())
        wait_until(lambda: info(again, "persistence")["loading"] == "0", "the data")
        for key, kept in self.kept.items():
            self.assertEqual(again.call("EXISTS", f"short {key}"), 0)
            self.assertGreater(again.call("TTL", f"long {key}"), 900)
            found = again.call("BF.MEXISTS", f"long {key}", *sorted(kept))
            self.assertEqual(set(found), {1}, key)
            self.assertEqual(again.call("DEL", f"long {key}"), 1)
        self.wait_until_deleted_what_expired(again)
        self.assertEqual(digest(again), before)
        self.check(again)
        self.churn(again)
        self.check(again)


if __name__ == "__main__":
    unittest.main()
