#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests a chain of a leader, its replica and a replica of the replica. After cuts, crashes and
changes of role all servers hold the same data.

Environment: BLOOMERY_LINK_CUTS  number of links that test_cuts cuts
"""

import random
import tempfile
import threading
import unittest

from harness import free_port, pace, seed_from_environment, wait_until
from harness.counts import count
from harness.cutting_proxy import CuttingProxy
from harness.info import info
from harness.replication import ReplicaTest, offset
from harness.resp import Connection, ErrorReply, encode

CUTS = count("LINK_CUTS")
COMMON = ("--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0")


class Writer(threading.Thread):
    """Sends writes of all kinds until stop(). While the leader is down, tries to reconnect."""

    def __init__(self, port, name, seed):
        super().__init__(daemon=True)
        self.port = port
        self.name = name
        self.random = random.Random(seed)
        self.count = 0
        self.stopping = False
        self.start()

    def commands(self):
        chance = self.random
        key = f"{self.name}:{chance.randrange(40)}"
        kind = chance.randrange(13)
        if kind < 2:
            return [("SET", "s" + key, chance.randbytes(chance.randrange(1500)))]
        if kind < 4:
            return [("SETBIT", "b" + key, chance.randrange(40000), chance.randrange(2))]
        if kind < 7:
            return [("BF.ADD", "f" + key, f"item{chance.randrange(5000)}")]
        if kind == 7:
            return [("BF.MADD", "shared", *(chance.randrange(20000) for _ in range(5)))]
        if kind == 8:
            return [("INCR", "shared:count")]
        if kind == 9:
            return [("SET", "p" + key, "soon gone", "PX", chance.randrange(1, 300))]
        if kind == 10:
            return [(chance.choice(["DEL", "UNLINK"]), chance.choice("sbf") + key)]
        if kind == 11:
            return [self.command_on_whole_filters(key)]
        return [("MULTI",), ("SELECT", "3"), ("INCR", "n" + key), ("BF.ADD", "g" + key, kind),
                ("SELECT", "0"), ("APPEND", "a" + key, "x"), ("EXEC",)]  # fmt: skip

    def command_on_whole_filters(self, key):
        """Returns a random command on whole filters. The server may reject the command."""
        chance = self.random
        other = f"{self.name}:{chance.randrange(40)}"
        return chance.choice([
            ("BF.MERGE", "f" + key, "f" + other, "g" + other),
            ("BF.MERGE", "u" + key, "f" + key, "f" + other, "FORCE"),
            ("BF.CLEAR", chance.choice("fu") + key),
            ("BF.KADD", "3", "f" + key, "k" + other, "f" + key, *(chance.randrange(99), "x")),
            ("BF.INSERT", "pf" + key, "PX", chance.randrange(1, 300), "ITEMS", "soon", "gone"),
            # Arrays of this size are in memory that the server shares with its child processes.
            ("BF.INSERT", "wide" + chance.choice("ab"), "CAPACITY", "1000000", "ITEMS", key),
            ("BF.MERGE", "wide" + chance.choice("abc"), "wide" + chance.choice("ab"), "FORCE"),
        ])  # fmt: skip

    def run(self):
        while not self.stopping:
            try:
                with Connection(self.port) as connection:
                    while not self.stopping:
                        self.write(connection)
            except (OSError, EOFError):
                pace(0.05)

    def write(self, connection):
        commands = [command for _ in range(10) for command in self.commands()]
        connection.send(b"".join(encode(*command) for command in commands))
        for _ in commands:
            connection.read_reply()
        self.count += len(commands)

    def stop(self):
        self.stopping = True
        self.join()


class ReplicationTest(ReplicaTest):
    def start(self, *options, **more):
        server = self.start_server(*COMMON, *options, **more)
        # A leader logs these warnings when the test cuts links or ends replicas.
        server.expect_log(r"Replica .* is disconnected|A snapshot for replicas failed")
        return server, self.connect(server)

    def proxy(self, port, budget=lambda: None):
        proxy = CuttingProxy(port, budget)
        self.addCleanup(proxy.close)
        return proxy

    def start_writers(self, port, seed, count=3):
        writers = [Writer(port, f"w{number}", seed + number) for number in range(count)]
        for writer in writers:
            self.addCleanup(writer.stop)
        return writers

    def digest(self, connection):
        return connection.call("DEBUG", "DIGEST")

    def check_equal(self, leader, *replicas):
        """Checks that all servers have the same data as the leader. REQUIRES: no client writes."""
        wait_until(lambda: not leader.call("KEYS", "p*"), "the end of what expires")
        self.wait_until_deleted_what_expired(leader)
        self.wait_until_equal_offsets(leader, *replicas)
        expected = self.digest(leader)
        self.assertNotIsInstance(expected, ErrorReply)
        self.assertNotEqual(expected, b"0" * 40)
        for replica in replicas:
            self.assertEqual(self.digest(replica), expected)

    def preload(self, leader):
        """Writes about 450 KB, so that some cuts occur during the first snapshot and some later."""
        for number in range(200):
            leader.call("SET", f"old:{number}", random.randbytes(1000))
        leader.call("BF.RESERVE", "big", "0.001", "150000")
        leader.call("BF.MADD", "big", *range(1000))

    def test_cuts(self):
        seed = seed_from_environment()
        chance = random.Random(seed)
        leader_server, leader = self.start("--repl-backlog-size", "256mb", "--appendonly", "yes")
        self.preload(leader)
        budget = lambda: int(10 ** chance.uniform(0, 6.5))  # noqa: E731
        first = self.proxy(leader_server.port, budget)
        replica_server, replica = self.start(
            "--appendonly", chance.choice(["yes", "no"]), "--repl-backlog-size", "256mb"
        )
        second = self.proxy(replica_server.port, budget)
        _, chained = self.start()
        writers = self.start_writers(leader_server.port, seed)
        self.follow(replica, first.port)
        self.follow(chained, second.port)

        def cuts():
            return first.cuts + second.cuts

        while cuts() < CUTS:
            before = cuts()
            wait_until(lambda least=before: cuts() > least, f"cut {before + 1} of {CUTS}")
            if chance.random() < 0.1:
                leader.call("BGREWRITEAOF")
            if chance.random() < 0.1:
                leader.call("BGSAVE", "SCHEDULE")
        for proxy in (first, second):
            proxy.budget = lambda: None
            proxy.cut_all()
        self.wait_for_link(replica)
        self.wait_for_link(chained)
        fulls = [int(info(one, "stats")["sync_full"]) for one in (leader, replica)]
        # From here on every server has data, and the backlog contains all later writes, so no full
        # sync is needed.
        for _ in range(10):
            self.wait_for_writes(writers, 200)
            first.cut_all()
            second.cut_all()
        for writer in writers:
            writer.stop()
        self.check_equal(leader, replica, chained)
        stats = [info(one, "stats") for one in (leader, replica)]
        print(f"{first.cuts}+{second.cuts} cuts and 20 more of {first.count}+{second.count} links "
              f"under {sum(w.count for w in writers)} commands; full "
              f"{[f['sync_full'] for f in stats]}, partial {[f['sync_partial_ok'] for f in stats]}")
        self.assertEqual([int(fields["sync_full"]) for fields in stats], fulls)
        for fields in stats:
            self.assertGreater(int(fields["sync_partial_ok"]), 0)
        for one in (replica, chained):
            self.assertEqual(info(one, "stats")["unexpected_error_replies"], "0")

    def test_a_backlog_that_is_too_short(self):
        seed = seed_from_environment()
        leader_server, leader = self.start("--repl-backlog-size", "16kb")
        proxy = self.proxy(leader_server.port)
        _, replica = self.start()
        writers = self.start_writers(leader_server.port, seed)
        self.follow(replica, proxy.port)
        for _ in range(5):
            self.wait_for_link(replica)
            proxy.is_refusing = True
            proxy.cut_all()
            wait_until(
                lambda: info(replica)["master_link_status"] == "down", "the replica misses its link"
            )
            begin = offset(leader)
            wait_until(lambda least=begin: offset(leader) > least + (64 << 10), "enough writes")
            proxy.is_refusing = False
        for writer in writers:
            writer.stop()
        self.check_equal(leader, replica)
        self.assertGreaterEqual(int(info(leader, "stats")["sync_full"]), 5)

    def test_leader_restart_and_log_of_a_replica(self):
        seed = seed_from_environment()
        directories = [tempfile.mkdtemp(prefix="bloomery-replication-") for _ in range(2)]
        options = ("--dir", directories[0], "--save", "3600 1")
        port = free_port()
        leader_server, leader = self.start(*options, port=port)
        replica_options = ("--dir", directories[1], "--appendonly", "yes")
        replica_server, replica = self.start(*replica_options)
        self.follow(replica, port)
        writers = self.start_writers(port, seed)
        self.wait_for_writes(writers, 2000)
        for writer in writers:
            writer.stop()
        self.check_equal(leader, replica)
        self.assertFalse(leader_server.stop())
        leader_server, leader = self.start(*options, port=port)
        self.wait_for_link(replica)
        self.assertEqual(info(leader, "stats")["sync_full"], "0", "its snapshot has the ids")
        self.assertEqual(info(leader, "stats")["sync_partial_ok"], "1")
        writers = self.start_writers(port, seed + 100)
        self.wait_for_writes(writers, 2000)
        for writer in writers:
            writer.stop()
        self.check_equal(leader, replica)
        expected = self.digest(leader)
        wait_until(lambda: info(replica, "persistence")["aof_rewrite_in_progress"] == "0")
        self.assertFalse(replica_server.stop())
        _, replica = self.start(*replica_options)
        self.assertEqual(self.digest(replica), expected, "what its own log says")

    def test_promotion_in_a_chain(self):
        seed = seed_from_environment()
        # Leaders send no PINGs here. A PING of the old leader that the middle server missed would
        # make a full sync necessary.
        quiet = ("--repl-ping-replica-period", "1000")
        leader_server, leader = self.start(*quiet)
        middle_server, middle = self.start(*quiet)
        last_server, last = self.start(*quiet)
        self.follow(middle, leader_server.port)
        self.wait_for_link(middle)
        self.follow(last, middle_server.port)
        self.wait_for_link(last)
        for round_number in range(3):
            writers = self.start_writers(leader_server.port, seed + round_number * 10)
            self.wait_for_writes(writers, 1000)
            for writer in writers:
                writer.stop()
            self.check_equal(leader, middle, last)
            # The middle server becomes the leader. The old leader follows at the end of the chain.
            self.assertEqual(middle.call("REPLICAOF", "NO", "ONE"), b"OK")
            self.follow(leader, last_server.port)
            self.wait_for_link(last)
            self.wait_for_link(leader)
            leader_server, middle_server, last_server = middle_server, last_server, leader_server
            leader, middle, last = middle, last, leader
        self.check_equal(leader, middle, last)
        fulls = sum(int(info(one, "stats")["sync_full"]) for one in (leader, middle, last))
        partials = sum(int(info(one, "stats")["sync_partial_ok"]) for one in (leader, middle, last))
        print(f"3 changes of leader: full {fulls}, partial {partials}")
        self.assertEqual(fulls, 2, "only the first two")

    def test_a_change_of_role_under_writes(self):
        """The old leader may lose its last writes: after its demotion it must hold exactly the data
        of the new leader.
        """
        seed = seed_from_environment()
        first_server, first = self.start()
        second_server, second = self.start()
        self.follow(second, first_server.port)
        self.wait_for_link(second)
        for round_number in range(5):
            writers = self.start_writers(first_server.port, seed + round_number * 10)
            self.wait_for_writes(writers, 1000)
            # The link is up as soon as the replica has loaded the snapshot. The stream begins only
            # when the leader notices the end of its child process.
            self.wait_until_offset(second, offset(first))
            # As in a failover by Sentinel, the new leader is promoted first. The old leader accepts
            # writes until its demotion.
            second.call("REPLICAOF", "NO", "ONE")
            self.wait_for_writes(writers, 200)
            self.follow(first, second_server.port)
            for writer in writers:
                writer.stop()
            self.wait_for_link(first)
            self.check_equal(second, first)
            first_server, second_server = second_server, first_server
            first, second = second, first

    def test_a_stopped_replica(self):
        seed = seed_from_environment()
        leader_server, leader = self.start(
            "--client-output-buffer-limit", "replica 1mb 1mb 1", "--repl-backlog-size", "64kb"
        )
        replica_server, replica = self.start()
        self.follow(replica, leader_server.port)
        self.wait_for_link(replica)
        writers = self.start_writers(leader_server.port, seed)
        replica_server.suspend()
        try:
            wait_until(
                lambda: info(leader)["connected_slaves"] == "0", "the limit of the replica"
            )
        finally:
            replica_server.resume()
        self.wait_for_writes(writers, 1000)
        for writer in writers:
            writer.stop()
        self.check_equal(leader, replica)
        self.assertGreaterEqual(int(info(leader, "stats")["sync_full"]), 2)


if __name__ == "__main__":
    unittest.main()
