#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Sends the same random commands to our server and to redis-server: every reply byte must be equal.

BLOOMERY_SEED replays a run; BLOOMERY_DIFFERENTIAL_COMMANDS shortens it.
"""

import os
import random
import unittest

from harness import ServerTest, seed_from_environment
from harness.command_stream import KEYS, CommandStream
from harness.counts import count
from harness.reply_matching import values_match
from harness.resp import encode

COMMANDS = count("DIFFERENTIAL_COMMANDS")
SCAN_EVERY = 200
HISTORY_SHOWN = 25
SHOWN_BEFORE_DIFFERENCE = 60


class Pair:
    """Holds one connection to each server, and the commands queued since MULTI."""

    def __init__(self, ours, theirs, protocol):
        self.both = [ours.connect(), theirs.connect()]
        self.queued = []
        for connection in self.both:
            connection.call("HELLO", protocol)

    def send(self, data):
        for connection in self.both:
            connection.send(data)

    def read(self):
        return [connection.read_reply() for connection in self.both]

    def call(self, *command):
        self.send(encode(*command))
        return self.read()

    def record_queued(self, name, value):
        if value == b"QUEUED":
            self.queued.append(name)
        elif name == b"MULTI" and value == b"OK":
            self.queued = []

    def close(self):
        for connection in self.both:
            connection.close()


class DifferentialTest(ServerTest):
    def setUp(self):
        self.seed = seed_from_environment()
        self.rng = random.Random(self.seed)
        self.history = []
        self.errors = self.transactions = 0
        ours, theirs = self.start_server(), self.start_redis()
        # The second pair of connections speaks RESP3. Its writes change keys that the first pair
        # watches, so that EXEC fails.
        self.pairs = [Pair(ours, theirs, 2), Pair(ours, theirs, 3)]
        for pair in self.pairs:
            self.addCleanup(pair.close)

    def test_replies_equal_those_of_redis(self):
        stream = CommandStream(self.rng)
        sent = pipelines = 0
        while sent < COMMANDS:
            pair = self.rng.choice(self.pairs)
            size = self.rng.choice([1, 1, 2, 5, 10, 30, 100, 300])
            commands = [stream.next() for _ in range(size)]
            self.run_pipeline(pair, commands)
            sent += size
            pipelines += 1
            if pipelines % SCAN_EVERY == 0:
                self.compare_scans(pair)
        print(f"{sent} commands in {pipelines} pipelines, {self.errors} errors, "
              f"{self.transactions} transactions, seed {self.seed}")
        # If most commands failed, equal replies would prove little.
        self.assertLess(self.errors, sent / 2)
        self.assertGreater(self.transactions, 0)

    def run_pipeline(self, pair, commands):
        pair.send(b"".join(encode(*command) for command in commands))
        for command in commands:
            self.history.append((self.pairs.index(pair), command))
            (ours, our_bytes), (theirs, their_bytes) = pair.read()
            name = command[0].upper()
            if our_bytes != their_bytes and not values_match(name, ours, theirs, pair.queued):
                self.report(command, our_bytes, their_bytes)
            pair.record_queued(name, theirs)
            self.errors += our_bytes.startswith(b"-")
            self.transactions += name == b"EXEC" and isinstance(ours, list)

    def compare_scans(self, pair):
        """Runs a complete SCAN on both servers. Compares the sets of keys, because SCAN guarantees
        no order."""
        # An open transaction would queue the SCAN calls, so it is discarded.
        pair.call("DISCARD")
        pair.queued = []
        options = self.rng.choice(
            [[], ["MATCH", "k*"], ["COUNT", "3"], ["TYPE", "string"], ["TYPE", "list"]]
        )
        found = [self.scan(connection, options) for connection in pair.both]
        self.assertEqual(*found, f"SCAN {options} differs, seed {self.seed}")

    def scan(self, connection, options):
        keys, cursor = set(), b"0"
        while True:
            cursor, batch = connection.call("SCAN", cursor, *options)
            keys.update(batch)
            if cursor == b"0":
                return keys

    def report(self, command, ours, theirs):
        """Fails, and prints the last commands that used a key of the command whose replies differ.
        """
        keys = set(KEYS) & set(command[1:])
        related = [
            (index, pair, words)
            for index, (pair, words) in enumerate(self.history)
            if keys & set(words[1:])
            or words[0].upper() in (b"SELECT", b"MULTI", b"EXEC", b"DISCARD", b"SWAPDB")
        ]
        lines = [f"first difference after {len(self.history)} commands, seed {self.seed}"]
        lines += [f"  #{i} connection {p}: {w}" for i, p, w in related[-HISTORY_SHOWN:]]
        same = len(os.path.commonprefix([ours, theirs]))
        start = max(0, same - SHOWN_BEFORE_DIFFERENCE)
        lines += [f"command: {command}", f"replies differ from byte {same} on, shown from {start}:"]
        lines += [f"ours:    {ours[start:same + 80]!r}", f"redis's: {theirs[start:same + 80]!r}"]
        self.fail("\n".join(lines))


if __name__ == "__main__":
    unittest.main()
