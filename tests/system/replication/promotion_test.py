#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests a leader that dies under load, and a promoted replica that ends soon after its promotion.
No write is lost that WAIT or WAITAOF has confirmed, or that the new leader has acknowledged. Each
restart succeeds without manual repair.

Environment:
  BLOOMERY_PROMOTION_KILLS  number of promoted replicas to end, alternately by SIGKILL and SIGTERM
"""

import pathlib
import random
import shutil
import signal
import tempfile
import threading
import time
import unittest

from harness import let_time_pass, seed_from_environment, wait_until
from harness.counts import count
from harness.info import info
from harness.replication import ReplicaTest
from harness.resp import Connection, ErrorReply

KILLS = count("PROMOTION_KILLS")
WRITERS = 3
# With this much data, a snapshot or a log rewrite takes so long that a kill may interrupt it.
BALLAST_KEYS = 200
BALLAST_BYTES = 50_000
COMMON = ("--appendonly", "yes", "--repl-diskless-sync-delay", "0", "--repl-timeout", "10")


class Writer(threading.Thread):
    """Writes to a leader until the leader dies. Records the number of the last write for which
    WAIT or WAITAOF has reported that a replica acknowledged it.
    """

    def __init__(self, port, name):
        super().__init__(daemon=True)
        self.port = port
        self.name = name
        self.confirmed = 0  # the writes from number 1 to this number are confirmed
        self.failure = None
        self.start()

    def run(self):
        try:
            with Connection(self.port) as connection:
                self.write(connection)
        except (OSError, EOFError):
            pass
        except AssertionError as error:
            self.failure = error

    def write(self, connection):
        number = 0
        while True:
            for _ in range(20):
                number += 1
                write(connection, self.name, number)
            if number % 40 == 0:
                is_confirmed = connection.call("WAIT", 1, 50) >= 1
            else:
                is_confirmed = connection.call("WAITAOF", 0, 1, 50)[1] >= 1
            if is_confirmed:
                self.confirmed = number


def write(connection, name, number):
    """Writes a string and adds an item to a filter. Raises AssertionError if a command fails."""
    for command in (("SET", f"{name}:{number}", number), ("BF.ADD", f"filter:{name}", number)):
        reply = connection.call(*command)
        if isinstance(reply, ErrorReply):
            raise AssertionError(f"{command}: {reply}")


class PromotionTest(ReplicaTest):
    def setUp(self):
        self.seed = seed_from_environment()
        self.rng = random.Random(f"{self.seed}/{self.id()}")
        self.held = {}  # maps the name of a writer to the number of its writes that must survive

    def make_directory(self):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-promotion-"))
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        return directory

    def start(self, directory, *options):
        server = self.start_server(*COMMON, *options, directory=directory)
        server.expect_log(r"Replica .* is disconnected|There is a child saving. Killing it!")
        server.expect_log(r"is torn: .* cut off at offset|Background .* failed|lacks .* bytes")
        # A kill may end a write() to the append log exactly where a command ends.
        server.expect_log(r"no sound checksum line .*last \d+ commands")
        return server

    def check(self, server, held):
        with server.connect() as connection:
            self.assertEqual(info(connection)["role"], "master")
            for name, count in held.items():
                numbers = range(1, count + 1)
                found = connection.pipeline([("GET", f"{name}:{i}") for i in numbers])
                lost = [i for i, (value, _) in zip(numbers, found) if value != b"%d" % i]
                self.assertEqual(lost, [], f"of {count} of {name}")
                found = connection.call("BF.MEXISTS", f"filter:{name}", *numbers)
                self.assertEqual([i for i, is_there in zip(numbers, found) if not is_there], [])

    def promote_under_load(self, cycle, leader, replica):
        """Kills the leader under load, after the replica has confirmed some writes. Then promotes
        the replica.
        """
        writers = [Writer(leader.port, f"w{i}.{cycle}") for i in range(WRITERS)]
        with replica.connect() as connection:
            self.follow(connection, leader.port)
            self.wait_for_link(connection)
            wait_until(lambda: any(w.confirmed for w in writers), "something is confirmed")
            let_time_pass(self.rng.uniform(0, 0.2), why="the kill may come at any moment")
            leader.crash()
            for writer in writers:
                writer.join()
                self.assertIsNone(writer.failure)
                if writer.confirmed:
                    self.held[writer.name] = writer.confirmed
            self.assertEqual(connection.call("REPLICAOF", "NO", "ONE"), b"OK")

    def end_soon(self, cycle, server):
        """Writes to the new leader for at most half a second, then kills it or sends SIGTERM."""
        name = f"new.{cycle}"
        end = time.monotonic() + self.rng.uniform(0, 0.5)
        with server.connect() as connection:
            number = 0
            while number == 0 or time.monotonic() < end:
                number += 1
                write(connection, name, number)
                self.held[name] = number
        if cycle % 2 == 0:
            server.crash()
        else:
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.wait_for_exit(), 0)

    def fill(self, server):
        with server.connect() as connection:
            for number in range(BALLAST_KEYS):
                connection.call("SET", f"ballast:{number}", self.rng.randbytes(BALLAST_BYTES))

    def test_promoted_replica_that_ends_soon_loses_nothing(self):
        directories = [self.make_directory(), self.make_directory()]
        leader = self.start(directories[0])
        self.fill(leader)
        for cycle in range(KILLS):
            # From the second cycle on, the replica starts with the append log of a former leader.
            # The data of the present leader replace the data of this log.
            fsync = self.rng.choice(["always", "everysec", "no"])
            replica = self.start(directories[(cycle + 1) % 2], "--appendfsync", fsync)
            self.promote_under_load(cycle, leader, replica)
            self.end_soon(cycle, replica)
            leader = self.start(directories[(cycle + 1) % 2], "--appendfsync", fsync)
            # After the last cycle the writes of all cycles are checked.
            is_last = cycle + 1 == KILLS
            of_cycle = {n: c for n, c in self.held.items() if n.endswith(f".{cycle}")}
            self.check(leader, self.held if is_last else of_cycle)
        print(f"{KILLS} promoted replicas ended, {sum(self.held.values())} confirmed writes "
              "checked, 0 lost", flush=True)  # fmt: skip


if __name__ == "__main__":
    unittest.main()
