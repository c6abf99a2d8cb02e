#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that FAILOVER changes the roles without a full sync, and loses no acknowledged write.

Environment: BLOOMERY_HANDOVERS  number of role changes in test_roles_change_under_writers
"""

import threading
import unittest

from harness import DEADLINE_S, wait_until
from harness.counts import count
from harness.info import info
from harness.replication import ReplicaTest
from harness.resp import Connection, ErrorReply, encode

HANDOVERS = count("HANDOVERS")
WRITERS = 4
COMMON = ("--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0")


class Writer(threading.Thread):
    """Writes to the current leader until stop(), and records the acknowledged writes."""

    def __init__(self, ports, name):
        super().__init__(daemon=True)
        self.ports = ports
        self.name = name
        self.acked = []
        self.stopping = False
        self.failure = None
        self.start()

    def run(self):
        number = 0
        try:
            while not self.stopping:
                for port in self.ports:
                    with Connection(port) as connection:
                        number = self.write(connection, number)
        except (OSError, EOFError) as error:
            self.failure = error

    @property
    def count(self):
        return len(self.acked)

    def write(self, connection, number):
        while not self.stopping:
            number += 1
            for command in (
                ("SET", f"{self.name}:{number}", number),
                ("BF.ADD", f"filter:{self.name}", number),
            ):
                reply = connection.call(*command)
                if isinstance(reply, ErrorReply):
                    if not reply.text.startswith("READONLY"):
                        self.failure = reply
                        self.stopping = True
                    return number
            self.acked.append(number)
        return number

    def stop(self):
        self.stopping = True
        self.join()


class FailoverTest(ReplicaTest):
    def start(self, *options):
        server = self.start_server(*COMMON, *options)
        server.expect_log(r"Replica .* is disconnected|FAILOVER: ")
        return server, self.connect(server)

    def pair(self):
        leader, to_leader = self.start()
        replica, to_replica = self.start()
        self.follow(to_replica, leader.port)
        self.wait_for_link(to_replica)
        # FAILOVER needs a replica that has acknowledged. INFO calls other replicas online, too, but
        # ROLE does not list them.
        wait_until(lambda: to_leader.call("ROLE")[2], "online")
        return leader, to_leader, replica, to_replica

    def state(self, connection):
        return info(connection)["master_failover_state"]

    def wait_for_state(self, connection, state):
        wait_until(lambda: self.state(connection) == state, state)

    def assert_error(self, connection, text, *command):
        reply = connection.call(*command)
        self.assertIsInstance(reply, ErrorReply, f"{command}: {reply}")
        self.assertRegex(reply.text, f"^{text}")

    def full_syncs(self, *connections):
        return [int(info(connection, "stats")["sync_full"]) for connection in connections]

    def test_roles_change_under_writers(self):
        leader, to_leader, replica, to_replica = self.pair()
        third, to_third = self.start()
        self.follow(to_third, leader.port)
        self.wait_for_link(to_third)
        syncs = self.full_syncs(to_leader, to_replica, to_third)
        writers = [Writer((leader.port, replica.port), f"w{i}") for i in range(WRITERS)]
        sides = [(leader, to_leader), (replica, to_replica)]
        for _ in range(HANDOVERS):
            self.wait_for_writes(writers, 100)
            (_, old), (heir, new) = sides
            wait_until(
                lambda heir=heir, old=old: f"port={heir.port},state=online" in str(info(old)),
                "the heir is online")  # fmt: skip
            self.assertEqual(old.call("FAILOVER", "TO", "127.0.0.1", heir.port), b"OK")
            self.wait_for_state(old, "no-failover")
            self.assertEqual(info(old)["role"], "slave")
            self.assertEqual(info(new)["role"], "master")
            self.wait_for_link(old)
            # The third server must learn each new replication id, because a replica that misses two
            # changes of the id needs a full sync.
            wait_until(
                lambda new=new: info(to_third)["master_replid"] == info(new)["master_replid"],
                "the third one knows who leads")  # fmt: skip
            sides.reverse()
        for writer in writers:
            writer.stop()
            self.assertIsNone(writer.failure)
            self.assertGreater(len(writer.acked), HANDOVERS)
        (_, old), (_, new) = sides[1], sides[0]
        self.wait_until_equal_offsets(new, old)
        self.wait_until_equal_offsets(new, to_third)
        for writer in writers:
            for number in writer.acked:
                self.assertEqual(new.call("GET", f"{writer.name}:{number}"), str(number).encode())
                self.assertEqual(new.call("BF.EXISTS", f"filter:{writer.name}", number), 1)
        digest = new.call("DEBUG", "DIGEST")
        self.assertEqual(old.call("DEBUG", "DIGEST"), digest)
        self.assertEqual(to_third.call("DEBUG", "DIGEST"), digest)
        self.assertEqual(self.full_syncs(to_leader, to_replica, to_third), syncs)

    def test_without_a_target_the_replica_that_has_all(self):
        _, to_leader, _, to_replica = self.pair()
        to_leader.call("SET", "key", "value")
        self.assertEqual(to_leader.call("FAILOVER"), b"OK")
        self.wait_for_state(to_leader, "no-failover")
        self.assertEqual(info(to_leader)["role"], "slave")
        self.assertEqual(info(to_replica)["role"], "master")
        self.assertEqual(to_replica.call("GET", "key"), b"value")

    def begin_with_stopped_replica(self, *options):
        leader, to_leader, replica, to_replica = self.pair()
        replica.suspend()
        self.addCleanup(replica.resume)
        to_leader.call("SET", "key", "value")
        self.assertEqual(to_leader.call("FAILOVER", *options), b"OK")
        self.assertEqual(self.state(to_leader), "waiting-for-sync")
        return leader, to_leader, replica, to_replica

    def force_upon_stopped(self, to_leader, replica, while_stopped=lambda: None):
        """Begins FAILOVER with FORCE to a suspended replica, which does not answer."""
        replica.suspend()
        self.addCleanup(replica.resume)
        to_leader.call("SET", "key", "value")
        while_stopped()
        command = ("FAILOVER", "TO", "127.0.0.1", replica.port, "FORCE", "TIMEOUT", "300")
        self.assertEqual(to_leader.call(*command), b"OK")
        self.wait_for_state(to_leader, "failover-in-progress")

    def test_abort_lets_writes_go_on(self):
        leader, to_leader, replica, to_replica = self.begin_with_stopped_replica()
        writer = leader.connect()
        self.addCleanup(writer.close)
        thread = threading.Thread(target=writer.call, args=("SET", "held", "back"))
        thread.start()
        self.assertEqual(to_leader.call("CLIENT", "UNPAUSE"), b"OK")
        thread.join(0.5)
        self.assertTrue(thread.is_alive(), "a write during the pause was answered")
        self.assertIsNone(to_leader.call("GET", "held"))
        self.assert_error(to_leader, "ERR FAILOVER already", "FAILOVER")
        self.assert_error(to_leader, "ERR REPLICAOF .*failing over", "REPLICAOF", "NO", "ONE")
        self.assert_error(to_leader, "NOMASTERLINK .*failing over", "PSYNC", "?", "-1")
        self.assertEqual(to_leader.call("FAILOVER", "ABORT"), b"OK")
        self.assertEqual(self.state(to_leader), "no-failover")
        thread.join(DEADLINE_S)
        self.assertFalse(thread.is_alive())
        self.assertEqual(to_leader.call("GET", "held"), b"back")
        self.assertEqual(info(to_leader)["role"], "master")
        replica.resume()
        self.wait_until_equal_offsets(to_leader, to_replica)

    def test_timeout(self):
        _, to_leader, replica, to_replica = self.begin_with_stopped_replica("TIMEOUT", "3000")
        self.wait_for_state(to_leader, "no-failover")
        self.assertEqual(info(to_leader)["role"], "master")
        self.assertEqual(to_leader.call("SET", "later", "1"), b"OK")
        replica.resume()
        self.wait_until_equal_offsets(to_leader, to_replica)

    def test_force_goes_on_and_can_be_aborted(self):
        leader, to_leader, replica, to_replica = self.pair()
        syncs = self.full_syncs(to_leader, to_replica)
        self.force_upon_stopped(to_leader, replica)
        self.assertEqual(info(to_leader)["role"], "slave")
        self.assertEqual(to_leader.call("FAILOVER", "ABORT"), b"OK")
        self.assertEqual(info(to_leader)["role"], "master")
        self.assertEqual(to_leader.call("SET", "later", "1"), b"OK")
        replica.resume()
        self.wait_until_equal_offsets(to_leader, to_replica)
        self.assertEqual(to_replica.call("GET", "later"), b"1")
        self.assertEqual(self.full_syncs(to_leader, to_replica), syncs)

    def test_lost_target_gives_the_role_back(self):
        leader, to_leader, replica, to_replica = self.pair()
        self.force_upon_stopped(to_leader, replica)
        replica.crash()
        self.wait_for_state(to_leader, "no-failover")
        self.assertEqual(info(to_leader)["role"], "master")
        self.assertEqual(to_leader.call("SET", "later", "1"), b"OK")

    def test_refusal_gives_the_role_back(self):
        _, to_leader, replica, to_replica = self.pair()
        # The replica executes REPLICAOF NO ONE before the leader's PSYNC FAILOVER arrives, so it
        # rejects the handover.
        self.force_upon_stopped(
            to_leader, replica, lambda: to_replica.send(encode("REPLICAOF", "NO", "ONE"))
        )
        replica.resume()
        self.assertEqual(to_replica.read_reply()[0], b"OK")
        self.wait_for_state(to_leader, "no-failover")
        self.assertEqual(info(to_leader)["role"], "master")
        self.assertEqual(to_leader.call("SET", "later", "1"), b"OK")

    def hand_over_by_redis(self, *options):
        """A redis-server hands its role to a Bloomery with these options. Returns the connections
        to both after the attempt, and the Bloomery.
        """
        redis = self.start_redis()
        redis.expect_log(r"Diskless rdb transfer|Connection with (replica|master)")
        redis.expect_log("Error condition on socket for SYNC|Setting secondary replication ID")
        to_redis = self.connect(redis)
        server, heir = self.start(*options)
        to_redis.call("SET", "key", "value")
        self.follow(heir, redis.port)
        self.wait_for_link(heir)
        wait_until(lambda: "state=online" in info(to_redis).get("slave0", ""), "online")
        self.assertEqual(to_redis.call("FAILOVER", "TIMEOUT", "10000"), b"OK")
        self.wait_for_state(to_redis, "no-failover")
        return to_redis, heir, server

    def test_redis_hands_its_role_to_this_server(self):
        to_redis, heir, _ = self.hand_over_by_redis()
        self.assertEqual(info(heir)["role"], "master")
        self.assertEqual(info(to_redis)["role"], "slave")
        self.wait_for_link(to_redis)
        heir.call("SET", "later", "1")
        self.wait_until_equal_offsets(heir, to_redis)
        self.assertEqual(to_redis.call("GET", "key"), b"value")
        self.assertEqual(to_redis.call("GET", "later"), b"1")

    def test_a_promoted_redis_gives_all_data_again(self):
        """A Redis that takes over continues the history, but its commands are not effects."""
        leader, to_leader, replica, to_replica = self.pair()
        for server in (leader, replica):
            server.expect_log("continues the history of a Bloomery and is none")
        redis = self.start_redis("--replicaof", f"127.0.0.1 {leader.port}")
        redis.expect_log(r".*")
        to_redis = self.connect(redis)
        self.wait_for_link(to_redis)
        wait_until(lambda: f"port={redis.port},state=online" in str(info(to_leader)), "online")
        to_leader.call("SET", "a", "1")
        self.assertEqual(to_leader.call("FAILOVER", "TO", "127.0.0.1", redis.port), b"OK")
        self.wait_for_state(to_leader, "no-failover")
        self.assertEqual(info(to_redis)["role"], "master")
        self.follow(to_replica, redis.port)
        for follower in (to_leader, to_replica):
            self.wait_for_link(follower)
            self.assertEqual(info(follower)["role"], "slave")
        self.assertEqual(self.full_syncs(to_redis), [2])
        to_redis.call("FUNCTION", "FLUSH")
        to_redis.call("SET", "b", "2")
        for follower in (to_leader, to_replica):
            self.wait_until_equal_offsets(to_redis, follower)
            self.assertEqual(follower.call("MGET", "a", "b"), [b"1", b"2"])
        self.assertEqual(self.full_syncs(to_redis), [2])

    def test_a_redis_that_is_refused_goes_on_leading(self):
        """The target refuses its leader before it takes the role, so never both lead."""
        to_redis, heir, server = self.hand_over_by_redis("--replica-foreign", "no")
        server.expect_log("is refused: .*replica-foreign no")
        self.assertEqual(info(to_redis)["role"], "master")
        self.assertEqual(info(heir)["role"], "slave")
        self.wait_for_link(heir)
        to_redis.call("SET", "later", "1")
        self.wait_until_equal_offsets(to_redis, heir)
        self.assertEqual(heir.call("GET", "later"), b"1")

    def test_errors(self):
        leader, to_leader, replica, to_replica = self.pair()
        alone = self.start()[1]
        syntax = "ERR syntax"
        number = "ERR value .*integer"
        positive = "ERR FAILOVER timeout .*greater"
        forced = "ERR FAILOVER with force .*both"
        stranger = "ERR FAILOVER target .*not a replica"
        port = str(replica.port)
        for connection, text, *words in (
            (alone, "ERR FAILOVER requires .*replicas"),
            (to_replica, "ERR FAILOVER .*server is a replica"),
            (to_leader, "ERR No failover", "ABORT"),
            (to_leader, syntax, "BOGUS"),
            (to_leader, syntax, "TO", "host"),
            (to_leader, syntax, "ABORT", "TIMEOUT", "1"),
            (to_leader, syntax, "TIMEOUT", "1", "TIMEOUT", "2"),
            (to_leader, number, "TO", "host", "x"),
            (to_leader, number, "TIMEOUT", "x"),
            (to_leader, positive, "TIMEOUT", "0"),
            (to_leader, forced, "FORCE"),
            (to_leader, forced, "TO", "127.0.0.1", port, "FORCE"),
            (to_leader, forced, "FORCE", "TIMEOUT", "10"),
            (to_leader, stranger, "TO", "127.0.0.1", "1"),
            (to_leader, stranger, "TO", "127.0.0.1", str(replica.port + 65536)),
        ):
            with self.subTest(words=words):
                self.assert_error(connection, text, "FAILOVER", *words)
        no_replica = "ERR PSYNC FAILOVER .*master"
        self.assert_error(to_leader, no_replica, "PSYNC", "?", "-1", "FAILOVER")
        other_id = "ERR PSYNC FAILOVER .*replid"
        self.assert_error(to_replica, other_id, "PSYNC", "?", "-1", "FAILOVER")
        self.assertEqual(info(to_replica)["role"], "slave")


if __name__ == "__main__":
    unittest.main()
