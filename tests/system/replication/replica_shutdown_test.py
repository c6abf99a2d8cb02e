#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that a leader that is shut down waits until its replicas have all writes.

Environment:
  BLOOMERY_SHUTDOWN_CYCLES  number of times that a loaded leader is shut down
"""

import random
import signal
import time
import unittest

from harness import let_time_pass, seed_from_environment, wait_until
from harness.counts import count
from harness.info import info
from harness.replication import ReplicaTest, offset
from harness.resp import ErrorReply, encode
from harness.write_load import Load

CYCLES = count("SHUTDOWN_CYCLES")
COMMON = ("--repl-diskless-sync-delay", "0", "--enable-debug-command", "yes")


class ReplicaShutdownTest(ReplicaTest):
    @classmethod
    def setUpClass(cls):
        cls.seed = seed_from_environment()

    def setUp(self):
        self.rng = random.Random(f"{self.seed}/{self.id()}")

    def pair(self, *options):
        leader = self.start_server(*COMMON, *options)
        replica = self.start_server(*COMMON)
        replica.expect_log("MASTER aborted|Connection|leader|link")
        to_leader, to_replica = self.connect(leader), self.connect(replica)
        self.follow(to_replica, leader.port)
        self.wait_for_link(to_replica)
        wait_until(lambda: "state=online" in info(to_leader).get("slave0", ""), "online")
        return leader, to_leader, replica, to_replica

    def stop_taking(self, replica):
        """Suspends a replica, so that it no longer reads the leader's stream."""
        replica.suspend()
        self.addCleanup(replica.resume)

    def left_ms(self, connection):
        return int(info(connection, "server").get("shutdown_in_milliseconds", -1))

    def test_a_replica_has_all_that_was_acknowledged(self):
        for cycle in range(CYCLES):
            leader, to_leader, replica, to_replica = self.pair("--bf-initial-size", "50")
            load = Load(self.rng.random())
            load.start(leader.port)
            load.wait_for_writes(self.rng.randrange(100, 1500))
            self.stop_taking(replica)
            begun = offset(to_leader)
            wait_until(
                lambda one=to_leader, least=begun: offset(one) > least + 1000,
                "writes that the replica has not got",
            )  # fmt: skip
            if cycle % 2 == 0:
                to_leader.send(encode("SHUTDOWN"))
            else:
                leader.process.send_signal(self.rng.choice([signal.SIGTERM, signal.SIGINT]))
            leader.wait_for_log("Waiting for replicas before shutting down")
            let_time_pass(0.1, why="the leader goes on waiting")
            replica.resume()
            self.assertEqual(leader.wait_for_exit(), 0)
            load.join()
            self.assertTrue([line for line in leader.log if "1 of 1 replicas are in sync" in line])
            self.assertEqual(to_replica.call("REPLICAOF", "NO", "ONE"), b"OK")
            self.assertEqual(load.check(to_replica), 0)

    def test_no_wait_when_replicas_have_everything(self):
        leader, to_leader, _, to_replica = self.pair("--shutdown-timeout", "3600")
        to_leader.call("SET", "key", "value")
        self.wait_until_equal_offsets(to_leader, to_replica)
        leader.process.send_signal(signal.SIGTERM)
        self.assertEqual(leader.wait_for_exit(), 0)
        self.assertEqual(to_replica.call("GET", "key"), b"value")

    def test_reads_continue_and_writes_wait_until_abort(self):
        leader, to_leader, replica, _ = self.pair("--shutdown-timeout", "300")
        to_leader.call("SET", "key", "1")
        self.stop_taking(replica)
        to_leader.call("SET", "key", "2")
        asking, writing = self.connect(leader), self.connect(leader)
        asking.send(encode("SHUTDOWN"))
        wait_until(lambda: self.left_ms(to_leader) > 0, "the shutdown")
        self.assertLessEqual(self.left_ms(to_leader), 300_000)
        writing.send(encode("SET", "key", "3"))
        # Another client's SHUTDOWN also waits, and CLIENT UNBLOCK cannot end the wait.
        asking_too = self.connect(leader)
        own_id = asking_too.call("CLIENT", "ID")
        asking_too.send(encode("SHUTDOWN", "NOSAVE"))
        wait_until(
            lambda: to_leader.call("CLIENT", "LIST").count(b" cmd=shutdown ") == 2, "both wait"
        )
        blocked = lambda: int(info(to_leader, "clients")["blocked_clients"])  # noqa: E731
        wait_until(lambda: blocked() == 3, "two SHUTDOWN and one write to be counted as blocked")
        self.assertEqual(to_leader.call("CLIENT", "UNBLOCK", own_id), 0)
        self.assertEqual(to_leader.call("GET", "key"), b"2")
        self.assertEqual(to_leader.call("SHUTDOWN", "ABORT"), b"OK")
        for connection in (asking, asking_too):
            reply = connection.read_reply()[0]
            self.assertIsInstance(reply, ErrorReply)
            self.assertRegex(reply.text, "^ERR .*SHUTDOWN")
        self.assertEqual(writing.read_reply()[0], b"OK")
        self.assertEqual(to_leader.call("GET", "key"), b"3")
        self.assertEqual(self.left_ms(to_leader), -1)
        self.assertRegex(to_leader.call("SHUTDOWN", "ABORT").text, "^ERR No shutdown")
        # The shutdown continues although the client that requested it has disconnected.
        asking.send(encode("SHUTDOWN"))
        wait_until(lambda: self.left_ms(to_leader) > 0, "the second shutdown")
        asking.close()
        self.assertEqual(to_leader.call("GET", "key"), b"3")
        leader.expect_log("Lagging replica")
        to_leader.send(encode("SHUTDOWN", "NOW"))
        self.assertEqual(leader.wait_for_exit(), 0)

    def test_wait_for_a_stuck_replica_has_a_limit(self):
        leader, to_leader, replica, _ = self.pair("--shutdown-timeout", "1")
        leader.expect_log("Lagging replica")
        self.stop_taking(replica)
        to_leader.call("SET", "key", "1")
        begun = time.monotonic()
        leader.process.send_signal(signal.SIGTERM)
        self.assertEqual(leader.wait_for_exit(), 0)
        self.assertGreaterEqual(time.monotonic() - begun, 1)
        self.assertTrue([line for line in leader.log if "0 of 1 replicas are in sync" in line])

    def test_second_signal_ends_the_wait(self):
        leader, to_leader, replica, _ = self.pair("--shutdown-timeout", "300")
        leader.expect_log("Lagging replica")
        self.stop_taking(replica)
        to_leader.call("SET", "key", "1")
        leader.process.send_signal(signal.SIGINT)
        leader.wait_for_log("Waiting for replicas before shutting down")
        self.assertEqual(to_leader.call("GET", "key"), b"1")
        leader.process.send_signal(signal.SIGINT)
        self.assertEqual(leader.wait_for_exit(), 0)


if __name__ == "__main__":
    unittest.main()
