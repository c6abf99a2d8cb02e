#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kill -9 at random under load: no acknowledged write is lost, and no data appear that were not
sent.

Environment:
  BLOOMERY_KILL_CYCLES  cycles of each combination of appendfsync and io-threads
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
        # With a low limit on its size, the log is also rewritten automatically.
        return [*options, "--auto-aof-rewrite-min-size", "200kb", "--bf-initial-size", "50"]

    def start(self, options):
        server = self.start_server(*options, directory=self.directory)
        # This warning occurs if the kill ended a write() between two pages.
        server.expect_log(r"is torn: .* cut off at offset")
        # This warning occurs if the kill ended a write() exactly where a command ends.
        server.expect_log(r"no sound checksum line .*last \d+ commands")
        return server

    def kill_while_loading(self, options):
        """A start that is killed early must not damage the files."""
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
