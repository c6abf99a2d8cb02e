#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests MIGRATE to our server, to redis-server, and to a simulated target."""

import contextlib
import shutil
import socket
import tempfile
import threading
import unittest

from harness import ServerTest, free_port, wait_until
from harness.resp import ErrorReply, encode
from harness.scripted_leader import read_command

HOST = "127.0.0.1"


class ScriptedTarget:
    """A simulated target of MIGRATE, which accepts one connection. It answers OK to each command,
    but to RESTORE only after a call of reply().
    """

    def __init__(self, test):
        self.restored = []
        self.may_reply = threading.Semaphore(0)
        listener = socket.create_server((HOST, 0))
        self.port = listener.getsockname()[1]
        test.addCleanup(listener.close)
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()
        test.addCleanup(self.may_reply.release, 100)

    def _serve(self, listener):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as stream:
            while (words := read_command(stream)) is not None:
                if words[0] == b"RESTORE":
                    self.restored.append(words)
                    self.may_reply.acquire()
                connection.sendall(b"+OK\r\n")

    def await_restores(self, count):
        wait_until(lambda: len(self.restored) >= count, f"RESTORE number {count}")

    def reply(self):
        self.may_reply.release()


class MigrateTest(ServerTest):
    def setUp(self):
        # The source has one I/O thread. A client that waits for its MIGRATE must not block that
        # thread's other clients.
        self.directory = tempfile.mkdtemp(prefix="bloomery-migrate-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.source = self.start_source()
        self.connection = self.source.connect()
        self.addCleanup(self.connection.close)

    def start_source(self):
        return self.start_server(
            "--io-threads", "1", "--appendonly", "yes", directory=self.directory)

    def call(self, *words):
        return self.connection.call(*words)

    def migrate(self, port, key, *options, database=0, timeout_ms=10_000):
        return self.call("MIGRATE", HOST, port, key, database, timeout_ms, *options)

    def start_target(self, *options):
        target = self.start_server(*options)
        connection = target.connect()
        self.addCleanup(connection.close)
        return target.port, connection

    def test_key_moves_with_its_time_and_leaves(self):
        port, target = self.start_target()
        self.call("SET", "k", "v", "PX", "600000")
        self.assertEqual(self.migrate(port, "k", database=3), b"OK")
        self.assertEqual(self.call("EXISTS", "k"), 0)
        target.call("SELECT", "3")
        self.assertEqual(target.call("GET", "k"), b"v")
        self.assertIn(target.call("PTTL", "k"), range(500_000, 600_001))
        self.assertEqual(self.migrate(port, "k"), b"NOKEY")

    def test_a_redis_cluster_moves_keys_here(self):
        """A node of Redis Cluster sends RESTORE-ASKING."""
        port, target = self.start_target()
        node = self.start_redis("--cluster-enabled", "yes")
        node.expect_log("Cluster state changed: ok")
        with node.connect() as connection:
            connection.call("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            wait_until(
                lambda: b"cluster_state:ok" in connection.call("CLUSTER", "INFO"),
                what="redis-server's cluster",
            )
            connection.call("SET", "k", "v", "PX", "600000")
            self.assertEqual(connection.call("MIGRATE", HOST, port, "k", 0, 10_000), b"OK")
            self.assertEqual(connection.call("EXISTS", "k"), 0)
        self.assertEqual(target.call("GET", "k"), b"v")
        self.assertIn(target.call("PTTL", "k"), range(500_000, 600_001))

    def test_deletion_is_in_the_append_log(self):
        port, _ = self.start_target()
        self.call("SET", "moved", "v")
        self.call("SET", "stays", "v")
        self.assertEqual(self.migrate(port, "moved"), b"OK")
        self.source.crash()
        with self.start_source().connect() as connection:
            self.assertEqual(connection.call("KEYS", "*"), [b"stays"])

    def test_filters_move_whole(self):
        port, target = self.start_target()
        items = [f"item:{i}" for i in range(5000)]
        self.call("BF.RESERVE", "f", "0.01", "100")
        self.call("BF.MADD", "f", *items)
        size = self.call("BF.INFO", "f", "SIZE")
        self.assertEqual(self.migrate(port, "f"), b"OK")
        self.assertEqual(target.call("BF.INFO", "f", "SIZE"), size)
        self.assertEqual(target.call("BF.MEXISTS", "f", *items), [1] * len(items))

    def test_copy_and_replace(self):
        port, target = self.start_target()
        self.call("SET", "k", "new")
        target.call("SET", "k", "old")
        refused = self.migrate(port, "k", "COPY")
        self.assertIsInstance(refused, ErrorReply)
        self.assertRegex(refused.text, "^ERR Target .*BUSYKEY ")
        self.assertEqual(self.migrate(port, "k", "COPY", "REPLACE"), b"OK")
        self.assertEqual(target.call("GET", "k"), b"new")
        self.assertEqual(self.call("GET", "k"), b"new")

    def test_keys_that_the_target_refuses_stay(self):
        port, target = self.start_target()
        self.call("MSET", "a", "1", "b", "2", "c", "3")
        target.call("SET", "b", "taken")
        reply = self.migrate(port, "", "KEYS", "a", "b", "missing", "c")
        self.assertIn("BUSYKEY", reply.text)
        self.assertEqual(self.call("MGET", "a", "b", "c"), [None, b"2", None])
        self.assertEqual(target.call("MGET", "a", "b", "c"), [b"1", b"taken", b"3"])

    def test_target_that_wants_a_password(self):
        port, target = self.start_target("--requirepass", "secret")
        target.call("AUTH", "secret")
        target.call("ACL", "SETUSER", "mover", "on", ">pass", "+@all", "~*")
        self.call("MSET", "a", "1", "b", "2")
        self.assertIn("NOAUTH", self.migrate(port, "a").text)
        self.assertIn("WRONGPASS", self.migrate(port, "a", "AUTH", "wrong").text)
        self.assertEqual(self.call("EXISTS", "a", "b"), 2)
        self.assertEqual(self.migrate(port, "a", "AUTH", "secret"), b"OK")
        self.assertEqual(self.migrate(port, "b", "AUTH2", "mover", "pass"), b"OK")
        self.assertEqual(target.call("MGET", "a", "b"), [b"1", b"2"])

    def test_redis_takes_keys_and_gives_them_back(self):
        redis = self.start_redis()
        with redis.connect() as target:
            self.call("SET", "k", "v", "EX", "1000")
            self.assertEqual(self.migrate(redis.port, "k"), b"OK")
            self.assertEqual(target.call("GET", "k"), b"v")
            self.assertGreater(target.call("TTL", "k"), 900)
            self.assertEqual(
                target.call("MIGRATE", HOST, self.source.port, "k", 0, 10_000), b"OK")
        self.assertEqual(self.call("GET", "k"), b"v")

    def test_server_moves_keys_to_itself(self):
        self.call("SET", "k", "v")
        self.assertEqual(self.migrate(self.source.port, "k", database=1), b"OK")
        self.assertEqual(self.call("EXISTS", "k"), 0)
        self.call("SELECT", "1")
        self.assertEqual(self.call("GET", "k"), b"v")

    def test_other_clients_are_served_meanwhile(self):
        target = ScriptedTarget(self)
        self.call("SET", "k", "v")
        with self.source.connect() as mover:
            mover.send(encode("MIGRATE", HOST, target.port, "k", 0, 60_000))
            target.await_restores(1)
            self.assertEqual(self.call("GET", "k"), b"v")
            target.reply()
            self.assertEqual(mover.read_reply()[0], b"OK")
        self.assertEqual(self.call("EXISTS", "k"), 0)

    def test_changed_key_is_sent_again(self):
        target = ScriptedTarget(self)
        self.call("SET", "k", "v")
        with self.source.connect() as mover:
            mover.send(encode("MIGRATE", HOST, target.port, "k", 0, 60_000))
            target.await_restores(1)
            self.call("APPEND", "k", "2")
            target.reply()
            target.await_restores(2)
            self.assertEqual(self.call("GET", "k"), b"v2")
            target.reply()
            self.assertEqual(mover.read_reply()[0], b"OK")
        self.assertEqual(self.call("EXISTS", "k"), 0)
        first, second = target.restored
        self.assertEqual((first[1], second[1]), (b"k", b"k"))
        self.assertNotEqual(first[3], second[3])
        self.assertEqual((first[4:], second[4:]), ([], [b"REPLACE"]))

    def test_silent_target_is_given_up(self):
        target = ScriptedTarget(self)
        self.call("SET", "k", "v")
        reply = self.migrate(target.port, "k", timeout_ms=50)
        self.assertRegex(reply.text, "^IOERR .*reading")
        self.assertEqual(self.call("GET", "k"), b"v")
        reply = self.migrate(free_port(), "k")
        self.assertRegex(reply.text, "^IOERR .*connecting")
        self.assertEqual(self.call("GET", "k"), b"v")

    def test_paused_writes_keep_the_key(self):
        target = ScriptedTarget(self)
        self.call("SET", "k", "v")
        with self.source.connect() as mover:
            mover.send(encode("MIGRATE", HOST, target.port, "k", 0, 60_000))
            target.await_restores(1)
            self.call("CLIENT", "PAUSE", "600000", "WRITE")
            target.reply()
            self.assertFalse(mover.has_reply(0.2))
            self.assertEqual(self.call("GET", "k"), b"v")
            self.call("CLIENT", "UNPAUSE")
            self.assertEqual(mover.read_reply()[0], b"OK")
        self.assertEqual(self.call("EXISTS", "k"), 0)


if __name__ == "__main__":
    unittest.main()
