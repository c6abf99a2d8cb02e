#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that the server loses no acknowledged write when a disk is full, a file reaches its size
limit, or a system call fails.

Environment:
  BLOOMERY_FAULT_ROUNDS  number of times that each disk is filled
"""

import os
import pathlib
import random
import re
import resource
import shutil
import tempfile
import time
import unittest

from harness import ServerTest, disks, let_time_pass, seed_from_environment, wait_until
from harness.counts import count
from harness.info import info as replication_info
from harness.resp import ErrorReply, encode
from harness.write_load import Load

ROUNDS = count("FAULT_ROUNDS")
NO_MOUNTS = disks.why_no_mounts()
ENDS = "append log fails .*appendfsync is always"
REFUSES = "append log fails.* writes are refused"
NOT_ON_DISK = r"(\d+) bytes of the append log .*not on the disk"
REWRITE_FAILS = "Background append only file rewriting failed|Can't rewrite the append log"
FILE_LIMIT = 256 << 10
SLOW_SYNC_S = 3


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))


def strace(*calls, path=None):
    """Returns the words that start a program under strace if they precede its command line. The
    given system calls of the program then fail or wait. With `path`, only calls on
    this file are affected.
    """
    options = [word for call in calls for word in ("-e", "inject=" + call)]
    return ["strace", "-D", "-f", "-o", os.devnull, *(["-P", path] if path else []), *options]


class DiskFaultTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.seed = seed_from_environment()

    def setUp(self):
        self.rng = random.Random(f"{self.seed}/{self.id()}")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-fault-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def small_disk(self, size_bytes=4 << 20):
        if NO_MOUNTS:
            self.skipTest(NO_MOUNTS)
        disk = disks.Tmpfs(size_bytes)
        self.addCleanup(disk.remove)
        return disk

    def start(self, fsync, *options, directory=None, **more):
        return self.start_server(
            *("--appendonly", "yes", "--appendfsync", fsync, "--bf-initial-size", "50"),
            *("--auto-aof-rewrite-percentage", "0", "--enable-debug-command", "yes", *options),
            directory=directory or self.directory,
            **more,
        )

    def info(self, connection, field):
        text = connection.call("INFO", "persistence").decode()
        return re.search(rf"^{field}:(.*?)\r?$", text, re.MULTILINE)[1]

    def check_restart(self, server, load, fsync, directory=None):
        """Kills and restarts the server. Checks that all acknowledged writes survive, and that the
        server reports no torn append log.
        """
        if server.process.poll() is None:
            server.crash()
        server = self.start(fsync, directory=directory)
        with server.connect() as connection:
            self.assertEqual(load.check(connection), 0)
        self.assertFalse([line for line in server.log if "is torn" in line])
        server.crash()

    def check_refusing(self, server):
        """Checks that the server rejects writes and PING, serves reads, and reports
        aof_last_write_status:err in INFO.
        """
        with server.connect() as connection:
            for command in (("SET", "refused", "1"), ("BF.ADD", "refused", "1"), ("PING",)):
                reply = connection.call(*command)
                self.assertIsInstance(reply, ErrorReply, command)
                self.assertTrue(reply.text.startswith("MISCONF"), reply)
            self.assertIsNone(connection.call("GET", "refused"))
            self.assertGreater(len(connection.call("KEYS", "w*")), 5)
            self.assertEqual(self.info(connection, "aof_last_write_status"), "err")

    def wait_until_recovered(self, server, load):
        server.wait_for_log("append log takes writes again")
        load.wait_for_writes(100)
        with server.connect() as connection:
            self.assertEqual(connection.call("PING"), b"PONG")
            self.assertEqual(self.info(connection, "aof_last_write_status"), "ok")

    def fill_and_free(self, fsync):
        disk = self.small_disk()
        load = Load(self.rng.random())
        for _ in range(ROUNDS):
            server = self.start(fsync, directory=disk.path)
            server.expect_log(REFUSES)
            load.start(server.port)
            load.wait_for_writes(100 + self.rng.randrange(500))
            disk.fill(self.rng.randrange(3) * 4096)
            server.wait_for_log(REFUSES)
            self.check_refusing(server)
            disk.free()
            self.wait_until_recovered(server, load)
            load.join()
            with server.connect() as connection:
                self.assertEqual(load.check(connection), 0)
            self.check_restart(server, load, fsync, disk.path)
            shutil.rmtree(disk.path / "appendonlydir")
            load = Load(self.rng.random())

    def serve_with_slow_syncs(self, fsync):
        """Starts a server, a connection that reads and a connection that writes. strace delays each
        thread's third fdatasync, and every later one, by SLOW_SYNC_S.
        """
        slow = strace(f"fdatasync:delay_enter={SLOW_SYNC_S * 1_000_000}:when=3+")
        server = self.start(fsync, prefix=slow)
        reader, writer = server.connect(), server.connect()
        self.addCleanup(reader.close)
        self.addCleanup(writer.close)
        return server, reader, writer

    def is_syncing(self, connection):
        return self.info(connection, "aof_pending_bio_fsync") == "1"

    def test_slow_syncs_everysec(self):
        server, reader, writer = self.serve_with_slow_syncs("everysec")
        acknowledged = 0
        beside_a_sync = 0
        while int(self.info(reader, "aof_delayed_fsync")) < 1:
            before = self.is_syncing(reader)
            self.assertEqual(writer.call("INCR", "n"), acknowledged + 1)
            acknowledged += 1
            beside_a_sync += before and self.is_syncing(reader)
        self.assertGreater(beside_a_sync, 0)
        other = server.connect()
        self.addCleanup(other.close)
        items = []
        asked = 0
        # On a busy machine the slow sync may end before the test has sent its commands. Then the
        # test tries again with another slow sync.
        while not asked:
            while not self.is_syncing(reader):
                self.assertEqual(writer.call("INCR", "n"), acknowledged + 1)
                acknowledged += 1
            items.append(f"item {len(items)}")
            asked = self.ask_beside_an_overdue_sync(reader, writer, other, items[-1])
            acknowledged += 1
            self.assertEqual(writer.read_reply()[0], acknowledged)
            self.assertEqual(writer.read_reply()[0], 1)
            self.assertEqual(other.read_reply()[0], 0)
        server.crash()
        server = self.start("everysec")
        with server.connect() as connection:
            self.assertEqual(connection.call("GET", "n"), b"%d" % acknowledged)
            self.assertEqual(set(connection.call("BF.MEXISTS", "filter", *items)), {1})

    def ask_beside_an_overdue_sync(self, reader, writer, other, item):
        """Checks that, once a sync has lasted two seconds, replies to writes wait and replies to
        reads do not. Returns how many checks were made before the sync ended; 0 if the sync ended
        before the first check.
        """
        # While the number of delayed syncs stays the same, the sync that runs now has not ended.
        delayed = self.info(reader, "aof_delayed_fsync")
        has_begun = self.is_syncing(reader)
        let_time_pass(2.2, why="a sync that takes more than two seconds makes writers wait")
        writer.send(encode("INCR", "n") + encode("BF.ADD", "filter", item))
        wait_until(lambda: reader.call("BF.EXISTS", "filter", item) == 1)
        # This BF.ADD changes nothing, because the item is already in the filter. But the write of
        # the item is not synced yet, so the reply to this BF.ADD must wait too.
        other.send(encode("BF.ADD", "filter", item))
        asked = 0
        while True:
            self.assertTrue(reader.call("GET", "n"))
            was_answered = writer.has_reply() or other.has_reply()
            if not (has_begun and self.is_syncing(reader)):
                return asked
            if self.info(reader, "aof_delayed_fsync") != delayed:
                return asked
            self.assertFalse(was_answered, "a write was answered beside an overdue sync")
            asked += 1

    def test_slow_syncs_always(self):
        server, _, writer = self.serve_with_slow_syncs("always")
        for value in (1, 2):
            self.assertEqual(writer.call("INCR", "n"), value)
        for value in (3, 4):
            sent_at = time.monotonic()
            self.assertEqual(writer.call("INCR", "n"), value)
            waited_s = time.monotonic() - sent_at
            self.assertGreaterEqual(waited_s, SLOW_SYNC_S, "the write was not synced first")
        server.crash()

    def test_full_disk_everysec(self):
        self.fill_and_free("everysec")

    def test_full_disk_no(self):
        self.fill_and_free("no")

    def test_full_disk_answers_everyone(self):
        """The write that finds the disk full gets an error, although its value may be kept. The
        server rejects later writes.
        """
        for fsync in ("everysec", "no"):
            disk = self.small_disk()
            server = self.start(fsync, directory=disk.path)
            server.expect_log(REFUSES)
            with server.connect() as connection:
                connection.call("SET", "key", "before")
                for number in range(6):
                    connection.call("SET", f"w{number}", "value")
                disk.fill()
                self.write_to_full_disk(connection, "first" * 5000)
                self.check_refusing(server)
                disk.free()
                server.wait_for_log("append log takes writes again")
                # While the disk was full, the value of the failed SET stayed in memory.
                self.assertEqual(connection.call("APPEND", "key", "!"), 25_001)
                disk.fill()
                self.write_to_full_disk(connection, "second" * 5000)
            server.expect_log(f"Shutting down all the same|{NOT_ON_DISK}")
            server.expected_exit = 1
            server.process.terminate()
            self.assertEqual(server.wait_for_exit(), 1)
            said = next(m for line in server.log if (m := re.search(NOT_ON_DISK, line)))
            self.assertGreater(int(said[1]), 30_000)
            disk.free()
            server = self.start(fsync, directory=disk.path)
            with server.connect() as connection:
                self.assertEqual(connection.call("GET", "key"), b"first" * 5000 + b"!")

    def write_to_full_disk(self, connection, value):
        before = connection.call("GET", "key")
        commands = [("GET", "key"), ("SET", "key", value), ("GET", "key")]
        commands += [("SET", "key", "x", "NX"), ("MULTI",), ("PING",)]
        replies = [reply for reply, _ in connection.pipeline(commands)]
        self.assertEqual(replies[0], before)
        self.assertEqual(replies[2], value.encode(), "a read goes on")
        # The log's thread may find the disk full before the second SET. The server then rejects
        # this SET.
        for reply, rejected in ((replies[1], ""), (replies[3], "|^MISCONF ")):
            self.assertIsInstance(reply, ErrorReply)
            self.assertRegex(reply.text, "^IOERR .*this write .*may be kept" + rejected)
        self.assertEqual(replies[4], b"OK")
        self.assertIsInstance(connection.call("EXEC"), ErrorReply)

    def test_slow_syncs_of_a_replica(self):
        """While a sync of the replica's append log hangs, the replica acknowledges no new offset to
        its leader.
        """
        leader = self.start_server("--repl-diskless-sync-delay", "0")
        replica, reader, writer = self.serve_with_slow_syncs("everysec")
        writer.close()
        reader.call("REPLICAOF", "127.0.0.1", leader.port)
        writer = leader.connect()
        self.addCleanup(writer.close)
        wait_until(lambda: replication_info(reader)["master_link_status"] == "up")
        fields = {}

        def is_overdue():
            """Returns whether the replica reports an overdue sync and leaves a write
            unacknowledged. On a busy machine the sync may have completed before this check.
            """
            writer.call("INCR", "n")
            fields.update(replication_info(reader))
            reason = fields.get("master_link_down_reason", "")
            return "sync of the append log" in reason and writer.call("WAIT", 1, 100) == 0

        wait_until(is_overdue, "an overdue sync", timeout_s=120)
        self.assertEqual(fields["master_link_status"], "down")
        last = writer.call("INCR", "n")
        wait_until(lambda: writer.call("WAIT", 1, 100) == 1, "the replica goes on")
        self.assertEqual(reader.call("GET", "n"), b"%d" % last)
        self.assertEqual(replication_info(writer, "stats")["sync_full"], "1")
        replica.crash()

    def test_full_disk_of_a_replica(self):
        """A replica whose disk is full stops reading from its leader and reports the reason. It
        continues when the disk has space.
        """
        disk = self.small_disk(32 << 20)
        leader = self.start_server("--repl-diskless-sync-delay", "0")
        replica = self.start("everysec", directory=disk.path)
        replica.expect_log(REFUSES)
        writer, reader = leader.connect(), replica.connect()
        self.addCleanup(writer.close)
        self.addCleanup(reader.close)
        reader.call("REPLICAOF", "127.0.0.1", leader.port)
        wait_until(lambda: replication_info(reader)["master_link_status"] == "up", what="the link")
        wait_until(lambda: self.info(reader, "aof_rewrite_in_progress") == "0")
        disk.fill(64 << 10)
        before = replica.resident_bytes()
        value = self.rng.randbytes(200_000)
        for number in range(100):
            writer.call("SET", f"key:{number % 4}", value)
        wait_until(lambda: replication_info(reader)["master_link_status"] == "down")
        fields = replication_info(reader)
        self.assertIn("No space left on device", fields["master_link_down_reason"])
        self.assertEqual(reader.call("ROLE")[3], b"connect")
        self.assertEqual(writer.call("WAIT", 1, 100), 0)
        self.assertLess(replica.resident_bytes() - before, 10 << 20)
        disk.free()
        wait_until(lambda: replication_info(reader)["master_link_status"] == "up")
        wait_until(lambda: writer.call("WAIT", 1, 100) == 1, "the replica has all")
        self.assertNotIn("master_link_down_reason", replication_info(reader))
        self.assertEqual(reader.call("GET", "key:3"), value)
        self.assertEqual(replication_info(writer, "stats")["sync_full"], "1", "it went on")
        replica.crash()

    def test_full_disk_always(self):
        disk = self.small_disk()
        for _ in range(ROUNDS):
            load = Load(self.rng.random())
            server = self.start("always", directory=disk.path)
            load.start(server.port)
            load.wait_for_writes(self.rng.randrange(20, 300))
            disk.fill(self.rng.randrange(3) * 4096)
            self.expect_end(server, load)
            disk.free()
            self.check_restart(server, load, "always", disk.path)
            shutil.rmtree(disk.path / "appendonlydir")

    def expect_end(self, server, load):
        server.expect_log(ENDS)
        server.expected_exit = 1
        self.assertEqual(server.wait_for_exit(), 1)
        self.assertTrue([line for line in server.log if re.search(ENDS, line)])
        load.join()

    def test_file_size_limit_always(self):
        load = Load(self.rng.random())
        server = self.start("always", setup=limit_file_size)
        load.start(server.port)
        self.expect_end(server, load)
        self.check_restart(server, load, "always")

    def test_file_size_limit_everysec(self):
        load = Load(self.rng.random())
        server = self.start("everysec", setup=limit_file_size)
        server.expect_log(REFUSES)
        load.start(server.port)
        server.wait_for_log(REFUSES)
        self.check_refusing(server)
        server.crash()
        load.join()
        self.check_restart(server, load, "everysec")

    def test_full_disk_while_saving(self):
        disk = self.small_disk()
        server = self.start("everysec", directory=disk.path)
        server.expect_log(REWRITE_FAILS)
        server.expect_log("Error saving DB on disk|Background saving failed")
        with server.connect() as connection:
            for number in range(200):
                connection.call("SET", f"key:{number}", self.rng.randbytes(5000))
            digest = connection.call("DEBUG", "DIGEST")
            disk.fill(300 << 10)
            for _ in range(ROUNDS):
                self.fail_to_save(connection, disk)
            # After a failed snapshot, the server rejects writes only if save points are configured.
            self.assertEqual(connection.call("SET", "key:0", "1"), b"OK")
            connection.call("CONFIG", "SET", "save", "1 1")
            reply = connection.call("SET", "key:0", "2")
            self.assertTrue(isinstance(reply, ErrorReply) and reply.text.startswith("MISCONF"))
            disk.free()
            # The server retries the snapshot by itself.
            wait_until(lambda: self.info(connection, "rdb_last_bgsave_status") == "ok")
            wait_until(lambda: self.info(connection, "rdb_bgsave_in_progress") == "0")
            self.assertEqual(connection.call("SET", "key:0", "2"), b"OK")
            connection.call("CONFIG", "SET", "save", "")
            # The last SET may have caused another snapshot.
            wait_until(lambda: self.info(connection, "rdb_bgsave_in_progress") == "0")
            self.assertEqual(connection.call("SAVE"), b"OK")
            connection.call("BGREWRITEAOF")
            wait_until(lambda: self.info(connection, "aof_last_bgrewrite_status") == "ok")
            self.assertNotEqual(connection.call("DEBUG", "DIGEST"), digest)
            digest = connection.call("DEBUG", "DIGEST")
        server.crash()
        server = self.start("everysec", directory=disk.path)
        with server.connect() as connection:
            self.assertEqual(connection.call("DEBUG", "DIGEST"), digest)

    def fail_to_save(self, connection, disk):
        self.assertIsInstance(connection.call("SAVE"), ErrorReply)
        for command, status, running in (
            ("BGSAVE", "rdb_last_bgsave_status", "rdb_bgsave_in_progress"),
            ("BGREWRITEAOF", "aof_last_bgrewrite_status", "aof_rewrite_in_progress"),
        ):
            reply = connection.call(command)
            self.assertTrue(reply.startswith(b"Background"), reply)
            wait_until(lambda field=running: self.info(connection, field) == "0")
            self.assertEqual(self.info(connection, status), "err")
        self.assertEqual(list(disk.path.rglob("temp-*")), [])
        self.assertEqual(list(disk.path.rglob("*.base.rdb")), [])

    def test_failing_sync_always(self):
        # strace counts the calls of each thread separately. The server calls fdatasync twice while
        # it starts. The start must succeed, so the earliest call that fails here is the third one.
        for count in (3, 4, 5, 30):
            load = Load(self.rng.random())
            prefix = strace(f"fdatasync:error=EIO:when={count}")
            directory = self.directory / str(count)
            directory.mkdir()
            server = self.start("always", directory=directory, prefix=prefix)
            load.start(server.port)
            self.expect_end(server, load)
            self.check_restart(server, load, "always", directory)

    def test_failing_sync_everysec(self):
        """After a failed sync, a later successful sync does not prove that all bytes are on the
        disk. Only a rewrite repairs the append log, and the server starts it by itself.
        """
        load = Load(self.rng.random())
        server = self.start("everysec", prefix=strace("fdatasync:error=EIO:when=3"))
        server.expect_log(REFUSES)
        # The thread that prepares the rewrite also calls fdatasync, and its call fails too.
        server.expect_log(REWRITE_FAILS)
        load.start(server.port)
        server.wait_for_log(REFUSES)
        server.wait_for_log("rewriting finished successfully")
        self.wait_until_recovered(server, load)
        load.join()
        self.check_restart(server, load, "everysec")

    def test_failing_fork(self):
        server = self.start("everysec", prefix=strace("clone,fork,vfork:error=ENOMEM"))
        server.expect_log("Can't rewrite the append log: .*can't fork")
        server.expect_log("can't fork")
        with server.connect() as connection:
            reply = connection.call("BGSAVE")
            self.assertIsInstance(reply, ErrorReply)
            self.assertIn("can't fork", reply.text)
            self.assertEqual(self.info(connection, "rdb_last_bgsave_status"), "err")
            self.assertEqual(connection.call("SET", "first", "1"), b"OK")
            # BGREWRITEAOF replies before the fork, so only INFO reports the failure.
            connection.call("BGREWRITEAOF")
            wait_until(lambda: self.info(connection, "aof_last_bgrewrite_status") == "err")
            self.assertEqual(connection.call("SET", "second", "1"), b"OK")
        server.crash()
        server = self.start("everysec")
        with server.connect() as connection:
            self.assertEqual(connection.call("DBSIZE"), 2)

    def test_interrupted_calls(self):
        for fsync in ("always", "everysec"):
            directory = self.directory / fsync
            directory.mkdir()
            path = str(directory / "appendonlydir" / "appendonly.aof.1.incr.aof")
            prefix = strace(
                "write:error=EINTR:when=3+5", "fdatasync:error=EINTR:when=1+3", path=path
            )
            load = Load(self.rng.random())
            server = self.start(fsync, directory=directory, prefix=prefix)
            load.start(server.port)
            load.wait_for_writes(300)
            load.join()
            with server.connect() as connection:
                self.assertEqual(load.check(connection), 0)
            self.check_restart(server, load, fsync, directory)


if __name__ == "__main__":
    unittest.main()
