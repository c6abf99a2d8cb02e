#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests kill -9 at random moments under load. The server must lose no acknowledged write, and
all its data must come from writes that clients sent.

Environment:
  BLOOMERY_KILL_CYCLES  number of kills for each combination of appendfsync and io-threads
"""

import pathlib
import random
import shutil
import tempfile
import time
import unittest

from harness import SERVER, Process, ServerTest, let_time_pass, seed_from_environment
from harness.counts import count
from harness.write_load import Load, disturb

CYCLES = count("KILL_CYCLES")


class KillTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.seed = seed_from_environment()

    def setUp(self):
        self.rng = random.Random(f"{self.seed}/{self.id()}")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-kill-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def options(self, fsync, threads):
        options = ["--appendonly", "yes", "--appendfsync", fsync, "--io-threads", threads]
        # With this low auto-aof-rewrite-min-size, the server also starts rewrites of the append log
        # by itself.
        return [*options, "--auto-aof-rewrite-min-size", "200kb", "--bf-initial-size", "50"]

    def start(self, options):
        server = self.start_server(*options, directory=self.directory)
        # The server logs this warning if the kill ended a write() to the append log between two
        # pages.
        server.expect_log(r"is torn: .* cut off at offset")
        # The server logs this warning if the kill ended a write() to the append log exactly where a
        # command ends.
        server.expect_log(r"no sound checksum line .*last \d+ commands")
        return server

    def kill_while_loading(self, options):
        """Kills a server while it starts. This must not damage its files."""
        server = Process(SERVER, self._defaults(options), directory=self.directory)
        let_time_pass(self.rng.uniform(0, 0.02), why="the kill may come at any step of the start")
        server.crash()

    def run_cycles(self, fsync, threads):
        options = self.options(fsync, threads)
        load = Load(self.rng.random())
        slowest_start_s = 0
        for cycle in range(CYCLES):
            server = self.start(options)
            load.start(server.port)
            disturb(server, self.rng, load, self.rng.randrange(20, 1000))
            server.crash()
            load.join()
            if self.rng.random() < 0.3:
                self.kill_while_loading(options)
            began = time.monotonic()
            server = self.start(options)
            slowest_start_s = max(slowest_start_s, time.monotonic() - began)
            with server.connect() as connection:
                self.assertEqual(load.check(connection), 0)
            server.crash()
        self.assertGreater(load.acked_count, 10 * CYCLES)
        print(
            f"{fsync}, {threads} threads: {CYCLES} kills, {load.acked_count} acknowledged writes "
            f"checked, 0 lost; slowest start {slowest_start_s:.3f} s",
            flush=True,
        )

    def test_always_1_thread(self):
        self.run_cycles("always", 1)

    def test_always_4_threads(self):
        self.run_cycles("always", 4)

    def test_everysec_1_thread(self):
        self.run_cycles("everysec", 1)

    def test_everysec_4_threads(self):
        self.run_cycles("everysec", 4)

    def test_no_4_threads(self):
        self.run_cycles("no", 4)


if __name__ == "__main__":
    unittest.main()
