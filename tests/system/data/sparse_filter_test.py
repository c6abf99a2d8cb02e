#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that a large filter with few items needs memory and disk space only for these items. This
holds in saves, full syncs, copies and loads.

BLOOMERY_SPARSE_CAPACITY=2000000000 BLOOMERY_SPARSE_ITEMS=20000 is the largest useful size. The test
prints how much memory each operation adds.
"""

import pathlib
import shutil
import tempfile
import unittest

from harness import wait_until, wait_until_loaded
from harness.counts import count
from harness.info import info
from harness.replication import ReplicaTest

CAPACITY = count("SPARSE_CAPACITY")
ITEMS = count("SPARSE_ITEMS")
MB = 1_000_000
# In a native filter at an error rate of 1 % each item sets bits in one or two cache lines.
# So an item touches at most two memory pages.
TOUCHED_BYTES = ITEMS * 2 * 4096
GROWTH_BYTES_MAX = 64 * MB * CAPACITY // 2_000_000_000 + 4 * MB
FILE_BYTES_MAX = 60 * MB * CAPACITY // 2_000_000_000 + MB


class SparseFilterTest(ReplicaTest):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-sparse-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def start(self):
        server = self.start_server(
            "--appendonly", "yes", "--enable-debug-command", "yes", directory=self.directory
        )
        connection = self.connect(server)
        wait_until_loaded(connection)
        return server, connection

    def memory(self, server, connection):
        """Returns the server's resident bytes: the filter arrays plus the anonymous memory. The
        bytes of the arrays include pages that only forked child processes have touched.
        """
        fields = info(connection, "memory")
        arrays = int(fields["mem_filter_arrays_resident"])
        self.assertLess(arrays, int(fields["mem_filter_arrays_reserved"]) + MB)
        status = pathlib.Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
        return arrays + int(status.split("RssAnon:")[1].split()[0]) * 1024

    def expect_no_growth(self, what, server, connection, before_bytes):
        growth_bytes = self.memory(server, connection) - before_bytes
        print(f"{what}: {growth_bytes / MB:+.1f} MB")
        self.assertLess(growth_bytes, GROWTH_BYTES_MAX, what)

    def save(self, connection, command, field):
        self.assertNotIn(b"ERR", connection.call(command))
        wait_until(lambda: info(connection, "persistence")[field] == "0", command)
        wait_until(
            lambda: info(connection, "persistence")["aof_rewrite_in_progress"] == "0", command
        )

    def expect_small(self, path):
        size_bytes = path.stat().st_size
        print(f"{path.name}: {size_bytes / MB:.1f} MB")
        self.assertLess(size_bytes, FILE_BYTES_MAX)

    def base(self):
        (path,) = (self.directory / "appendonlydir").glob("*.base.*")
        return path

    def fill(self, connection):
        self.assertEqual(connection.call("BF.RESERVE", "f", "0.01", CAPACITY), b"OK")
        for start in range(0, ITEMS, 1000):
            connection.call("BF.MADD", "f", *range(start, min(start + 1000, ITEMS)))
        self.card = connection.call("BF.CARD", "f")
        self.assertGreater(self.card, ITEMS * 0.99)

    def expect_items(self, connection):
        self.assertEqual(connection.call("BF.CARD", "f"), self.card)
        for start in range(0, ITEMS, 1000):
            items = range(start, min(start + 1000, ITEMS))
            self.assertNotIn(0, connection.call("BF.MEXISTS", "f", *items))

    def test_saves_copies_and_loads_cost_only_the_items(self):
        server, connection = self.start()
        before_bytes = self.memory(server, connection)
        self.fill(connection)
        filled_bytes = self.memory(server, connection)
        print(f"{CAPACITY} reserved, {ITEMS} added: {(filled_bytes - before_bytes) / MB:.1f} MB")
        self.assertLess(filled_bytes - before_bytes, TOUCHED_BYTES + 8 * MB)

        self.save(connection, "BGSAVE", "rdb_bgsave_in_progress")
        self.expect_no_growth("BGSAVE", server, connection, filled_bytes)
        self.expect_small(self.directory / "dump.rdb")
        for preamble in ("yes", "no"):
            connection.call("CONFIG", "SET", "aof-use-rdb-preamble", preamble)
            self.save(connection, "BGREWRITEAOF", "aof_rewrite_in_progress")
            self.expect_no_growth("BGREWRITEAOF", server, connection, filled_bytes)
            self.expect_small(self.base())

        replica = self.start_server()
        follower = self.connect(replica)
        before_sync_bytes = self.memory(replica, follower)
        self.follow(follower, server.port)
        self.wait_for_link(follower)
        self.expect_no_growth("full sync, leader", server, connection, filled_bytes)
        self.expect_items(follower)
        self.expect_no_growth(
            "full sync, replica", replica, follower, before_sync_bytes + TOUCHED_BYTES
        )

        self.assertEqual(connection.call("COPY", "f", "copy"), 1)
        self.expect_no_growth("COPY", server, connection, filled_bytes + TOUCHED_BYTES)
        self.assertEqual(connection.call("DEL", "copy"), 1)
        connection.call("DUMP", "f")
        connection.call("BF.SCANDUMP", "f", 0)
        connection.call("BF.SCANDUMP", "f", 1)
        connection.call("BF.STATS", "f")
        connection.call("DEBUG", "DIGEST-VALUE", "f")
        self.expect_no_growth("reading it whole", server, connection, filled_bytes + TOUCHED_BYTES)

        connection.close()
        self.assertEqual(server.stop(), [])
        server, connection = self.start()
        # The replayed log also contains COPY and DEL. So the test waits until the server has freed
        # the copied filter.
        wait_until(lambda: info(connection, "memory")["lazyfree_pending_objects"] == "0")
        self.expect_no_growth("restart", server, connection, filled_bytes)
        self.expect_items(connection)


if __name__ == "__main__":
    unittest.main()
