#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that a filter with an array far larger than 2^32 bits uses its whole array, also after a
restart.

BLOOMERY_TIER=long reserves ten billion items at 1 %, which is 12.4 GB, and adds a million items. It
needs 16 GB of free memory, of which it uses 4 GB, and 100 MB of disk space. In other tiers the
filter is a thousandth of this size. Items fall anywhere in the array, so each touches a page of its
own. If an offset were truncated, fewer pages would be touched, and parts of the array would have no
bits set.
"""

import hashlib
import math
import os
import pathlib
import shutil
import tempfile
import threading
import time
import unittest

from harness import ServerTest, wait_until_loaded

IS_LONG = os.environ.get("BLOOMERY_TIER") == "long"
CAPACITY = 10_000_000_000 if IS_LONG else 10_000_000
CLIENTS = 4
ITEMS_PER_CLIENT = CAPACITY // 50_000
SHARED_ITEMS = CAPACITY // 50_000  # number of items that every client adds
ITEMS = CLIENTS * ITEMS_PER_CLIENT + SHARED_ITEMS
BATCH = 1000 if IS_LONG else 100
PAGE_BYTES = 4096
CHUNK_BYTES_MAX = 16 << 20
TAIL_BYTES = 1 << 20
HEADER_BYTES = 1000  # maximum difference between BF.INFO's SIZE and the size of the array
MB = 1_000_000
OTHER_MEMORY_BYTES = 200 * MB
ITEM_FILE_BYTES_MAX = 200  # maximum snapshot bytes per item; each item touches its own page


class LargeFilterTest(ServerTest):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-large-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.begun = time.monotonic()

    def start(self):
        self.server = self.start_server("--io-threads", CLIENTS, directory=self.directory)
        self.connection = self.server.connect(timeout_s=200)
        self.addCleanup(self.connection.close)
        wait_until_loaded(self.connection)
        self.report("started")

    def report(self, what):
        status = pathlib.Path(f"/proc/{self.server.pid}/status").read_text(encoding="ascii")
        self.peak_bytes = int(status.split("VmHWM:")[1].split()[0]) * 1024
        seconds = time.monotonic() - self.begun
        print(f"{what}: {seconds:.1f} s, peak {self.peak_bytes / MB:.0f} MB", flush=True)

    def stats(self):
        reply = self.connection.call("BF.STATS", "f")
        return dict(zip(reply[::2], reply[1::2]))

    def resident_bytes(self):
        memory = self.connection.call("INFO", "memory").decode()
        return int(memory.split("mem_filter_arrays_resident:")[1].split()[0])

    def add_from(self, number, added, failures):
        """Adds the items of this client and the items that all clients share, in alternating
        batches."""
        try:
            with self.server.connect() as connection:
                for start in range(0, ITEMS_PER_CLIENT, BATCH):
                    for owner in (number, "shared"):
                        replies = connection.call("BF.MADD", "f", *items(owner, start))
                        added[number] += sum(replies)
        except Exception as failure:  # the main thread raises this exception again
            failures.append(failure)

    def add_all(self):
        """Adds the items with all clients at the same time. Returns how many items were new."""
        added, failures = [0] * CLIENTS, []
        threads = [
            threading.Thread(target=self.add_from, args=(number, added, failures))
            for number in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return sum(added)

    def expect_items(self, card):
        self.assertEqual(self.connection.call("BF.CARD", "f"), card)
        for owner in (*range(CLIENTS), "shared"):
            for start in range(0, ITEMS_PER_CLIENT, BATCH):
                found = self.connection.call("BF.MEXISTS", "f", *items(owner, start))
                self.assertEqual(found, [1] * BATCH)
        # Looks up only a few absent items, because each of these lookups touches a further page.
        found = self.connection.call("BF.MEXISTS", "f", *items("absent", 0))
        self.assertEqual(found, [0] * BATCH)

    def expect_resident(self, size_bytes):
        """Checks the number of resident pages: it must be the number expected if each item touches
        one random page. Also checks that the server's other memory is small.
        """
        pages = size_bytes // PAGE_BYTES
        lines = ITEMS + BATCH
        expected = pages * (1 - math.exp(-lines / pages)) * PAGE_BYTES
        resident = self.resident_bytes()
        print(f"resident {resident / MB:.1f} MB of {size_bytes / MB:.1f} MB reserved, "
              f"{expected / MB:.1f} MB expected")  # fmt: skip
        self.assertAlmostEqual(resident / expected, 1, delta=0.01 if IS_LONG else 0.1)
        self.report("looked up")
        self.assertLess(self.peak_bytes, expected + OTHER_MEMORY_BYTES)

    def expect_bits_everywhere(self, array_bytes, hash_count):
        """Checks that samples of the array have the expected number of set bits. Returns a digest
        of each sample.
        """
        places = [0, array_bytes // 4, array_bytes // 2, array_bytes * 3 // 4]
        places += [array_bytes - TAIL_BYTES]
        if IS_LONG:
            places += [(1 << 29) - CHUNK_BYTES_MAX, 1 << 29]  # chunks before and after bit 2^32
        digests = []
        for place in sorted(places):
            _, chunk = self.connection.call("BF.SCANDUMP", "f", place + 1)
            self.assertEqual(len(chunk), min(CHUNK_BYTES_MAX, array_bytes - place))
            items_here = int.from_bytes(chunk, "little").bit_count() / hash_count
            expected = ITEMS * len(chunk) / array_bytes
            # The tolerance is six standard deviations. Another 5 % cover bits that two items have
            # in common, which are counted once.
            self.assertAlmostEqual(
                items_here, expected, delta=6 * math.sqrt(expected) + expected * 0.05
            )
            digests.append(hashlib.sha256(chunk).digest())
        return digests

    def test_a_large_filter_uses_its_whole_array(self):
        self.start()
        call = self.connection.call
        self.assertEqual(call("BF.RESERVE", "f", "0.01", CAPACITY, "NONSCALING"), b"OK")
        stats = self.stats()
        self.assertEqual(stats[b"cache lines per lookup"], 1)
        array_bytes = stats[b"bits"] // 8
        self.assertGreater(array_bytes * 8, CAPACITY * 9.5)
        self.assertLess(call("BF.INFO", "f", "SIZE")[0] - array_bytes, HEADER_BYTES)
        card = self.add_all()
        self.report("added")
        self.assertEqual(card, ITEMS)  # the nearly empty filter has no false positives
        self.expect_items(card)
        self.expect_resident(array_bytes)
        digests = self.expect_bits_everywhere(array_bytes, stats[b"hash count"])

        self.assertEqual(call("SAVE"), b"OK")
        file_bytes = (self.directory / "dump.rdb").stat().st_size
        self.report(f"saved {file_bytes / MB:.1f} MB")
        self.assertLess(file_bytes, ITEMS * ITEM_FILE_BYTES_MAX + MB)
        self.connection.close()
        self.assertEqual(self.server.stop(), [])

        self.start()
        self.expect_items(card)
        self.expect_resident(array_bytes)
        again = self.expect_bits_everywhere(array_bytes, stats[b"hash count"])
        self.assertEqual(again, digests)


def items(owner, start):
    return [f"{owner}:{start + i}" for i in range(BATCH)]


if __name__ == "__main__":
    unittest.main()
