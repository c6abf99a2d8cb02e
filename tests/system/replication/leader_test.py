#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests our server as the leader of Debian's redis-server, of redis-cli, and of scripted replicas
that disconnect or hang during a full synchronization. The folder tests/server/replication/leader/
compares the bytes that replicas get."""

import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

from harness import SLOW, ServerTest, pace, seed_from_environment, wait_until
from harness.info import info
from harness.replication_peer import CuttingProxy, RawReplica, Writers
from harness.resp import encode
from harness.waiting import DEADLINE_S

FAST = ("--repl-diskless-sync-delay", "0")


class LeaderTest(ServerTest):
    def start_leader(self, *options, **more):
        return self.start_server(*FAST, *options, **more)

    def start_redis_replica(self, port, *options):
        replica = self.start_redis("--replicaof", f"127.0.0.1 {port}", *options)
        # A replica logs many warnings when its leader is unreachable, so the test accepts all its
        # warnings.
        replica.expect_log(r".*")
        return replica

    def wait_for_offset(self, leader, replica):
        """Waits until the replica has everything that the leader has written."""
        with leader.connect() as ours, replica.connect() as theirs:
            wait_until(
                lambda: info(theirs).get("master_link_status") == "up"
                and info(theirs)["slave_repl_offset"] == info(ours)["master_repl_offset"],
                "the replica's offset",
            )

    def dump(self, server):
        """Returns all keys of all databases with their values and expiry times."""
        found = {}
        with server.connect() as client:
            for database in range(16):
                client.call("SELECT", database)
                keys = sorted(client.call("KEYS", "*"))
                replies = client.pipeline([("GET", key) for key in keys])
                ends = client.pipeline([("PEXPIRETIME", key) for key in keys])
                for key, (value, _), (end, _) in zip(keys, replies, ends):
                    # If a key expires after KEYS has listed it, GET does not find it.
                    if value is not None:
                        found[database, key] = (value, end)
        return found

    def assert_same_data(self, leader, replica):
        self.wait_for_offset(leader, replica)
        # A key that expires between the two dumps is missing from one of them, so wait_until()
        # repeats the comparison.
        wait_until(lambda: self.dump(leader) == self.dump(replica), "the same data")


class RedisReplicaTest(LeaderTest):
    def test_strings_reach_redis_in_either_form(self):
        for diskless in ("yes", "no"):
            leader = self.start_leader("--repl-diskless-sync", diskless)
            with leader.connect() as client:
                client.call("SET", "before", "x" * 100_000)
                client.call("SELECT", 3)
                client.call("SET", "other", "y", "PX", 1_000_000)
                replica = self.start_redis_replica(leader.port)
                self.wait_for_offset(leader, replica)
                client.call("SET", "after", "z")
                client.call("SELECT", 5)
                client.call("SETBIT", "bits", 1000, 1)
                self.assert_same_data(leader, replica)
                fields = info(client)
                self.assertEqual(fields["role"], "master")
                self.assertEqual(fields["connected_slaves"], "1")
                wait_until(
                    lambda: re.fullmatch(
                        rf"ip=127\.0\.0\.1,port={replica.port},state=online,"
                        rf"offset={info(client)['master_repl_offset']},lag=[01]",
                        info(client)["slave0"],
                    ),
                    what="slave0",
                )
                role = client.call("ROLE")
                self.assertEqual(role[0], b"master")
                self.assertEqual(role[2][0][:2], [b"127.0.0.1", str(replica.port).encode()])
            self.assertFalse([name for name in os.listdir(leader.directory) if "temp" in name])

    def test_cuts_are_repaired_from_the_backlog(self):
        seed = seed_from_environment()
        rng = random.Random(seed)
        leader = self.start_leader("--repl-backlog-size", "100mb")
        proxy = CuttingProxy(leader.port, lambda: rng.randrange(1, 200_000))
        self.addCleanup(proxy.close)
        replica = self.start_redis_replica(proxy.port)
        writers = Writers(leader.port, 3, seed)
        try:
            wait_until(lambda: proxy.cuts >= 8, "cuts")
        finally:
            writers.stop()
        proxy.lengths = lambda: None
        proxy.cut_all()
        self.assert_same_data(leader, replica)
        with leader.connect() as client:
            stats = info(client, "stats")
        print(f"cuts {proxy.cuts}, commands {writers.commands}, full {stats['sync_full']}, "
              f"partial {stats['sync_partial_ok']}, refused {stats['sync_partial_err']}")
        self.assertGreater(int(stats["sync_partial_ok"]), 0)
        # If the link is cut before the replica knows the replication id, another full sync follows.
        # Later cuts cause none.
        self.assertLess(int(stats["sync_full"]), proxy.cuts)

    def test_restarted_leader_continues_from_its_snapshot(self):
        directory = tempfile.mkdtemp(prefix="bloomery-test-")
        self.addCleanup(shutil.rmtree, directory)
        options = ("--save", "1000 1000")
        leader = self.start_leader(*options, directory=directory)
        port = leader.port
        with leader.connect() as client:
            client.call("SET", "a", "1")
        replica = self.start_redis_replica(port)
        self.wait_for_offset(leader, replica)
        with leader.connect() as client:
            client.call("SET", "b", "2", "PX", 50)
        self.wait_for_offset(leader, replica)
        self.assertFalse(leader.stop())
        again = self.start_leader(*options, directory=directory, port=port)
        self.wait_for_offset(again, replica)
        with again.connect() as client:
            self.assertEqual(info(client, "stats")["sync_partial_ok"], "1")
            self.assertEqual(info(client, "stats")["sync_full"], "0")
            client.call("SET", "c", "3")
        self.assert_same_data(again, replica)
        with replica.connect() as client:
            wait_until(lambda: sorted(client.call("KEYS", "*")) == [b"a", b"c"], what="keys")

    def test_killed_leader_continues_in_its_database(self):
        """After its snapshot, the leader writes to database 3 without another SELECT."""
        directory = tempfile.mkdtemp(prefix="bloomery-test-")
        self.addCleanup(shutil.rmtree, directory)
        options = ("--appendonly", "no", "--save", "")
        leader = self.start_leader(*options, directory=directory)
        replica = self.start_leader(*options, "--replicaof", f"127.0.0.1 {leader.port}")
        with leader.connect() as client, replica.connect() as other:
            wait_until(lambda: info(other)["master_link_status"] == "up", "the link")
            client.call("SELECT", 3)
            client.call("SET", "a", "1")
            wait_until(lambda: client.call("SAVE") == b"OK", "the end of the full sync's child")
            client.call("SET", "b", "2")
            other.call("SELECT", 3)
            wait_until(lambda: other.call("GET", "b") == b"2", "the replica's copy")
            leader.crash()
            other.call("REPLICAOF", "NO", "ONE")
            again = self.start_leader(
                *options, "--replicaof", f"127.0.0.1 {replica.port}", directory=directory
            )
            with again.connect() as client:
                client.call("SELECT", 3)
                # The link is up before the data of the partial sync are applied.
                wait_until(lambda: client.call("GET", "b") == b"2", "the partial sync's data")
                self.assertEqual(info(other, "stats")["sync_partial_ok"], "1")
                client.call("SELECT", 0)
                self.assertIsNone(client.call("GET", "b"))


class CliTest(LeaderTest):
    def test_rdb(self):
        for diskless in ("yes", "no"):
            leader = self.start_leader("--repl-diskless-sync", diskless)
            with leader.connect() as client:
                client.call("BF.ADD", "filter", "x")
                client.call("SET", "a", "1")
            directory = tempfile.mkdtemp(prefix="bloomery-test-")
            self.addCleanup(shutil.rmtree, directory)
            path = pathlib.Path(directory) / "got.rdb"
            said = self.run_client(["redis-cli", "-p", leader.port, "--rdb", path])
            self.assertIn("Transfer finished with success", said)
            copy = self.start_server("--dbfilename", "got.rdb", directory=directory)
            with copy.connect() as client:
                self.assertEqual(client.call("GET", "a"), b"1")
                self.assertEqual(client.call("BF.EXISTS", "filter", "x"), 1)

    def test_replica_prints_the_stream(self):
        leader = self.start_leader()
        done = threading.Event()

        def write():
            with leader.connect() as client:
                while not done.is_set():
                    client.call("SET", "a", "printed")
                    pace(0.1)

        writer = threading.Thread(target=write)
        writer.start()
        process = subprocess.Popen(
            ["redis-cli", "-p", str(leader.port), "--replica"], stdout=subprocess.PIPE, text=True
        )
        try:
            for line in process.stdout:
                if '"SET","a","printed"' in line:
                    break
            else:
                self.fail("redis-cli ended without the stream")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            done.set()
            writer.join()


class StreamTest(LeaderTest):
    def test_cuts_inside_the_full_synchronization(self):
        seed = seed_from_environment()
        rng = random.Random(seed)
        for diskless in ("yes", "no"):
            leader = self.start_leader("--repl-diskless-sync", diskless, "--rdbcompression", "no")
            leader.expect_log("is disconnected|snapshot for replicas failed")
            with leader.connect() as client:
                client.call("SET", "a", "x" * 1_000_000)
                for _ in range(30):
                    cut = RawReplica(leader.port)
                    cut.link.send(encode("PSYNC", "?", -1))
                    size = rng.choice([0, 1, 30, 60, rng.randrange(1_000_000)])
                    cut.read_exactly(size)
                    cut.close()
                whole = RawReplica(leader.port)
                self.assertIn(b"x" * 1_000_000, whole.full_sync())
                client.call("SET", "b", "1")
                whole.read_stream_until(encode("SET", "b", "1"))
                whole.close()
                wait_until(lambda: info(client)["connected_slaves"] == "0")
            self.assertFalse([name for name in os.listdir(leader.directory) if "temp" in name])

    def test_unwanted_snapshot_ends(self):
        for diskless in ("yes", "no"):
            leader = self.start_leader("--repl-diskless-sync", diskless)
            with leader.connect() as client:
                client.pipeline([("SET", f"k{i}", i) for i in range(1000)])
                # The child would need a thousand seconds.
                client.call("CONFIG", "SET", "rdb-key-save-delay", 10**6)
                replica = RawReplica(leader.port)
                replica.link.send(encode("PSYNC", "?", -1))
                wait_until(leader.children, "the child that writes the snapshot")
                replica.close()
                wait_until(lambda: not leader.children(), "the end of the child")
            self.assertFalse([name for name in os.listdir(leader.directory) if "temp" in name])

    def test_stuck_replica_does_not_delay_others(self):
        leader = self.start_server(
            "--repl-diskless-sync-delay", "1", "--repl-timeout", int(max(5, 5 * SLOW)),
            "--rdbcompression", "no",
        )  # fmt: skip
        leader.expect_log("is disconnected")
        with leader.connect() as client:
            client.pipeline([("SETBIT", f"k{i}", 8_000_000, 1) for i in range(60)])
        good, stuck = RawReplica(leader.port), RawReplica(leader.port)
        for replica in (good, stuck):
            replica.link.send(encode("PSYNC", "?", -1))
        self.assertTrue(good.read_line().startswith(b"+FULLRESYNC"))
        snapshot = good.read_snapshot()
        good.ack()  # within repl-timeout
        self.assertGreater(len(snapshot), 60_000_000)
        with leader.connect() as client:

            def only_the_good_one_is_left():
                good.ack()  # the leader disconnects a replica without acknowledgements
                fields = info(client)
                return fields["connected_slaves"] == "1" and "state=online" in fields["slave0"]

            wait_until(only_the_good_one_is_left)
        good.close()
        stuck.close()

    def test_wait_is_for_the_writes_of_its_client(self):
        """As in redis-server, WAIT counts replicas that have the client's own writes."""
        leader = self.start_leader("--appendonly", "yes")
        replica = RawReplica(leader.port)
        replica.full_sync()
        names = ("reader", "earlier", "writer")
        clients = {name: self.enterContext(leader.connect()) for name in names}
        wait_until(lambda: "state=online" in info(clients["reader"])["slave0"])

        def acknowledge():
            # The end of the stream may be a REPLCONF GETACK, which the leader's thread has added
            # beside the write. WAIT may wait for these bytes, too.
            end = int(info(clients["reader"])["master_repl_offset"])
            replica.ack(end, "FACK", end)

        clients["earlier"].call("SET", "a", "1")
        replica.read_stream_until(encode("SET", "a", "1"))
        acknowledge()
        self.assertEqual(clients["earlier"].call("WAIT", 1, 0), 1)
        clients["writer"].call("SET", "b", "1")
        for name in ("reader", "earlier"):
            self.assertEqual(clients[name].call("WAIT", 1, 0), 1, name)
            self.assertEqual(clients[name].call("WAITAOF", 1, 1, 0), [1, 1], name)
        self.assertEqual(clients["writer"].call("WAIT", 1, 100), 0)
        # In one batch with a write, WAIT is for that write.
        replies = clients["earlier"].pipeline([("SET", "c", "1"), ("WAIT", 1, 100)])
        self.assertEqual([parsed for parsed, _ in replies], [b"OK", 0])
        # The write of a transaction counts as well.
        replica.read_stream_until(encode("SET", "c", "1"))
        acknowledge()
        self.assertEqual(clients["earlier"].call("WAIT", 1, 0), 1)
        clients["reader"].pipeline([("MULTI",), ("SET", "d", "1"), ("EXEC",)])
        self.assertEqual(clients["reader"].call("WAIT", 1, 100), 0)
        # A message is part of the stream, too.
        with leader.connect() as publisher:
            self.assertEqual(publisher.call("WAIT", 1, 0), 1)
            publisher.call("PUBLISH", "channel", "message")
            self.assertEqual(publisher.call("WAIT", 1, 100), 0)
        self.assertEqual(clients["earlier"].call("WAIT", 1, 0), 1)
        replica.close()

    def test_empty_lines_keep_a_loading_replica(self):
        """A replica that loads a big snapshot sends nothing but empty lines."""
        timeout_s = int(max(2, 2 * SLOW))
        leader = self.start_server(
            "--repl-diskless-sync", "no", "--repl-timeout", timeout_s
        )  # fmt: skip
        leader.expect_log("nothing was heard of it for repl-timeout")
        replica = RawReplica(leader.port, capa=("psync2",))
        self.assertTrue(replica.psync().startswith(b"+FULLRESYNC"))
        replica.read_snapshot()

        def send_empty_lines(until):
            while time.monotonic() < until:
                replica.link.send(b"\n")
                pace(0.1)

        with leader.connect() as client:
            send_empty_lines(time.monotonic() + 2 * timeout_s + 1)
            self.assertEqual(info(client)["connected_slaves"], "1")
            replica.ack()
            # After an acknowledgement, empty lines prove nothing.
            with self.assertRaises(OSError):
                send_empty_lines(time.monotonic() + DEADLINE_S)
            self.assertEqual(info(client)["connected_slaves"], "0")
        replica.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
