#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""This server as the replica of Debian's redis-server: what it takes over, refuses and tells."""

import pathlib
import random
import tempfile
import threading
import time
import unittest

from cutting_proxy import CuttingProxy
from harness import seed_from_environment, wait_until
from replication_harness import ReplicaTest, info
from resp import Connection, ErrorReply, encode

READONLY = ErrorReply("READONLY You can't write against a read only replica.")
MASTERDOWN = ErrorReply(
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
)


class Writer(threading.Thread):
    """Strings and bitmaps over one connection, until stop()."""

    def __init__(self, port, name, seed):
        super().__init__(daemon=True)
        self.connection = Connection(port)
        self.name = name
        self.random = random.Random(seed)
        self.count = 0
        self.stopping = False

    def command(self):
        key = f"{self.name}:{self.random.randrange(50)}"
        kind = self.random.randrange(9)
        if kind < 3:
            return encode("SET", "s" + key, "x" * self.random.randrange(2000))
        if kind < 6:
            return encode("SETBIT", "b" + key, self.random.randrange(50000), 1)
        if kind == 6:
            return encode("INCR", "n" + key)
        if kind == 7:
            return encode("DEL", "s" + key)
        return b"".join(
            encode(*words)
            for words in (("MULTI",), ("APPEND", "a" + key, "y"), ("INCR", "n" + key), ("EXEC",))
        )

    def run(self):
        while not self.stopping:
            commands = [self.command() for _ in range(20)]
            self.connection.send(b"".join(commands))
            for command in commands:
                for _ in range(4 if b"MULTI" in command else 1):
                    self.connection.read_reply()
            self.count += len(commands)
        self.connection.close()

    def stop(self):
        self.stopping = True
        self.join()


def contents(connection):
    """All keys with their values and expiries."""
    keys = sorted(connection.call("KEYS", "*"))
    values = connection.pipeline([("GET", key) for key in keys])
    expiries = connection.pipeline([("PEXPIRETIME", key) for key in keys])
    return {key: (value[0], expiry[0]) for key, value, expiry in zip(keys, values, expiries)}


class RedisLeaderTest(ReplicaTest):
    def start_leader(self, *options):
        leader = self.start_redis("--repl-diskless-sync-delay", "0", *options)
        # What it thinks of lost replicas is not in question.
        leader.expect_log("")
        return leader, self.connect(leader)

    def start_replica(self, *options):
        replica = self.start_server(*options)
        return replica, self.connect(replica)

    def check_equal(self, leader, replica):
        self.wait_until_equal_offsets(leader, replica)
        expected = contents(leader)
        found = contents(replica)
        self.assertEqual(sorted(expected), sorted(found))
        for key, value in expected.items():
            self.assertEqual(found[key], value, key)
        return len(expected)

    def test_both_forms_of_a_full_sync(self):
        for diskless in ("yes", "no"):
            with self.subTest(diskless=diskless):
                redis, leader = self.start_leader("--repl-diskless-sync", diskless)
                for number in range(1000):
                    leader.call("SET", f"key:{number}", "v" * number)
                leader.call("SELECT", "3")
                leader.call("SETBIT", "bits", "100000", "1")
                _, replica = self.start_replica()
                replica.call("SET", "old", "goes")
                self.follow(replica, redis.port)
                self.wait_for_link(replica)
                leader.call("SELECT", "0")
                self.assertEqual(self.check_equal(leader, replica), 1000)
                leader.call("SELECT", "3")
                replica.call("SELECT", "3")
                leader.call("SETBIT", "bits", "7", "1")
                self.check_equal(leader, replica)

    def test_follows_under_load(self):
        seed = seed_from_environment()
        redis, leader = self.start_leader()
        writers = [Writer(redis.port, f"w{number}", seed + number) for number in range(3)]
        for writer in writers:
            writer.start()
        time.sleep(0.3)
        _, replica = self.start_replica("--appendonly", "yes")
        self.follow(replica, redis.port)
        self.wait_for_link(replica)
        time.sleep(2)
        for writer in writers:
            writer.stop()
        keys = self.check_equal(leader, replica)
        print(f"{sum(writer.count for writer in writers)} writes, {keys} keys equal")
        self.assertGreater(keys, 100)

    def test_cuts_go_on_with_continue(self):
        seed = seed_from_environment()
        chance = random.Random(seed)
        redis, leader = self.start_leader("--repl-backlog-size", "512mb")
        # The first connection gets all it needs; later ones are cut, in the handshake too.
        budgets = iter([200_000])
        proxy = CuttingProxy(
            redis.port, lambda: next(budgets, None) or int(10 ** chance.uniform(0, 5.5))
        )
        self.addCleanup(proxy.close)
        writers = [Writer(redis.port, f"w{number}", seed + number) for number in range(3)]
        replica_server, replica = self.start_replica()
        self.follow(replica, proxy.port)
        self.wait_for_link(replica)
        for writer in writers:
            writer.start()
        wait_until(lambda: proxy.cuts >= 25, 60, "25 cuts")
        for writer in writers:
            writer.stop()
        proxy.budget = lambda: None
        proxy.cut_all()
        keys = self.check_equal(leader, replica)
        stats = info(leader, "stats")
        print(f"{proxy.cuts} cuts, {keys} keys equal, full {stats['sync_full']}, "
              f"partial {stats['sync_partial_ok']}")
        self.assertEqual(stats["sync_full"], "1")
        self.assertGreater(int(stats["sync_partial_ok"]), 5)
        self.assertFalse(replica_server.unexpected_lines())

    def test_cuts_inside_the_snapshot(self):
        seed = seed_from_environment()
        chance = random.Random(seed)
        for diskless in ("yes", "no"):
            redis, leader = self.start_leader("--repl-diskless-sync", diskless)
            leader.call("CONFIG", "SET", "rdbcompression", "no")
            for number in range(300):
                leader.call("SET", f"key:{number}", "v" * 1000)
            # Of 305 KB or so, with all that is said before.
            budgets = [chance.randrange(290_000) for _ in range(6)]
            proxy = CuttingProxy(redis.port, lambda left=budgets: left.pop() if left else None)
            self.addCleanup(proxy.close)
            server, replica = self.start_replica()
            replica.call("SET", "old", "stays")
            self.follow(replica, proxy.port)
            while budgets:
                keys = replica.call("DBSIZE")
                if not isinstance(keys, ErrorReply):
                    self.assertIn(keys, (1, 300), "all of the old or all of the new")
            self.wait_for_link(replica)
            self.assertEqual(self.check_equal(leader, replica), 300)
            self.assertEqual(list(pathlib.Path(server.directory).glob("temp-*")), [])

    def test_a_silent_leader_is_left(self):
        redis, leader = self.start_leader("--repl-ping-replica-period", "1000")
        _, replica = self.start_replica("--repl-timeout", "2")
        leader.call("SET", "a", "1")
        self.follow(replica, redis.port)
        self.wait_for_link(replica)
        wait_until(lambda: int(info(leader, "stats")["sync_partial_ok"]) > 0, 10, "a new link")
        self.check_equal(leader, replica)

    def test_expiry_is_the_leaders(self):
        redis, leader = self.start_leader("--enable-debug-command", "yes")
        self.assertEqual(leader.call("DEBUG", "SET-ACTIVE-EXPIRE", "0"), b"OK")
        _, replica = self.start_replica()
        self.follow(replica, redis.port)
        self.wait_for_link(replica)
        leader.call("SET", "short", "1")
        leader.call("SET", "long", "1", "EX", "1000")
        self.check_equal(leader, replica)
        leader.call("PEXPIRE", "short", "1")
        self.wait_until_equal_offsets(leader, replica)
        time.sleep(0.6)
        self.assertIsNone(replica.call("GET", "short"), "readers do not see it")
        self.assertEqual(replica.call("EXISTS", "short"), 0)
        self.assertEqual(replica.call("DBSIZE"), 2, "but it is there until the leader says so")
        self.assertIsNone(leader.call("GET", "short"))
        wait_until(lambda: replica.call("DBSIZE") == 1, 5, "the leader's DEL")
        self.assertEqual(info(replica, "stats")["expired_keys"], "0")

    def test_what_a_replica_refuses(self):
        redis, leader = self.start_leader()
        server, replica = self.start_replica()
        leader.call("SET", "a", "1")
        self.follow(replica, redis.port)
        self.wait_for_link(replica)
        for command in (("SET", "b", "1"), ("DEL", "a"), ("BF.ADD", "f", "x"), ("FLUSHALL",)):
            self.assertEqual(replica.call(*command), READONLY, command)
        replica.call("MULTI")
        self.assertEqual(replica.call("SET", "b", "1"), READONLY)
        self.assertIn("EXECABORT", replica.call("EXEC").text)
        self.assertEqual(replica.call("GET", "a"), b"1")
        replica.call("CONFIG", "SET", "replica-read-only", "no")
        self.assertEqual(replica.call("SET", "own", "1"), b"OK")
        replica.call("CONFIG", "SET", "replica-read-only", "yes")
        self.assertEqual(info(replica)["slave_read_only"], "1")
        replica.call("CONFIG", "SET", "replica-serve-stale-data", "no")
        self.assertEqual(replica.call("GET", "a"), b"1", "while the link is up")
        redis.crash()
        wait_until(lambda: replica.call("GET", "a") == MASTERDOWN, 10, "MASTERDOWN")
        self.assertEqual(replica.call("PING"), MASTERDOWN)
        self.assertIsInstance(replica.call("INFO"), bytes)
        self.assertEqual(replica.call("ROLE")[0], b"slave")
        replica.call("CONFIG", "SET", "replica-serve-stale-data", "yes")
        self.assertEqual(replica.call("GET", "a"), b"1")
        self.assertFalse(server.unexpected_lines())

    def test_info_and_role(self):
        redis, leader = self.start_leader()
        _, replica = self.start_replica("--replica-priority", "42", "--replica-announced", "no")
        self.assertEqual(replica.call("ROLE")[0], b"master")
        self.follow(replica, 1)
        fields = info(replica)
        self.assertEqual(
            list(fields)[:7],
            ["role", "master_host", "master_port", "master_link_status",
             "master_last_io_seconds_ago", "master_sync_in_progress", "slave_read_repl_offset"],
        )
        self.assertEqual(fields["master_link_status"], "down")
        self.assertIn("master_link_down_since_seconds", fields)
        self.assertEqual(fields["slave_priority"], "42")
        self.assertEqual(fields["replica_announced"], "0")
        role = replica.call("ROLE")
        self.assertEqual(role[:3], [b"slave", b"127.0.0.1", 1])
        self.assertIn(role[3], (b"connect", b"connecting"))
        self.assertEqual(role[4], -1)
        self.follow(replica, redis.port)
        self.assertEqual(
            replica.call("REPLICAOF", "127.0.0.1", redis.port),
            b"OK Already connected to specified master",
        )
        self.wait_for_link(replica)
        leader.call("SET", "a", "1")
        self.wait_until_equal_offsets(leader, replica)
        fields = info(replica)
        self.assertEqual(fields["role"], "slave")
        self.assertEqual(fields["master_replid"], info(leader)["master_replid"])
        self.assertNotIn("master_link_down_since_seconds", fields)
        self.assertEqual(replica.call("ROLE")[3], b"connected")
        self.assertGreater(replica.call("ROLE")[4], 0)
        wait_until(lambda: "lag=0" in info(leader)["slave0"] or "lag=1" in info(leader)["slave0"])
        self.assertIn("state=online", info(leader)["slave0"])
        self.assertEqual(replica.call("REPLICAOF", "h", "70000"),
                         ErrorReply("ERR Invalid master port"))
        self.assertEqual(leader.call("WAIT", "1", "2000"), 1)

    def test_auth_and_announcements(self):
        redis, leader = self.start_leader("--requirepass", "secret")
        leader.call("AUTH", "secret")
        server, replica = self.start_replica(
            "--replica-announce-port", "7777", "--replica-announce-ip", "10.1.2.3"
        )
        self.follow(replica, redis.port)
        server.wait_for_log("The link to the leader is down")
        fields = info(replica)
        self.assertEqual(fields["master_link_status"], "down")
        self.assertRegex(fields["master_link_down_reason"], "NOAUTH .*(masterauth, masteruser)")
        replica.call("CONFIG", "SET", "masterauth", "wrong")
        server.wait_for_log("Unable to AUTH to MASTER: -WRONGPASS")
        replica.call("CONFIG", "SET", "masterauth", "secret")
        self.wait_for_link(replica)
        self.assertIn("ip=10.1.2.3,port=7777", info(leader)["slave0"])
        leader.call("ACL", "SETUSER", "mover", "on", ">pw", "~*", "+@all")
        replica.call("CONFIG", "SET", "masteruser", "mover", "masterauth", "pw")
        leader.call("CLIENT", "KILL", "TYPE", "replica")
        wait_until(lambda: b"user=mover" in leader.call("CLIENT", "LIST", "TYPE", "replica"), 10)

    def test_the_stream_counts_as_commands(self):
        redis, leader = self.start_leader()
        _, replica = self.start_replica()
        self.follow(replica, redis.port)
        self.wait_for_link(replica)
        before = int(info(replica, "stats")["total_commands_processed"])
        for number in range(5):
            leader.call("SET", f"k{number}", "1")
        leader.call("DEL", "k0")
        self.wait_until_equal_offsets(leader, replica)
        counted = info(replica, "commandstats")
        self.assertTrue(counted["cmdstat_set"].startswith("calls=5,"), counted)
        self.assertTrue(counted["cmdstat_del"].startswith("calls=1,"), counted)
        after = int(info(replica, "stats")["total_commands_processed"])
        self.assertGreaterEqual(after - before, 6)

    def test_the_link_is_a_client(self):
        redis, leader = self.start_leader()
        server, replica = self.start_replica()
        self.follow(replica, redis.port)
        self.wait_for_link(replica)
        line = replica.call("CLIENT", "LIST", "TYPE", "master").decode()
        self.assertIn(f"addr=127.0.0.1:{redis.port} ", line)
        self.assertIn(" flags=M ", line)
        self.assertEqual(replica.call("CLIENT", "KILL", "TYPE", "master"), 1)
        server.wait_for_log("killed by a client")
        leader.call("SET", "a", "1")
        self.check_equal(leader, replica)
        self.assertEqual(info(leader, "stats")["sync_partial_ok"], "1")

    def test_promotion_and_another_leader(self):
        first, first_leader = self.start_leader()
        second, second_leader = self.start_leader()
        second_leader.call("REPLICAOF", "127.0.0.1", first.port)
        self.wait_for_link(second_leader)
        _, replica = self.start_replica()
        self.follow(replica, first.port)
        self.wait_for_link(replica)
        first_leader.call("SET", "a", "1")
        self.wait_until_equal_offsets(first_leader, replica, second_leader)
        second_leader.call("REPLICAOF", "NO", "ONE")
        self.follow(replica, second.port)
        self.wait_for_link(replica)
        second_leader.call("SET", "b", "2")
        self.check_equal(second_leader, replica)
        self.assertEqual(info(second_leader, "stats")["sync_full"], "0")
        self.assertEqual(info(second_leader, "stats")["sync_partial_ok"], "1")
        replica.call("REPLICAOF", "NO", "ONE")
        self.assertEqual(replica.call("SET", "c", "3"), b"OK")
        self.assertEqual(info(replica)["role"], "master")
        self.assertEqual(replica.call("MGET", "a", "b", "c"), [b"1", b"2", b"3"])
        second_leader.call("SET", "d", "4")
        time.sleep(0.3)
        self.assertIsNone(replica.call("GET", "d"), "the old leader is not heard any more")

    def test_sentinels_transaction(self):
        redis, leader = self.start_leader()
        leader.call("SET", "a", "1")
        server, replica = self.start_replica()
        server.expect_log("CONFIG REWRITE failed")
        for host, port, role in (("127.0.0.1", redis.port, "slave"), ("NO", "ONE", "master")):
            replies = replica.pipeline(
                [("MULTI",), ("SLAVEOF", host, port), ("CONFIG", "REWRITE"),
                 ("CLIENT", "KILL", "TYPE", "normal"), ("EXEC",)]
            )
            self.assertEqual(replies[-1][0][0], b"OK")
            self.assertEqual(
                replies[-1][0][1], ErrorReply("ERR The server is running without a config file")
            )
            self.assertEqual(info(replica)["role"], role)
            if role == "slave":
                self.wait_for_link(replica)
        self.assertEqual(replica.call("GET", "a"), b"1")
        self.assertEqual(replica.call("SET", "a", "2"), b"OK")

    def test_config_file(self):
        redis, leader = self.start_leader()
        leader.call("SET", "a", "1")
        directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-replica-"))
        path = directory / "bloomery.conf"
        path.write_text(f"save ''\nappendonly no\nreplicaof 127.0.0.1 {redis.port}\n")
        # The file comes before all options.
        shell = ("/bin/sh", "-c", f'exec "$0" {path} "$@"')
        replica = self.connect(self.start_server(prefix=shell))
        self.wait_for_link(replica)
        self.assertEqual(replica.call("GET", "a"), b"1")
        self.assertIsInstance(replica.call("CONFIG", "SET", "replicaof", "h 1"), ErrorReply)
        replica.call("REPLICAOF", "NO", "ONE")
        self.assertEqual(replica.call("CONFIG", "REWRITE"), b"OK")
        self.assertNotIn("replicaof", path.read_text())
        replica.call("REPLICAOF", "127.0.0.1", redis.port)
        self.assertEqual(replica.call("CONFIG", "REWRITE"), b"OK")
        self.assertIn(f"replicaof 127.0.0.1 {redis.port}\n", path.read_text())
        self.assertEqual(
            replica.call("CONFIG", "GET", "replicaof"),
            [b"replicaof", f"127.0.0.1 {redis.port}".encode()],
        )

    def test_restart_asks_for_the_rest(self):
        redis, leader = self.start_leader()
        directory = tempfile.mkdtemp(prefix="bloomery-replica-")
        options = ("--replicaof", f"127.0.0.1 {redis.port}", "--save", "3600 1")
        server, replica = self.start_replica(*options, "--dir", directory)
        leader.call("SET", "a", "1")
        leader.call("SET", "gone", "1")
        self.wait_for_link(replica)
        self.check_equal(leader, replica)
        leader.call("PEXPIRE", "gone", "300")
        self.wait_until_equal_offsets(leader, replica)
        self.assertFalse(server.stop())
        leader.call("SET", "b", "2")
        time.sleep(0.4)
        _, replica = self.start_replica(*options, "--dir", directory)
        self.wait_for_link(replica)
        self.assertEqual(self.check_equal(leader, replica), 2)
        self.assertEqual(info(leader, "stats")["sync_full"], "1")
        self.assertEqual(info(leader, "stats")["sync_partial_ok"], "1")

    def test_the_log_begins_anew(self):
        redis, leader = self.start_leader()
        directory = tempfile.mkdtemp(prefix="bloomery-replica-")
        options = ("--dir", directory, "--appendonly", "yes")
        server, replica = self.start_replica(*options)
        replica.call("SET", "old", "1")
        leader.call("SET", "new", "1")
        self.follow(replica, redis.port)
        self.wait_for_link(replica)
        # The snapshot of another server is the base.
        for _ in range(2):
            leader.call("INCR", "new")
            self.check_equal(leader, replica)
        self.assertEqual(info(replica, "persistence")["aof_rewrites"], "0")
        self.assertFalse(server.stop())
        _, replica = self.start_replica(*options)
        self.assertEqual(replica.call("KEYS", "*"), [b"new"])
        self.assertEqual(replica.call("GET", "new"), b"3")


if __name__ == "__main__":
    unittest.main()
