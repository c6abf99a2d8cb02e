#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server of ours as the leader: of Debian's redis-server, of redis-cli, and of scripted replicas
that tell byte by byte what they get."""

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

from harness import ServerTest, seed_from_environment, wait_until
from replication_peer import CuttingProxy, RawReplica, Writers, info
from resp import ErrorReply, encode

FAST = ("--repl-diskless-sync-delay", "0")


class LeaderTest(ServerTest):
    def start_leader(self, *options, **more):
        return self.start_server(*FAST, *options, **more)

    def start_redis_replica(self, port, *options):
        replica = self.start_redis("--replicaof", f"127.0.0.1 {port}", *options)
        # Said by a replica whose leader is cut off or not there yet.
        replica.expect_log(r".*")
        return replica

    def wait_for_offset(self, leader, replica, timeout_s=30):
        """Until the replica has all that the leader has written."""
        with leader.connect() as ours, replica.connect() as theirs:
            wait_until(
                lambda: info(theirs).get("master_link_status") == "up"
                and info(theirs)["slave_repl_offset"] == info(ours)["master_repl_offset"],
                timeout_s,
                "the replica's offset",
            )

    def dump(self, server):
        """All keys of all databases with their values and whether they expire."""
        found = {}
        with server.connect() as client:
            for database in range(16):
                client.call("SELECT", database)
                keys = sorted(client.call("KEYS", "*"))
                replies = client.pipeline([("GET", key) for key in keys])
                ends = client.pipeline([("PEXPIRETIME", key) for key in keys])
                for key, (value, _), (end, _) in zip(keys, replies, ends):
                    # Expired ones go when somebody looks.
                    if value is not None:
                        found[database, key] = (value, end)
        return found

    def assert_same_data(self, leader, replica):
        self.wait_for_offset(leader, replica)
        # Keys that expire between two looks are gone from one only.
        wait_until(lambda: self.dump(leader) == self.dump(replica), 10, "the same data")


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

    def test_cuts_are_mended_from_the_backlog(self):
        seed = seed_from_environment()
        rng = random.Random(seed)
        leader = self.start_leader("--repl-backlog-size", "100mb")
        proxy = CuttingProxy(leader.port, lambda: rng.randrange(1, 200_000))
        self.addCleanup(proxy.close)
        replica = self.start_redis_replica(proxy.port)
        writers = Writers(leader.port, 3, seed)
        try:
            wait_until(lambda: proxy.cuts >= 8, 60, "cuts")
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
        # A cut before the id is known takes another full sync; afterwards none is needed.
        self.assertLess(int(stats["sync_full"]), proxy.cuts)

    def test_a_restarted_leader_goes_on_where_its_snapshot_ends(self):
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
            self.run_client(["redis-cli", "-p", leader.port, "--rdb", path], timeout_s=30)
            copy = self.start_server("--dbfilename", "got.rdb", directory=directory)
            with copy.connect() as client:
                self.assertEqual(client.call("GET", "a"), b"1")
                self.assertEqual(client.call("BF.EXISTS", "filter", "x"), 1)

    def test_functions_rdb_holds_no_keys(self):
        leader = self.start_leader()
        with leader.connect() as client:
            client.call("SET", "a", "x" * 10_000)
        path = pathlib.Path(leader.directory) / "functions.rdb"
        self.run_client(["redis-cli", "-p", leader.port, "--functions-rdb", path], timeout_s=30)
        self.assertLess(path.stat().st_size, 1000)
        self.assertTrue(path.read_bytes().startswith(b"REDIS0010"))

    def test_replica_prints_the_stream(self):
        leader = self.start_leader()
        done = threading.Event()

        def write():
            with leader.connect() as client:
                while not done.is_set():
                    client.call("SET", "a", "printed")
                    time.sleep(0.1)

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
    def test_the_stream_begins_with_its_database_and_continues_by_offset(self):
        leader = self.start_leader("--repl-ping-replica-period", "1000")
        first = RawReplica(leader.port)
        snapshot = first.full_sync()
        self.assertIn(first.id.encode(), snapshot)
        with leader.connect() as client:
            client.call("SELECT", 2)
            client.call("SET", "a", "1")
            expected = encode("SELECT", "2") + encode("SET", "a", "1")
            self.assertEqual(first.read_stream(len(expected)), expected)
            client.call("MULTI")
            client.call("SET", "b", "1")
            client.call("INCR", "b")
            client.call("EXEC")
            client.call("SET", "gone", "1", "PX", 1)
            time.sleep(0.01)
            client.call("GET", "gone")
            first.read_stream_until(encode("DEL", "gone"))
            self.assertIn(encode("EXEC"), first.stream)
            # What was missed comes again from any offset, by a new connection.
            begin = first.offset - len(first.stream)
            for missing in (0, 1, 10, len(first.stream)):
                with self.subTest(missing=missing):
                    again = RawReplica(leader.port)
                    line = again.psync(first.id, first.offset - missing + 1)
                    self.assertEqual(line, b"+CONTINUE " + first.id.encode())
                    if missing:
                        self.assertEqual(
                            again.read_exactly(missing), bytes(first.stream[-missing:])
                        )
                    again.close()
            for name, offset in (
                (first.id, begin), (first.id, first.offset + 2), ("0" * 40, 1), ("?", -1),
                (first.id, -1), (first.id, 0), (first.id, 2**62),
            ):  # fmt: skip
                with self.subTest(id=name, offset=offset):
                    again = RawReplica(leader.port)
                    self.assertEqual(again.psync(name, offset)[:11], b"+FULLRESYNC")
                    again.close()
            old = RawReplica(leader.port, capa=("eof",))
            self.assertEqual(old.psync(first.id, first.offset + 1), b"+CONTINUE")
            old.close()
        first.close()

    def test_five_hundred_cuts_lose_and_repeat_nothing(self):
        seed = seed_from_environment()
        rng = random.Random(seed)
        leader = self.start_leader("--repl-backlog-size", "200mb")
        whole = RawReplica(leader.port)
        whole.full_sync()
        begin = offset = whole.offset
        pieces = []
        writers = Writers(leader.port, 3, seed, filters=True)
        try:
            for _ in range(500):
                cut = RawReplica(leader.port)
                self.assertEqual(
                    cut.psync(whole.id, offset + 1), b"+CONTINUE " + whole.id.encode()
                )
                size = rng.randrange(0, 2000)
                pieces.append(cut.read_exactly(size))
                offset += size
                cut.close()
        finally:
            writers.stop()
        self.assertEqual(whole.read_exactly(offset - begin), b"".join(pieces))
        whole.close()
        with leader.connect() as client:
            stats = info(client, "stats")
            self.assertEqual(stats["sync_partial_ok"], "500")
            self.assertEqual(stats["sync_full"], "1")

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

    def test_nothing_comes_before_the_first_ack(self):
        leader = self.start_leader()
        replica = RawReplica(leader.port)
        self.assertTrue(replica.psync().startswith(b"+FULLRESYNC"))
        replica.read_snapshot()
        with leader.connect() as client:
            client.call("SET", "a", "1")
            time.sleep(0.3)
            self.assertEqual(bytes(replica.buffer), b"")
            replica.ack()
            replica.read_stream_until(encode("SET", "a", "1"))
            replica.ack()
            wait_until(lambda: f"offset={replica.offset}" in info(client)["slave0"])
        replica.close()
        with leader.connect() as client:
            wait_until(lambda: info(client)["connected_slaves"] == "0")

    def test_one_snapshot_serves_all_who_wait(self):
        leader = self.start_server("--repl-diskless-sync-delay", "1")
        replicas = [RawReplica(leader.port) for _ in range(4)]
        for replica in replicas:
            replica.link.send(encode("PSYNC", "?", -1))
        for replica in replicas:
            self.assertTrue(replica.read_line().startswith(b"+FULLRESYNC"))
            self.assertTrue(replica.read_snapshot().startswith(b"REDIS"))
        with leader.connect() as client:
            self.assertEqual(info(client, "stats")["total_forks"], "1")
            self.assertEqual(info(client, "stats")["sync_full"], "4")
        for replica in replicas:
            replica.close()

    def test_a_slow_replica_is_cut_off_and_the_memory_stays(self):
        leader = self.start_leader("--client-output-buffer-limit", "replica 4mb 0 0")
        leader.expect_log("client-output-buffer-limit")
        replica = RawReplica(leader.port)
        replica.full_sync()
        with leader.connect() as client:
            wait_until(lambda: "state=online" in info(client)["slave0"])
            for _ in range(40):
                client.pipeline([("SET", "a", "x" * 100_000) for _ in range(10)])
            wait_until(lambda: info(client)["connected_slaves"] == "0")
        self.assertTrue(replica.link.is_closed_by_server())
        replica.close()

    def test_a_silent_replica_times_out(self):
        leader = self.start_leader("--repl-timeout", "1")
        leader.expect_log("nothing was heard of it")
        replica = RawReplica(leader.port)
        replica.full_sync()
        self.assertTrue(replica.link.is_closed_by_server(10))
        replica.close()

    def test_pings_come_by_the_clock(self):
        leader = self.start_leader("--repl-ping-replica-period", "1")
        replica = RawReplica(leader.port)
        replica.full_sync()
        begin = time.monotonic()
        replica.read_stream_until(encode("PING"))
        replica.read_stream_until(encode("PING"))
        self.assertLess(time.monotonic() - begin, 4)
        replica.close()

    def test_a_stuck_replica_holds_up_nobody(self):
        leader = self.start_server(
            "--repl-diskless-sync-delay", "1", "--repl-timeout", "2", "--rdbcompression", "no"
        )
        leader.expect_log("is disconnected")
        with leader.connect() as client:
            client.pipeline([("SETBIT", f"k{i}", 8_000_000, 1) for i in range(60)])
        good, stuck = RawReplica(leader.port), RawReplica(leader.port)
        for replica in (good, stuck):
            replica.link.send(encode("PSYNC", "?", -1))
        self.assertTrue(good.read_line().startswith(b"+FULLRESYNC"))
        self.assertGreater(len(good.read_snapshot()), 60_000_000)
        with leader.connect() as client:

            def only_the_good_one_is_left():
                good.ack()  # or it would soon be taken for stuck, too
                fields = info(client)
                return fields["connected_slaves"] == "1" and "state=online" in fields["slave0"]

            wait_until(only_the_good_one_is_left)
        good.close()
        stuck.close()

    def test_replicas_are_clients_of_their_own_type(self):
        leader = self.start_leader()
        leader.expect_log("is disconnected")
        replica = RawReplica(leader.port)
        replica.full_sync()
        with leader.connect() as client:
            lines = client.call("CLIENT", "LIST", "TYPE", "replica").decode().splitlines()
            self.assertEqual(len(lines), 1)
            self.assertIn(" flags=S ", lines[0])
            self.assertNotIn("flags=S", client.call("CLIENT", "LIST", "TYPE", "normal").decode())
            self.assertEqual(client.call("CLIENT", "KILL", "TYPE", "master"), 0)
            self.assertEqual(client.call("CLIENT", "KILL", "TYPE", "replica"), 1)
        self.assertTrue(replica.link.is_closed_by_server())
        replica.close()


class WriteSafetyTest(LeaderTest):
    def online_replica(self, leader):
        replica = RawReplica(leader.port)
        replica.full_sync()
        with leader.connect() as client:
            wait_until(lambda: "state=online" in info(client).get("slave0", ""))
        self.addCleanup(replica.close)
        return replica

    def test_min_replicas_to_write(self):
        leader = self.start_leader("--min-replicas-to-write", "1", "--min-replicas-max-lag", "1")
        refused = ErrorReply("NOREPLICAS Not enough good replicas to write.")
        with leader.connect() as client:
            self.assertEqual(client.call("SET", "a", "1"), refused)
            self.assertIsNone(client.call("GET", "a"))
            replica = self.online_replica(leader)
            wait_until(lambda: client.call("SET", "a", "1") == b"OK", what="a write")
            self.assertEqual(info(client)["min_slaves_good_slaves"], "1")
            wait_until(lambda: client.call("SET", "a", "2") == refused, 5)
            replica.ack()
            self.assertEqual(client.call("PING"), b"PONG")
            wait_until(lambda: client.call("SET", "a", "3") == b"OK")
            self.assertEqual(client.call("CONFIG", "SET", "min-replicas-to-write", "2"), b"OK")
            self.assertEqual(client.call("SET", "a", "4"), refused)

    def test_wait_asks_and_counts(self):
        leader = self.start_leader()
        replica = self.online_replica(leader)
        with leader.connect() as client:
            client.call("SET", "a", "1")
            begin = time.monotonic()
            self.assertEqual(client.call("WAIT", 1, 300), 0)
            self.assertGreaterEqual(time.monotonic() - begin, 0.3)
            self.assertLess(time.monotonic() - begin, 1)
            replica.read_stream_until(encode("REPLCONF", "GETACK", "*"))
            client.send(encode("WAIT", 1, 0) + encode("PING"))
            replica.read_stream_until(encode("REPLCONF", "GETACK", "*"))
            replica.ack()
            self.assertEqual(client.read_reply()[0], 1)
            self.assertEqual(client.read_reply()[0], b"PONG")
            client.call("MULTI")
            client.call("WAIT", 5, 0)
            self.assertEqual(client.call("EXEC"), [1])
            self.assertEqual(
                client.call("WAIT", 1, -1), ErrorReply("ERR timeout is negative")
            )

    def test_waitaof(self):
        leader = self.start_leader("--appendonly", "yes", "--appendfsync", "everysec")
        replica = self.online_replica(leader)
        with leader.connect() as client:
            client.call("SET", "a", "1")
            self.assertEqual(client.call("WAITAOF", 1, 0, 5000), [1, 0])
            client.send(encode("WAITAOF", 0, 1, 5000))
            replica.read_stream_until(encode("REPLCONF", "GETACK", "*"))
            replica.ack(replica.offset, "FACK", 0)
            time.sleep(0.1)
            replica.ack(replica.offset, "FACK", replica.offset)
            self.assertEqual(client.read_reply()[0][1], 1)
            client.call("CONFIG", "SET", "appendonly", "no")
            wait_until(lambda: info(client, "persistence")["aof_enabled"] == "0")
            self.assertEqual(
                client.call("WAITAOF", 1, 0, 10),
                ErrorReply("ERR WAITAOF cannot be used when numlocal is set but appendonly is "
                           "disabled."),
            )  # fmt: skip

    def test_a_wait_without_replicas_costs_no_time(self):
        leader = self.start_leader()

        def used_s():
            fields = pathlib.Path(f"/proc/{leader.pid}/stat").read_text(encoding="ascii").split()
            return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

        with leader.connect() as client:
            before = used_s()
            self.assertEqual(client.call("WAIT", 1, 1000), 0)
            self.assertLess(used_s() - before, 0.5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
