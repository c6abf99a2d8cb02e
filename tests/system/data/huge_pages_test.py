#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that full filters move to huge pages, and that sparse ones do not. Saves, restarts,
deletions and forks must change neither their contents nor the counted memory.
"""

import os
import pathlib
import shutil
import signal
import tempfile
import unittest

from harness import wait_until, wait_until_loaded
from harness.huge_pages import PIECE_BYTES, expect_items, fill, huge_bytes, memory_field
from harness.huge_pages import wait_for_huge_bytes
from harness.info import info
from harness.replication import ReplicaTest, digest

CAPACITY = 56_000_000  # at an error rate of 1 %, the array takes about 70 MB
CHECKED_ITEMS = 20_000
SPARSE_CAPACITY = 2_000_000_000
SPARSE_ITEMS = 2_000
SPARSE_BYTES_MAX = 64_000_000
MB = 1_000_000
THREAD = "huge-pages"
DEBUG = ("--enable-debug-command", "yes")


def smaps_bytes(server, name):
    text = pathlib.Path(f"/proc/{server.pid}/smaps_rollup").read_text(encoding="ascii")
    return int(text.split(f"{name}:")[1].split()[0]) * 1024


class HugePagesTest(ReplicaTest):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-huge-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def start(self, *options):
        server = self.start_server(*DEBUG, *options, directory=self.directory)
        connection = self.connect(server)
        wait_until_loaded(connection)
        return server, connection

    def wait_until_huge(self, server, connection, filters=1):
        """Waits until all filter arrays lie in huge pages, except for PIECE_BYTES per filter. Skips
        the test if the kernel rejects MADV_COLLAPSE. `filters` is the number of filters."""
        reserved = memory_field(connection, "mem_filter_arrays_reserved")
        if not wait_for_huge_bytes(server, connection, reserved - filters * PIECE_BYTES):
            self.skipTest("the kernel refuses MADV_COLLAPSE on a memfd")

    def save(self, connection):
        connection.call("BGSAVE")
        wait_until(lambda: info(connection, "persistence")["rdb_bgsave_in_progress"] == "0")

    def threads(self, server):
        return [path.read_text(encoding="ascii").strip()
                for path in pathlib.Path(f"/proc/{server.pid}/task").glob("*/comm")]

    def test_full_filters_move_to_huge_pages(self):
        server, connection = self.start()
        fill(connection, "f", CAPACITY)
        before = info(connection, "memory")
        expected = digest(connection)
        self.wait_until_huge(server, connection)
        after = info(connection, "memory")
        for field in ("mem_filter_arrays_reserved", "mem_filter_arrays_resident"):
            self.assertEqual(before[field], after[field])
        self.assertLess(int(after["used_memory"]) - int(before["used_memory"]), MB)
        self.assertLess(int(after["used_memory_rss"]) - int(before["used_memory_rss"]), 4 * MB)
        self.assertGreaterEqual(smaps_bytes(server, "ShmemPmdMapped"), huge_bytes(connection))
        self.assertEqual(digest(connection), expected)
        expect_items(self, connection, "f", CHECKED_ITEMS)

        self.save(connection)
        self.assertEqual(digest(connection), expected)
        connection.close()
        self.assertEqual(server.stop(), [])
        server, connection = self.start()
        self.assertEqual(digest(connection), expected)
        self.wait_until_huge(server, connection)
        self.assertEqual(digest(connection), expected)
        expect_items(self, connection, "f", CHECKED_ITEMS)

    def test_no_collapses_nothing(self):
        server, connection = self.start("--filter-huge-pages", "no")
        fill(connection, "f", CAPACITY)
        self.assertNotIn(THREAD, self.threads(server))
        self.assertEqual(huge_bytes(connection), 0)
        self.wait_until_huge(server, connection)
        self.assertIn(THREAD, self.threads(server))
        connection.call("CONFIG", "SET", "filter-huge-pages", "no")
        huge = huge_bytes(connection)
        fill(connection, "g", CAPACITY)
        self.save(connection)
        self.assertEqual(huge_bytes(connection), huge)
        self.assertEqual(connection.call("DEL", "f"), 1)
        wait_until(lambda: huge_bytes(connection) == 0)

    def test_sparse_reservations_stay_small(self):
        server, connection = self.start()
        connection.call("BF.RESERVE", "sparse", "0.01", SPARSE_CAPACITY)
        connection.call("BF.MADD", "sparse", *range(SPARSE_ITEMS))
        fill(connection, "full", CAPACITY)
        self.assertGreater(memory_field(connection, "mem_filter_arrays_reserved"), 2000 * MB)
        wait_for_full = CAPACITY * 9 // 8 // PIECE_BYTES * PIECE_BYTES
        if not wait_for_huge_bytes(server, connection, wait_for_full):
            self.skipTest("the kernel refuses MADV_COLLAPSE on a memfd")
        full_bytes = CAPACITY * 10 // 8 + MB
        for _ in range(2):
            expect_items(self, connection, "sparse", SPARSE_ITEMS)
            self.assertLess(huge_bytes(connection), full_bytes)
            resident = memory_field(connection, "mem_filter_arrays_resident")
            print(f"resident: {resident / MB:.1f} MB, {huge_bytes(connection) / MB:.1f} MB huge")
            self.assertLess(resident, full_bytes + SPARSE_BYTES_MAX)
            self.save(connection)
        self.assertEqual(connection.call("DEL", "full"), 1)
        self.save(connection)
        connection.close()
        self.assertEqual(server.stop(), [])
        server, connection = self.start()
        fill(connection, "full", CAPACITY)
        wait_for_huge_bytes(server, connection, wait_for_full)
        self.assertEqual(connection.call("DEL", "full"), 1)
        wait_until(lambda: huge_bytes(connection) == 0)
        # The memory of the deleted filter is given back after its pages are no longer counted.
        wait_until(
            lambda: memory_field(connection, "mem_filter_arrays_resident") < SPARSE_BYTES_MAX,
            "only the touched pages of the sparse filter are resident",
        )
        expect_items(self, connection, "sparse", SPARSE_ITEMS)

    def test_a_saving_child_reads_huge_pages(self):
        server, connection = self.start()
        fill(connection, "f", CAPACITY)
        expected = digest(connection)
        connection.call("CONFIG", "SET", "rdb-key-save-delay", "500000")
        connection.call("BGSAVE")
        wait_until(server.children)
        stopped = server.suspend_children()
        self.wait_until_huge(server, connection)
        # The child still reads the array, which stays in memory until the child ends.
        if stopped:
            self.assertEqual(connection.call("DEL", "f"), 1)
            wait_until(lambda: huge_bytes(connection) == 0)
            kept = "mem_filter_arrays_kept_for_child"
            wait_until(lambda: memory_field(connection, kept) > 60 * MB)
            os.kill(stopped[0], signal.SIGCONT)
        wait_until(lambda: info(connection, "persistence")["rdb_bgsave_in_progress"] == "0")
        wait_until(lambda: memory_field(connection, "mem_filter_arrays_resident") < 80 * MB)
        connection.close()
        server.crash()
        server, connection = self.start()
        self.assertEqual(digest(connection), expected)

    def test_deletion_while_pieces_move(self):
        server, connection = self.start()
        for _ in range(5):
            fill(connection, "f", CAPACITY)
            if not wait_for_huge_bytes(server, connection, PIECE_BYTES):
                self.skipTest("the kernel refuses MADV_COLLAPSE on a memfd")
            self.assertEqual(connection.call("DEL", "f"), 1)
            # The reservation ends after the pages were freed.
            wait_until(lambda: memory_field(connection, "mem_filter_arrays_reserved") == 0)
            wait_until(lambda: memory_field(connection, "mem_filter_arrays_resident") < MB)
            self.assertEqual(huge_bytes(connection), 0)

    def test_the_memory_limit_counts_no_page_twice(self):
        server, connection = self.start("--maxmemory", "100mb", "--maxmemory-policy", "noeviction")
        fill(connection, "f", CAPACITY)
        before = memory_field(connection, "used_memory")
        self.wait_until_huge(server, connection)
        self.assertLess(memory_field(connection, "used_memory") - before, MB)
        self.assertEqual(connection.call("SET", "small", "value"), b"OK")
        reply = connection.call("BF.RESERVE", "g", "0.01", CAPACITY)
        self.assertRegex(str(reply), "memory")
        connection.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        # A filter cannot evict a key that shares the stripe lock of its own key. So the test tries
        # several names.
        replies = (connection.call("BF.RESERVE", key, "0.01", CAPACITY // 2) for key in "ghijk")
        self.assertIn(b"OK", replies)

    def test_a_server_that_collapses_ends_at_once(self):
        for _ in range(3):
            server, connection = self.start("--appendonly", "no")
            connection.call("FLUSHALL")
            for key in ("a", "b", "c"):
                fill(connection, key, CAPACITY)
            if not wait_for_huge_bytes(server, connection, PIECE_BYTES):
                self.skipTest("the kernel refuses MADV_COLLAPSE on a memfd")
            connection.close()
            self.assertEqual(server.stop(), [])

    def test_a_full_sync_moves_huge_pages(self):
        server, connection = self.start()
        fill(connection, "f", CAPACITY)
        self.wait_until_huge(server, connection)
        replica = self.start_server(*DEBUG)
        follower = self.connect(replica)
        self.follow(follower, server.port)
        self.wait_for_link(follower)
        self.wait_until_huge(replica, follower)
        self.assertEqual(digest(follower), digest(connection))


if __name__ == "__main__":
    unittest.main()
