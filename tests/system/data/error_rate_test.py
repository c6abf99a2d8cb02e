#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests with pipelined commands that full filters keep their error rate and lose no item.

BLOOMERY_ABSENT_ITEMS shortens the test. All runs use the same items, so every run has the same
result.
"""

import math
import time
import unittest

from harness import ServerTest
from harness.counts import count

ABSENT_ITEMS = count("ABSENT_ITEMS")
BATCH = 500
BATCHES_PER_PIPELINE = 20


def items(prefix, start, stop):
    return [b"%b:%d" % (prefix, number) for number in range(start, stop)]


class ErrorRateTest(ServerTest):
    def setUp(self):
        self.server = self.start_server()
        self.client = self.server.connect()
        self.addCleanup(self.client.close)

    def ask(self, command, words):
        """Sends the words in pipelined batches. Returns the integer that `command` answers for each
        word."""
        commands = [
            (command, "f", *words[start : start + BATCH]) for start in range(0, len(words), BATCH)
        ]
        answers = []
        for start in range(0, len(commands), BATCHES_PER_PIPELINE):
            for value, _ in self.client.pipeline(commands[start : start + BATCHES_PER_PIPELINE]):
                self.assertIsInstance(value, list)
                answers += value
        self.assertEqual(len(answers), len(words))
        self.assertLessEqual(set(answers), {0, 1})
        return answers

    def info(self, field):
        (value,) = self.client.call("BF.INFO", "f", field)
        return value

    def fill(self, capacity):
        """Adds items until the filter counts `capacity` items. The filter does not count an item
        that is a false positive. Returns all added items.
        """
        added = []
        while (missing := capacity - self.info("ITEMS")) > 0:
            more = items(b"added", len(added), len(added) + missing)
            self.ask("BF.MADD", more)
            added += more
        return added

    def check(self, rate, added):
        start_s = time.monotonic()
        self.assertEqual(sum(self.ask("BF.MEXISTS", added)), len(added), "added items are missing")
        found = 0
        step = BATCH * BATCHES_PER_PIPELINE
        for start in range(0, ABSENT_ITEMS, step):
            absent = items(b"absent", start, min(start + step, ABSENT_ITEMS))
            found += sum(self.ask("BF.MEXISTS", absent))
        bound = rate * ABSENT_ITEMS + 3 * math.sqrt(ABSENT_ITEMS * rate * (1 - rate))
        print(
            f"{len(added)} added at {rate}: {found} of {ABSENT_ITEMS} absent found, at most "
            f"{bound:.1f} allowed, {time.monotonic() - start_s:.1f} s",
            flush=True,
        )
        self.assertLessEqual(found, bound)

    def check_full(self, rate, capacity):
        reply = self.client.call("BF.RESERVE", "f", rate, capacity, "NONSCALING")
        self.assertEqual(reply, b"OK")
        added = self.fill(capacity)
        (reply,) = self.client.call("BF.MADD", "f", "one too many")
        self.assertRegex(reply.text, "^ERR .*full")
        self.check(rate, added)

    def test_full_at_one_percent(self):
        self.check_full(0.01, 100_000)

    def test_full_at_one_in_a_thousand(self):
        self.check_full(0.001, 100_000)

    def test_full_at_one_in_a_million(self):
        self.check_full(1e-6, 100_000)

    def test_grown_through_eight_layers(self):
        layers = 8
        first = 1000
        reply = self.client.call("BF.RESERVE", "f", 0.01, first, "EXPANSION", 2)
        self.assertEqual(reply, b"OK")
        added = self.fill(first * (2**layers - 1))
        self.assertEqual(self.info("FILTERS"), layers)
        self.assertEqual(self.info("ITEMS"), self.info("CAPACITY"))
        self.check(0.01, added)


if __name__ == "__main__":
    unittest.main()
