#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that the append log records the position of its data in the replication stream. After a
restart a server continues the stream from this position. If the log's last commands have no
position, a full sync is needed. Redis can load a log with positions."""

import pathlib
import re
import shutil
import signal
import tempfile
import unittest

from harness import wait_until
from harness.info import info
from harness.process import Process
from harness.replication import ReplicaTest, digest

OPTIONS = (
    *("--appendonly", "yes", "--enable-debug-command", "yes"),
    *("--repl-diskless-sync-delay", "0"),
)
POSITION = re.compile(rb"#bloomery-pos:[0-9a-f]{40} \d+ \d+\r\n")
# Matches a log whose last lines are a position and a checksum.
LAST_POSITION = re.compile(POSITION.pattern + rb"#bloomery-crc64:[0-9a-f]{16}\r\n$")


class LogPositionTest(ReplicaTest):
    def setUp(self):
        self.leader = self.start()
        self.replica = self.start("--replicaof", f"127.0.0.1 {self.leader.port}")
        self.numbers = iter(range(1000))
        with self.replica.connect() as connection:
            self.wait_for_link(connection)
        # The commands come after the snapshot, so that the replica's log contains them.
        self.write()
        self.wait_until_equal()

    def start(self, *options, **more):
        server = self.start_server(*OPTIONS, *options, **more)
        server.expect_log(".*")
        return server

    def write(self):
        """Writes to several databases. The last database of the stream is not 0."""
        number = next(self.numbers)
        with self.leader.connect() as connection:
            for database in (0, 5):
                connection.call("SELECT", database)
                self.assertEqual(connection.call("SET", f"key-{number}", database), b"OK")
                self.assertEqual(connection.call("BF.ADD", "filter", number), 1)

    def wait_until_equal(self):
        def are_equal():
            found = []
            for server in (self.leader, self.replica):
                with server.connect() as connection:
                    found.append(digest(connection))
            return found[0] == found[1]

        wait_until(are_equal, "leader and replica have the same data")

    def start_again(self, server, *options):
        return self.start(*options, port=server.port, directory=server.directory)

    def restart_replica(self, end, damage=lambda: None):
        """Ends and restarts the replica. Returns the numbers of (full, partial) syncs that this
        causes at the leader.
        """
        before = self.syncs()
        # The replica may log the first commands of a batch while it still applies the last ones. It
        # logs the position only after the whole batch, so the test waits for the position.
        wait_until(
            lambda: LAST_POSITION.search(self.newest_log(self.replica).read_bytes()),
            "the last command has a position",
        )
        end(self.replica)
        damage()
        self.write()
        self.replica = self.start_again(
            self.replica, "--replicaof", f"127.0.0.1 {self.leader.port}"
        )
        self.wait_until_equal()
        return tuple(now - then for now, then in zip(self.syncs(), before))

    def syncs(self):
        with self.leader.connect() as connection:
            found = info(connection, "stats")
        return int(found["sync_full"]), int(found["sync_partial_ok"])

    def terminate(self, server):
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait_for_exit(), 0)

    @staticmethod
    def newest_log(server):
        folder = pathlib.Path(server.directory) / "appendonlydir"
        return max(folder.glob("*.incr.aof"), key=lambda path: path.stat().st_mtime_ns)

    def test_restarted_replica_continues(self):
        self.assertEqual(self.restart_replica(self.terminate), (0, 1))
        self.assertEqual(self.restart_replica(Process.crash), (0, 1))

    def test_rewritten_log_has_a_position(self):
        with self.replica.connect() as connection:
            connection.call("BGREWRITEAOF")
            wait_until(
                lambda: info(connection, "persistence")["aof_rewrite_in_progress"] == "0",
                "the rewrite ends",
            )
        self.write()
        self.wait_until_equal()
        self.assertEqual(self.restart_replica(Process.crash), (0, 1))

    def test_reloaded_log_keeps_the_position(self):
        with self.replica.connect() as connection:
            wait_until(
                lambda: connection.call("DEBUG", "LOADAOF") == b"OK", "the log is loaded again"
            )
        self.write()
        self.wait_until_equal()
        self.assertEqual(self.restart_replica(self.terminate), (0, 1))

    def test_commands_without_a_position_need_a_full_sync(self):
        self.assertEqual(self.restart_replica(Process.crash, self.cut_positions), (1, 0))

    def cut_positions(self):
        """Truncates the log after its last command, as a crash during the last batch does."""
        path = self.newest_log(self.replica)
        data = path.read_bytes()
        end = len(data)
        for line in reversed([*re.finditer(rb"#[^\r]*\r\n", data)]):
            if line.end() != end:
                break
            end = line.start()
        path.write_bytes(data[:end])

    def test_restarted_leader_is_continued(self):
        self.terminate(self.leader)
        with self.replica.connect() as connection:
            wait_until(
                lambda: info(connection)["master_link_status"] == "down", "the link is down"
            )
        self.leader = self.start_again(self.leader)
        self.write()
        self.wait_until_equal()
        self.assertEqual(self.syncs(), (0, 1))

    def test_redis_reads_the_log(self):
        self.terminate(self.replica)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-test-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        with self.leader.connect() as connection:
            connection.call("FLUSHALL")
            connection.call("SET", "key", "value")
            connection.call("BGREWRITEAOF")
            wait_until(
                lambda: info(connection, "persistence")["aof_rewrite_in_progress"] == "0",
                "the rewrite ends",
            )
            connection.call("SET", "other", "value")
        self.terminate(self.leader)
        log = pathlib.Path(self.leader.directory) / "appendonlydir"
        self.assertRegex(self.newest_log(self.leader).read_bytes(), POSITION)
        shutil.copytree(log, folder / "appendonlydir")
        options = ["--dir", folder, "--appendonly", "yes", "--save", ""]
        redis = self._start(shutil.which("redis-server"), options, (), True, {})
        with redis.connect() as connection:
            self.assertEqual(connection.call("MGET", "key", "other"), [b"value"] * 2)


if __name__ == "__main__":
    unittest.main()
