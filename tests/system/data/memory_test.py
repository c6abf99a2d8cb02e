#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the memory of filters, and whether the server reports it correctly."""

import unittest

from harness import SANITIZED, ServerTest, wait_until
from harness.resp import ErrorReply

MIB = 1 << 20
# The server's memory counts as constant if STILL_LOOKS measurements, 20 ms apart, differ by less
# than STILL_BYTES. The size of INFO's reply varies by less than this limit. A new thread takes more
# memory than this limit.
STILL_LOOKS = 25
STILL_BYTES = 16 << 10


class MemoryTest(ServerTest):
    def setUp(self):
        self.server = self.start_server()
        self.client = self.server.connect()
        self.addCleanup(self.client.close)
        self.wait_until_all_threads_run()

    def wait_until_all_threads_run(self):
        """Waits until used_memory has been stable for a while. Some threads start to run only after
        the server is ready, and allocate some memory when they start.
        """
        seen = [self.used_bytes()]

        def stands_still():
            seen.append(self.used_bytes())
            last = seen[-STILL_LOOKS:]
            return len(seen) > STILL_LOOKS and max(last) - min(last) < STILL_BYTES

        wait_until(stands_still, lambda: f"that the figure stays the same: {seen[-STILL_LOOKS:]}")

    def used_bytes(self):
        for line in self.client.call("INFO", "memory").decode().splitlines():
            if line.startswith("used_memory:"):
                return int(line.split(":")[1])
        self.fail("INFO has no used_memory")

    def info(self, key, field):
        (value,) = self.client.call("BF.INFO", key, field)
        return value

    def plan(self, *arguments):
        words = self.client.call("BF.PLAN", *arguments)
        return dict(zip(words[::2], words[1::2]))

    def test_small_filters_cost_at_most_250_bytes(self):
        count = 10_000
        before_bytes = self.used_bytes()
        usage_bytes = 0
        for i in range(count):
            self.assertEqual(self.client.call("BF.RESERVE", f"f:{i:05}", "0.01", "100"), b"OK")
        each_bytes = (self.used_bytes() - before_bytes) / count
        for i in range(count):
            usage_bytes += self.client.call("MEMORY", "USAGE", f"f:{i:05}")
        print(f"used_memory {each_bytes:.1f} bytes each, MEMORY USAGE {usage_bytes / count:.1f}")
        self.assertLessEqual(each_bytes, 250)
        # The sum of the sizes that MEMORY USAGE reports may differ from the increase of
        # used_memory, because the allocator rounds up sizes.
        self.assertLess(abs(usage_bytes / count - each_bytes), 0.1 * each_bytes)
        for i in range(count):
            self.client.call("DEL", f"f:{i:05}")
        wait_until(
            lambda: self.used_bytes() - before_bytes < 0.25 * count * each_bytes,
            what="giving the memory of deleted filters back",
        )

    def test_items_at_one_percent_take_at_most_11_4_bits(self):
        before_bytes = self.used_bytes()
        self.client.call("BF.RESERVE", "f", "0.01", "10000000")
        size_bytes = self.info("f", "SIZE")
        bits_per_item = size_bytes * 8 / 10_000_000
        print(f"{bits_per_item:.3f} bits per item")
        self.assertLessEqual(bits_per_item, 11.4)
        self.assertEqual(size_bytes, self.plan("0.01", "10000000")[b"bytes"])
        self.assertAlmostEqual(self.used_bytes() - before_bytes, size_bytes, delta=64 * 1024)
        usage_bytes = self.client.call("MEMORY", "USAGE", "f")
        self.assertAlmostEqual(usage_bytes, size_bytes, delta=8 * 1024)

    def stats(self):
        words = self.client.call("MEMORY", "STATS")
        return dict(zip((word.decode() for word in words[::2]), words[1::2]))

    def fill(self):
        """Makes strings, filters and a bitmap, among them a filter with an array of 12 MB. Returns
        the names of all keys.
        """
        keys = [f"long:{i}" for i in range(36_000)] + [f"short:{i}" for i in range(20_000)]
        for start in range(0, len(keys), 500):
            self.client.pipeline(
                [
                    ("SET", key, b"v" * (10_000 if key[0] == "l" else 50), "EX", 10_000)
                    for key in keys[start : start + 500]
                ]
            )
        for i in range(500):
            self.client.call("BF.RESERVE", f"filter:{i}", "0.01", 10_000)
        self.client.call("BF.RESERVE", "big", "0.01", 10_000_000)
        for start in range(0, 60_000, 1000):  # touches nearly all pages of the array
            self.client.call("BF.MADD", "big", *range(start, start + 1000))
        self.client.call("SETBIT", "bits", 8_000_000, 1)
        return keys + [f"filter:{i}" for i in range(500)] + ["big", "bits"]

    def test_parts_add_up_to_the_process(self):
        startup_bytes = self.used_bytes()
        keys = self.fill()
        with self.server.connect() as half, self.server.connect() as queue:
            half.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9000000\r\n" + b"x" * 8_900_000)
            queue.call("MULTI")
            queue.call("SET", "k", b"x" * (2 * MIB))
            wait_until(lambda: self.stats()["clients.normal"] > 10 * MIB, "the client's bytes")
            stats = self.stats()
            used = stats["total.allocated"]
            parts = ("heap.allocated", "filters.reserved", "filters.kept-for-child")
            held = sum(stats[part] for part in (*parts, "buffers.mapped"))
            self.assertEqual(held - stats["lazyfree.pending"], used)
            process = ("allocator.resident", "filters.resident", "buffers.mapped")
            resident = sum(stats[part] for part in (*process, "files.resident"))
            measured = self.server.resident_bytes()
            print(f"resident: parts {resident / MIB:.1f} MiB, process {measured / MIB:.1f} MiB")
            if not SANITIZED:
                self.assertAlmostEqual(resident / measured, 1, delta=0.03)
            # Sums the sizes that the server reports for all keys, clients and tables.
            usage = sum(
                bytes_of
                for at in range(0, len(keys), 500)
                for bytes_of, _ in self.client.pipeline(
                    [("MEMORY", "USAGE", key) for key in keys[at : at + 500]]
                )
            )
            owners = usage + stats["clients.normal"]
            owners += dict(zip(stats["db.0"][::2], stats["db.0"][1::2]))[
                b"overhead.hashtable.expires"
            ]
            print(f"used: owners {owners / MIB:.1f} MiB, {(used - startup_bytes) / MIB:.1f} MiB")
            self.assertAlmostEqual(owners / (used - startup_bytes), 1, delta=0.03)

    def test_six_gigabytes_reserved_stay_untouched(self):
        capacity = 4_800_000_000
        planned_bytes = self.plan("0.01", capacity, "NONSCALING")[b"bytes"]
        self.assertAlmostEqual(planned_bytes, 6e9, delta=0.1e9)
        resident_bytes = self.server.resident_bytes()
        before_bytes = self.used_bytes()
        reply = self.client.call("BF.RESERVE", "f", "0.01", capacity, "NONSCALING")
        if isinstance(reply, ErrorReply):
            self.assertIn(f"filter of {planned_bytes - 48} bytes", reply.text)
            self.skipTest("this machine has not so much memory")
        self.assertLess(self.server.resident_bytes() - resident_bytes, 4 * MIB)
        self.assertAlmostEqual(self.used_bytes() - before_bytes, planned_bytes, delta=MIB)
        self.assertEqual(self.info("f", "SIZE"), planned_bytes)
        # BF.STATS reads only a sample of the array, so most of its pages stay untouched.
        self.assertEqual(self.client.call("BF.STATS", "f")[15], b"0")
        self.assertLess(self.server.resident_bytes() - resident_bytes, 80 * MIB)
        self.client.call("DEL", "f")
        # Large values are freed in the background, so the test waits until the filter is freed.
        wait_until(
            lambda: self.used_bytes() - before_bytes < MIB, what="giving the deleted filter back"
        )


if __name__ == "__main__":
    unittest.main()
