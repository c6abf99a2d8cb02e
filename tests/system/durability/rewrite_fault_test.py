#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests rewrites and snapshots in which a system call fails, or the process is killed in the call.
After every such fault, the next start must find all acknowledged writes, and leave no temporary
file. The program strace counts the calls of each thread, and makes the N-th call fail or deliver
SIGKILL.

Environment:
  BLOOMERY_FAULT_CALLS  the largest N; for each kind of system call, N runs from 1 to this value
"""

import os
import pathlib
import random
import re
import shutil
import tempfile
import unittest

from harness import SERVER, Process, ServerTest, seed_from_environment, wait_until
from harness.counts import count
from harness.write_load import Load

CALLS = count("FAULT_CALLS")
# System calls in which strace injects faults. openat is not among them. The dynamic loader makes
# most of the openat calls, before the server begins its work.
NAMES = ("rename", "unlink", "fdatasync", "fsync", "ftruncate")
ANNOUNCED = (
    "The append log fails|Background .* failed|Can't rewrite the append log"
    "|Error saving DB on disk|Can't load the data|is torn|no sound checksum line"
)


def sequence_of(name):
    """Returns the kind (base or incr) and the sequence number in a log file's name. Each kind has
    its own sequence.
    """
    match = re.search(r"[.](\d+)[.](base|incr)[.]", name)
    return (match[2], int(match[1])) if match else ("", 0)


class RewriteFaultTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.seed = seed_from_environment()

    def setUp(self):
        self.rng = random.Random(f"{self.seed}/{self.id()}")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-rewrite-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def options(self, fsync):
        return [
            *("--appendonly", "yes", "--appendfsync", fsync, "--save", ""),
            *("--bf-initial-size", "50", "--auto-aof-rewrite-percentage", "0"),
        ]

    def disturbed(self, load, fsync, injection):
        """Rewrites and saves under load with an injected fault. Returns whether the server
        survived.
        """
        prefix = ["strace", "-D", "-f", "-o", os.devnull, "-e", "inject=" + injection]
        server = Process(SERVER, self.options(fsync), directory=self.directory, prefix=prefix)
        self.addCleanup(server.kill)
        server.wait_until_ready_or_ended()
        if any("Ready to accept" in line for line in server.log):
            load.start(server.port)
            try:
                with server.connect() as connection:
                    for command in ("BGREWRITEAOF", "BGSAVE", "BGREWRITEAOF"):
                        connection.call(command)
                        self.wait_until_idle(connection)
            except (OSError, EOFError):
                pass
            except AssertionError:
                server.kill()
                load.join()
                raise
        was_alive = server.process.poll() is None
        if was_alive:
            server.crash()
        else:
            server.wait_for_exit()
        load.join()
        problems = [line for line in server.unexpected_lines() if not re.search(ANNOUNCED, line)]
        self.assertEqual(problems, [])
        return was_alive

    def wait_until_idle(self, connection):
        def is_idle():
            info = connection.call("INFO", "persistence")
            return b"aof_rewrite_in_progress:0" in info and b"rdb_bgsave_in_progress:0" in info

        wait_until(is_idle, "the end of the save", poll_every_s=0.01)

    def run_faults(self, fsync, fault):
        load = Load(self.rng.random(), writers=2, observers=1)
        survived = 0
        for name in NAMES:
            for number in range(1, CALLS + 1):
                with self.subTest(call=name, number=number):
                    survived += self.disturbed(load, fsync, f"{name}:{fault}:when={number}")
                    self.check_restart(load, fsync)
        print(f"{fsync}, {fault}: {len(NAMES) * CALLS} calls, {survived} survived, 0 lost")

    def check_restart(self, load, fsync):
        server = self.start_server(*self.options(fsync), directory=self.directory)
        server.expect_log("is torn: .* cut off at offset")
        server.expect_log(r"no sound checksum line .*last \d+ commands")
        with server.connect() as connection:
            self.assertEqual(load.check(connection), 0)
        server.crash()
        self.assertEqual(list(self.directory.rglob("temp-*")), [])
        manifest = (self.directory / "appendonlydir" / "appendonly.aof.manifest").read_text("ascii")
        named = set(re.findall(r"file (\S+)", manifest)) | {"appendonly.aof.manifest"}
        found = {path.name for path in (self.directory / "appendonlydir").iterdir()}
        # An interrupted rewrite may leave files that the manifest does not name yet. Their numbers
        # are higher than those in the manifest, and the next rewrite uses the same numbers again.
        newest = dict(sorted(map(sequence_of, named)))
        places = {name: sequence_of(name) for name in found - named}
        left = [name for name, (kind, number) in places.items() if number <= newest.get(kind, 0)]
        self.assertEqual(left, [])

    def test_killed_always(self):
        self.run_faults("always", "signal=KILL")

    def test_killed_everysec(self):
        self.run_faults("everysec", "signal=KILL")

    def test_failing_always(self):
        self.run_faults("always", "error=EIO")

    def test_failing_everysec(self):
        self.run_faults("everysec", "error=EIO")


if __name__ == "__main__":
    unittest.main()
