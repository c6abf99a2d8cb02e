#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests filters of every kind, with one, two and more layers. In one test maxmemory refuses their
growth. In another they expire while the server saves, rewrites its append log or reloads its data.
"""

import itertools
import pathlib
import shutil
import tempfile
import time
import unittest

from harness import ServerTest, let_time_pass, wait_until, wait_until_loaded
from harness.info import info
from harness.replication import DEBUG, digest

KINDS = {
    "plain": (),
    "fingerprints": ("DELETABLE",),
    "regions": ("DELETABLE", "REGIONS", 4),
    "window": ("WINDOW", 3600, "GENERATIONS", 2),
}
LAYERS = (1, 2, 3)
BATCH = 1000


def layer_count(connection, key):
    """Returns the filter's number of layers. A filter with a window must have one generation,
    because BF.INFO counts the layers of all generations.
    """
    return connection.call("BF.INFO", key, "FILTERS")[0]


class FilterKindsTest(ServerTest):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-kinds-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def client(self, server):
        connection = server.connect()
        self.addCleanup(connection.close)
        return connection

    def grow(self, connection, key, layers, numbers):
        """Adds items until the filter has this many layers."""
        while layer_count(connection, key) < layers:
            items = itertools.islice(numbers, BATCH)
            self.assertLessEqual(set(connection.call("BF.MADD", key, *items)), {0, 1})

    def test_growth_that_maxmemory_refuses_changes_nothing(self):
        server = self.start_server("--save", "", "--maxmemory-policy", "noeviction", *DEBUG)
        connection = self.client(server)
        for kind, words in KINDS.items():
            connection.call("FLUSHALL")
            # Waits until the server has freed the memory of the flushed keys, which counts as used
            # until then.
            wait_until(
                lambda: info(connection, "memory")["lazyfree_pending_objects"] == "0",
                "the flush",
            )
            numbers = itertools.count()
            reserve = ("BF.RESERVE", kind, "0.01", 300_000, "EXPANSION", 1, *words)
            self.assertEqual(connection.call(*reserve), b"OK")
            for layers in LAYERS:
                with self.subTest(kind, layers=layers):
                    self.grow(connection, kind, layers, numbers)
                    self.refuse_growth(connection, kind, layers, numbers)

    def nearly_fill(self, connection, key, numbers):
        """Adds items until the filter is about to grow."""
        while True:
            room = connection.call("BF.INFO", key, "CAPACITY")[0] - connection.call("BF.CARD", key)
            if room <= 2 * BATCH:
                return
            items = itertools.islice(numbers, BATCH)
            self.assertLessEqual(set(connection.call("BF.MADD", key, *items)), {0, 1})

    def used_memory(self, connection):
        return int(info(connection, "memory")["used_memory"])

    def add_all(self, connection, key, items):
        """Returns the replies of BF.MADD. The server compares maxmemory with its last measurement
        of memory, which may include memory that DEBUG DIGEST has freed since. So INFO is sent
        first, because it makes the server measure again.
        """
        self.used_memory(connection)
        replies = connection.call("BF.MADD", key, *items)
        self.assertIsInstance(replies, list)
        return replies

    def refuse_growth(self, connection, kind, layers, numbers):
        # Threads that run only while the server starts may end during this test, and may free as
        # much memory as a layer uses. So used memory is measured right before the filter grows.
        self.nearly_fill(connection, kind, numbers)
        self.assertEqual(layer_count(connection, kind), layers)
        layer_bytes = connection.call("MEMORY", "USAGE", kind) // layers
        limit = self.used_memory(connection) + layer_bytes * 3 // 4
        connection.call("CONFIG", "SET", "maxmemory", limit)
        errors = []
        while not errors:
            items = list(itertools.islice(numbers, BATCH))
            replies = self.add_all(connection, kind, items)
            errors = [reply for reply in replies if not isinstance(reply, int)]
        self.assertRegex(errors[0].text, "^ERR .*inserting")
        added = [item for item, reply in zip(items, replies) if isinstance(reply, int)]
        before = digest(connection)
        replies = self.add_all(connection, kind, items[len(added) :])
        # The rejected items are sent again, and the filter rejects them again. A reply may also be
        # 0: the item is a false positive, so the filter reports that the item is already present.
        self.assertLessEqual({reply for reply in replies if isinstance(reply, int)}, {0})
        self.assertTrue(any(not isinstance(reply, int) for reply in replies))
        self.assertEqual(digest(connection), before)
        self.assertEqual(layer_count(connection, kind), layers)
        if added:
            self.assertEqual(set(connection.call("BF.MEXISTS", kind, *added)), {1})
        if "DELETABLE" in KINDS[kind]:
            # After maxmemory has refused an add, BF.DEL must still work, and make room for an add.
            self.assertIn(connection.call("BF.DEL", kind, 0), ([1], [-1]))
        connection.call("CONFIG", "SET", "maxmemory", 0)
        connection.call("BF.ADD", kind, 0)

    def start_logged(self):
        server = self.start_server(
            "--appendonly", "yes", "--appendfsync", "always", *DEBUG, directory=self.directory,
        )  # fmt: skip
        connection = self.client(server)
        wait_until_loaded(connection)
        return server, connection

    def fill(self, connection):
        """Fills filters of all kinds, and returns the items of each."""
        items = {}
        for kind, words in KINDS.items():
            for layers in LAYERS:
                key, numbers = f"{kind} {layers}", itertools.count()
                connection.call("BF.RESERVE", key, "0.001", 1000, *words)
                connection.call("BF.MADD", key, *itertools.islice(numbers, 200))
                self.grow(connection, key, layers, numbers)
                items[key] = range(next(numbers))
            # At this capacity the array exceeds 1 MiB. The server shares such an array with child
            # processes that save, unless the layout clears bits.
            connection.call("BF.RESERVE", f"{kind} wide", "0.001", 1_500_000, *words)
            connection.call("BF.MADD", f"{kind} wide", *range(BATCH))
            items[f"{kind} wide"] = range(BATCH)
        return items

    def check_expiring(self, connection, copy, items, deadline):
        """Checks that all items are found before the filter expires, and none afterwards."""
        asked = time.time()
        found = connection.call("BF.MEXISTS", copy, *items)
        if time.time() < deadline:
            self.assertEqual(set(found), {1}, copy)
        elif asked > deadline + 0.002:  # expiry has a resolution of 1 ms
            self.assertEqual(set(found), {0}, copy)

    def test_expiry_during_saves_rewrites_and_reloads(self):
        server, connection = self.start_logged()
        items = self.fill(connection)
        before = digest(connection)
        begin = time.time()
        deadlines = {}
        for number, (key, turn) in enumerate(itertools.product(items, range(6))):
            copy = f"copy {turn} of {key}"
            self.assertEqual(connection.call("COPY", key, copy), 1)
            at_ms = int((begin + 0.5 + number * 2 / (6 * len(items))) * 1000)
            connection.call("PEXPIREAT", copy, at_ms)
            deadlines[copy] = at_ms / 1000
        rounds = 0
        while rounds < 3 or time.time() < max(deadlines.values()):
            connection.call(("BGREWRITEAOF", "BGSAVE")[rounds % 2])
            # DEBUG RELOAD fails while a child process saves, so it is retried.
            wait_until(lambda: connection.call("DEBUG", "RELOAD") == b"OK", "a reload")
            rounds += 1
            near = sorted(deadlines, key=lambda copy: abs(deadlines[copy] - time.time()))[:6]
            for copy in near:
                key = copy.partition(" of ")[2]
                self.check_expiring(connection, copy, items[key], deadlines[copy])
        wait_until(lambda: time.time() > max(deadlines.values()) + 0.01, "the last expiry")
        for copy in deadlines:
            self.assertEqual(connection.call("EXISTS", copy), 0)
        # DEBUG DIGEST includes expired keys until the server deletes them.
        wait_until(lambda: connection.call("DBSIZE") == len(items), "the active expiry")
        self.assertEqual(digest(connection), before)
        for key in items:
            connection.call("COPY", key, f"last copy of {key}")
            connection.call("PEXPIRE", f"last copy of {key}", 50)
        server.crash()
        let_time_pass(0.06, why="keys with 50 ms to live expire while no server runs")
        _, connection = self.start_logged()
        wait_until(lambda: connection.call("DBSIZE") == len(items), "the active expiry")
        self.assertEqual(digest(connection), before)
        for key, added in items.items():
            self.assertEqual(set(connection.call("BF.MEXISTS", key, *added)), {1}, key)


if __name__ == "__main__":
    unittest.main()
