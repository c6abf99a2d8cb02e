#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that this server does not have known vulnerabilities of similar servers. docs/security.md
lists the vulnerabilities with their tests.

BLOOMERY_SECURITY_ROUNDS makes the random tests longer; BLOOMERY_SEED replays them.
"""

import pathlib
import random
import re
import subprocess
import tempfile
import threading
import unittest

from harness import DEADLINE_S, SERVER, ServerTest, seed_from_environment, wait_until
from harness.counts import count
from harness.resp import encode

ROUNDS = count("SECURITY_ROUNDS")


class ClientsTest(ServerTest):
    def setUp(self):
        self.server = self.start_server()
        self.client = self.server.connect()
        self.addCleanup(self.client.close)

    def call(self, *words):
        return self.client.call(*words)

    def test_cve_2026_81934_56684_23479_killed_clients(self):
        """CLIENT KILL disconnects clients that send pipelines, block in WAIT, subscribe or run a
        transaction. Clients kill themselves and others.
        """
        stop = threading.Event()

        def live(words):
            while not stop.is_set():
                try:
                    with self.server.connect() as client:
                        while not stop.is_set():
                            client.send(b"".join(encode(*one) for one in words))
                            for _ in words:
                                client.read_reply()
                except (EOFError, OSError):
                    pass

        lives = [
            [["SET", "k", "v"]] * 50, [["MULTI"], ["SET", "k", "v"], ["GET", "k"], ["EXEC"]],
            [["WAIT", 1, 20]], [["WATCH", "k"], ["SET", "k", "v"], ["UNWATCH"]],
            [["SUBSCRIBE", "c"]], [["BF.MADD", "f", *range(200)]] * 5,
            [["CLIENT", "KILL", "SKIPME", "no", "TYPE", "pubsub"]], [["PUBLISH", "c", "m"]] * 20,
        ]  # fmt: skip
        threads = [threading.Thread(target=live, args=(words,)) for words in lives]
        for thread in threads:
            thread.start()
        rounds = killed = 0

        def has_killed_enough():
            nonlocal rounds, killed
            kind = ["normal", "pubsub"][rounds % 2]
            killed += self.call("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
            rounds += 1
            return rounds >= 200 and killed > 100

        wait_until(has_killed_enough, "100 killed clients", poll_every_s=0.002)
        stop.set()
        self.call("CLIENT", "KILL", "TYPE", "normal")
        self.call("CLIENT", "KILL", "TYPE", "pubsub")
        for thread in threads:
            thread.join(DEADLINE_S)
            self.assertFalse(thread.is_alive())
        own = self.call("CLIENT", "ID")
        self.assertEqual(self.call("CLIENT", "KILL", "ID", own, "SKIPME", "no"), 1)
        self.assertTrue(self.client.is_closed_by_server())
        with self.server.connect() as client:
            self.assertEqual(client.call("PING"), b"PONG")
            wait_until(lambda: len(client.call("CLIENT", "LIST").splitlines()) == 1)


class ProgramTest(unittest.TestCase):
    """Tests invalid options and files, which the program handles before it serves clients."""

    def setUp(self):
        self.rng = random.Random(seed_from_environment())

    def test_a_snapshots_name_stays_in_the_directory(self):
        done = subprocess.run(
            [SERVER, "--dbfilename", "../x.rdb", "--port", "0"], capture_output=True, check=False,
            timeout=DEADLINE_S,
        )  # fmt: skip
        self.assertEqual(done.returncode, 1)

    def test_cve_2025_27151_names_given_to_the_check_tools(self):
        """Passes long names, odd names and invalid files to --check-rdb and --check-aof."""
        with tempfile.TemporaryDirectory() as directory:
            odd = pathlib.Path(directory) / "x"
            for path in ("/" + "a/" * 3000 + "x", "a" * 255, "a" * 5000, "\x1b[31m", "%s%n", ""):
                for option in ("--check-rdb", "--check-aof"):
                    self.evaluate(option, path)
            for _ in range(max(10, ROUNDS // 100)):
                odd.write_bytes(b"REDIS0010" + self.rng.randbytes(self.rng.randrange(300)))
                self.evaluate("--check-rdb", odd)
                odd.write_bytes(b"file " + self.rng.randbytes(self.rng.randrange(300)))
                self.evaluate("--check-aof", odd)

    def evaluate(self, option, path):
        done = subprocess.run(
            [SERVER, option, path], capture_output=True, check=False, timeout=DEADLINE_S
        )
        self.assertIn(done.returncode, (0, 1), (option, path, done.stderr))
        self.assertNotRegex(done.stdout + done.stderr, re.compile(rb"[\x00\x1b]"))


if __name__ == "__main__":
    unittest.main()
