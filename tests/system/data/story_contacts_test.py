#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the user story "billing": each customer is billed for the unique contacts of a month.

A contact counts once in a month. Two solutions are compared. The exact solution sets one bit for
each contact, and keeps a counter. The other solution uses a filter. BF.INSERT creates the filter
with the month's first contact, and the filter expires at the end of the month.
"""

import time
import unittest

from harness import wait_until
from harness.stories import StoryTest, allowed, scaled

RATE = 0.001
CUSTOMERS = 20
MONTHS = ("2026-10", "2026-11")


class ContactsStoryTest(StoryTest):
    def events(self, count):
        """Returns random pairs (customer, contact). A few contacts occur in many of the pairs."""
        return [
            (self.random.randrange(CUSTOMERS), int(self.random.paretovariate(0.7)) % 1_000_000)
            for _ in range(count)
        ]

    def count_with_bits(self, month, events):
        """Counts the contacts by one bit for each contact. The count is exact, because SETBIT
        replies 0 only for a new contact.
        """
        replies = self.send([("SETBIT", f"bits:{month}:{who}", what, 1) for who, what in events])
        self.count("exact", month, events, [reply == 0 for reply in replies])

    def count_with_filters(self, month, end_s, events):
        replies = self.send([
            ("BF.INSERT", f"seen:{month}:{who}", "CAPACITY", 1000, "ERROR", RATE, "EXAT", end_s,
             "ITEMS", what) for who, what in events
        ])  # fmt: skip
        self.count("billed", month, events, [reply == [1] for reply in replies])

    def count(self, name, month, events, are_new):
        counts = {}
        for (who, _), is_new in zip(events, are_new):
            counts[who] = counts.get(who, 0) + is_new
        self.send([("INCRBY", f"{name}:{month}:{who}", new) for who, new in counts.items()])

    def counted(self, name, month):
        keys = [f"{name}:{month}:{who}" for who in range(CUSTOMERS)]
        return [int(value or 0) for value in self.client.mget(keys)]

    def test_contacts_of_a_month_are_counted_once(self):
        end_s = int(time.time()) + 30 * 24 * 3600
        for number, month in enumerate(MONTHS):
            month_end_s = end_s + number * 30 * 24 * 3600
            events = self.events(scaled(1_000_000, 20_000))
            self.count_with_bits(month, events)
            self.count_with_filters(month, month_end_s, events)
            exact, billed = self.counted("exact", month), self.counted("billed", month)
            self.assertEqual(
                exact, [len({what for who, what in events if who == own})
                        for own in range(CUSTOMERS)]
            )  # fmt: skip
            for known, counted in zip(exact, billed):
                self.assertLessEqual(counted, known)
                self.assertLessEqual(known - counted, allowed(known, RATE))
            for who in range(CUSTOMERS):
                at_ms = self.client.execute_command("PEXPIRETIME", f"seen:{month}:{who}")
                self.assertEqual(at_ms, month_end_s * 1000)

    def test_contact_counts_again_in_the_next_month(self):
        words = ("CAPACITY", 1000, "ERROR", RATE)
        end_ms = int(time.time() * 1000) + 4000
        first = ("BF.INSERT", "seen", *words, "PXAT", end_ms, "ITEMS", "contact")
        # BF.INSERT sets the expiry only when it creates the filter. A later BF.INSERT leaves the
        # expiry unchanged.
        later = ("BF.INSERT", "seen", *words, "EX", 3600, "ITEMS", "contact", "other")
        self.assertEqual(self.send([first, later]), [[1], [0, 1]])
        self.assertEqual(self.client.execute_command("PEXPIRETIME", "seen"), end_ms)
        # The server's clock may be some milliseconds behind the clock of the test process.
        wait_until(lambda: self.client.exists("seen") == 0, "the end of the month",
                   poll_every_s=0.05)  # fmt: skip
        self.assertGreaterEqual(time.time() * 1000, end_ms)
        self.assertEqual(self.send([later]), [[1, 1]])
        self.assertGreater(self.client.ttl("seen"), 3500)


if __name__ == "__main__":
    unittest.main(verbosity=2)
