#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests shutdowns by the command SHUTDOWN and by signals, and the start of two servers in the same
data directory.

Environment:
  BLOOMERY_SHUTDOWN_CYCLES  number of times that a server under load is shut down
"""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import tempfile
import unittest

from harness import (
    SERVER,
    Process,
    ServerTest,
    disks,
    free_port,
    process_state,
    seed_from_environment,
    wait_until,
)
from harness.counts import count
from harness.preloads import process_faults
from harness.resp import ErrorReply, encode
from harness.write_load import Load

CYCLES = count("SHUTDOWN_CYCLES")
NO_MOUNTS = disks.why_no_mounts()
LOGS = ("yes", "no")
TAKEN = "Another process uses"


def descriptors(pid):
    """Returns the names of the files and sockets that a process has open."""
    found = []
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(os.readlink(entry))
    return found


class ShutdownTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.seed = seed_from_environment()

    def setUp(self):
        self.rng = random.Random(f"{self.seed}/{self.id()}")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-shutdown-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.snapshot = self.directory / "dump.rdb"

    def start(self, *options, directory=None, **more):
        return self.start_server(
            "--appendonly", "yes", *options, directory=directory or self.directory, **more
        )

    def shut_down(self, server, *options):
        """Sends SHUTDOWN. Returns its reply, or None if the server exited with status 0 and sent no
        reply.
        """
        with server.connect() as connection:
            connection.send(encode("SHUTDOWN", *options))
            try:
                return connection.read_reply()[0]
            except (EOFError, ConnectionResetError):
                self.assertEqual(server.wait_for_exit(), 0)
                return None

    def test_nothing_is_lost_at_a_signal(self):
        load = Load(self.rng.random())
        for cycle in range(CYCLES):
            fsync = ("always", "everysec", "no")[cycle % 3]
            server = self.start("--appendfsync", fsync, "--bf-initial-size", "50")
            server.expect_log("There is a child saving. Killing it!|Background .* failed")
            load.start(server.port)
            load.wait_for_writes(self.rng.randrange(50, 1000))
            if cycle % 2 == 1:
                with server.connect() as connection:
                    connection.call("BGREWRITEAOF")
            server.process.send_signal(self.rng.choice([signal.SIGTERM, signal.SIGINT]))
            self.assertEqual(server.wait_for_exit(), 0)
            load.join()
            server = self.start("--appendfsync", fsync)
            with server.connect() as connection:
                self.assertEqual(load.check(connection), 0)
            self.assertFalse([line for line in server.log if "is torn" in line])
            self.assertIsNone(self.shut_down(server))
        self.assertEqual(list(self.directory.rglob("temp-*")), [])

    def test_shutdown_under_load(self):
        load = Load(self.rng.random())
        for _ in range(CYCLES // 2):
            server = self.start("--bf-initial-size", "50")
            load.start(server.port)
            load.wait_for_writes(self.rng.randrange(50, 1000))
            self.assertIsNone(self.shut_down(server, "NOSAVE"))
            load.join()
            server = self.start()
            with server.connect() as connection:
                self.assertEqual(load.check(connection), 0)
            server.crash()

    def test_save_options_decide_about_the_snapshot(self):
        """SHUTDOWN SAVE writes a snapshot, SHUTDOWN NOSAVE does not. Without either word, the
        server writes a snapshot if save points are configured. SIGTERM acts like SHUTDOWN without
        arguments.
        """
        cases = (
            ((), "", False),
            (("SAVE",), "", True),
            ((), "3600 1", True),
            (("NOSAVE",), "3600 1", False),
            (("SAVE", "NOW", "FORCE"), "", True),
        )
        for options, points, saves in cases:
            with self.subTest(options=options, points=points):
                server = self.start("--save", points)
                with server.connect() as connection:
                    self.assertEqual(connection.call("SET", "key", "value"), b"OK")
                self.assertIsNone(self.shut_down(server, *options))
                self.assertEqual(self.snapshot.exists(), saves)
                self.snapshot.unlink(missing_ok=True)
        server = self.start("--save", "3600 1")
        with server.connect() as connection:
            self.assertEqual(connection.call("SET", "key", "value"), b"OK")
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait_for_exit(), 0)
        self.assertTrue(self.snapshot.exists())

    def test_failed_snapshot_prevents_an_unforced_end(self):
        if NO_MOUNTS:
            self.skipTest(NO_MOUNTS)
        disk = disks.Tmpfs(2 << 20)
        self.addCleanup(disk.remove)
        server = self.start(directory=disk.path)
        server.expect_log("Error saving DB on disk|Can.t shut down|Shutting down all the same")
        with server.connect() as connection:
            connection.call("SET", "big", self.rng.randbytes(600_000))
            disk.fill(200 << 10)
            reply = self.shut_down(server, "SAVE")
            self.assertIsInstance(reply, ErrorReply)
            # After the failed shutdown the server still serves clients, including writes.
            self.assertEqual(connection.call("SET", "small", "1"), b"OK")
        self.assertIsNone(self.shut_down(server, "SAVE", "FORCE"))
        server = self.start(directory=disk.path)
        with server.connect() as connection:
            self.assertEqual(connection.call("DBSIZE"), 2)

    def test_failed_save_point_does_not_prevent_the_end(self):
        """If save points are configured, a shutdown saves a snapshot. If this snapshot fails, the
        server still ends, because the append log holds all data.
        """
        for end in (signal.SIGTERM, "SHUTDOWN"):
            server = self.start("--save", "3600 1")
            server.expect_log("Error saving DB on disk|Ending without the snapshot")
            with server.connect() as connection:
                self.assertEqual(connection.call("SET", "key", str(end)), b"OK")
            self.snapshot.mkdir()
            if end == "SHUTDOWN":
                self.assertIsNone(self.shut_down(server))
            else:
                server.process.send_signal(end)
                self.assertEqual(server.wait_for_exit(), 0)
            self.snapshot.rmdir()
            server = self.start()
            with server.connect() as connection:
                self.assertEqual(connection.call("GET", "key"), str(end).encode())
            server.crash()

    def test_failed_save_point_without_a_log_is_an_error(self):
        options = ("--appendonly", "no", "--save", "3600 1")
        server = self.start(*options)
        server.expect_log("Error saving DB on disk|Can.t shut down")
        with server.connect() as connection:
            self.assertEqual(connection.call("SET", "key", "value"), b"OK")
        self.snapshot.mkdir()
        server.process.send_signal(signal.SIGTERM)
        server.wait_for_log("Can't shut down.* lost")
        self.snapshot.rmdir()
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait_for_exit(), 0)
        server = self.start(*options)
        with server.connect() as connection:
            self.assertEqual(connection.call("GET", "key"), b"value")

    def test_a_second_server_is_turned_away(self):
        server = self.start()
        with server.connect() as connection:
            connection.call("SET", "key", "value")
        options = ("--save", "", "--appendonly")
        # The test starts two more servers in parallel, because each of them waits a while for the
        # lock of the data directory before it exits.
        others = [Process(SERVER, [*options, log], directory=self.directory) for log in LOGS]
        for second in others:
            self.assertEqual(second.wait_for_exit(), 1)
            self.assertTrue([line for line in second.log if TAKEN in line], second.log)
            self.assertFalse([line for line in second.log if "Ready" in line])
        with server.connect() as connection:
            self.assertEqual(connection.call("GET", "key"), b"value")

    def test_config_set_dir_moves_the_lock_and_snapshots(self):
        other = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-shutdown-"))
        self.addCleanup(shutil.rmtree, other, ignore_errors=True)
        server = self.start_server("--enable-protected-configs", "yes", directory=self.directory)
        with server.connect() as connection:
            connection.call("SET", "key", "value")
            self.assertEqual(connection.call("CONFIG", "SET", "dir", other), b"OK")
            self.assertEqual(connection.call("SAVE"), b"OK")
            self.assertTrue((other / "dump.rdb").exists())
            self.assertFalse(self.snapshot.exists())
            for wrong in (other / "missing", "/proc"):
                reply = connection.call("CONFIG", "SET", "dir", wrong)
                self.assertIsInstance(reply, ErrorReply)
            self.assertEqual(connection.call("CONFIG", "GET", "dir")[1], str(other).encode())
            second = Process(SERVER, ["--save", ""], directory=other)
            self.assertEqual(second.wait_for_exit(), 1)
            self.assertTrue([line for line in second.log if TAKEN in line], second.log)
            self.start()  # no server uses the old directory any longer
            reply = connection.call("CONFIG", "SET", "dir", self.directory)
            self.assertIn(TAKEN, str(reply))
            # While the append log is open, `dir` cannot be changed.
            self.assertEqual(connection.call("CONFIG", "SET", "appendonly", "yes"), b"OK")
            reply = connection.call("CONFIG", "SET", "dir", tempfile.gettempdir())
            self.assertRegex(str(reply), "append log is in use")

    def test_start_waits_for_the_child_of_a_killed_server(self):
        """A starting server waits for the child process of a killed server. The child inherits the
        lock of the data directory and the server's sockets. It closes them only when it first runs,
        which may be after the kill.
        """
        path = self.directory / "server.sock"
        addresses = ("--unixsocket", path, "--http-port", free_port())
        options = self._defaults(("--appendonly", "yes", *addresses))
        held = self.directory / "held"  # the child starts when the test removes this file
        for command in ("BGSAVE", "BGREWRITEAOF"):
            with self.subTest(command):
                held.touch()
                server = self.start(*addresses, prefix=process_faults(HELD_CHILD=held))
                self.addCleanup(held.unlink, missing_ok=True)
                with server.connect() as connection:
                    self.assertEqual(connection.call("SET", "key", command), b"OK")
                    connection.call(command)
                    server.wait_for_log("started by pid")
                server.expected_exit = -signal.SIGKILL
                server.process.kill()
                server.process.wait()
                again = Process(SERVER, options, directory=self.directory, port=server.port)
                self.addCleanup(self._stop, again)
                again.wait_for_log("still holds it")
                held.unlink()
                again.wait_until_ready()
                with again.connect() as connection:
                    self.assertEqual(connection.call("GET", "key"), command.encode())
                again.crash()

    def test_child_holds_no_socket_without_close_range(self):
        """A child process that saves closes the server's sockets, even if the kernel or a sandbox
        rejects close_range().
        """
        server = self.start(prefix=process_faults(NO_CLOSE_RANGE=1))
        with server.connect() as connection:
            for number in range(100):
                connection.call("SET", f"key:{number}", self.rng.randbytes(100_000))
            children = []
            # A child process may end before the test suspends it. Then the test saves again.
            for _ in range(100):
                connection.call("BGSAVE")
                children = server.suspend_children()
                if children:
                    break
            self.assertTrue(children, "each child ended before it was stopped")
            held = descriptors(children[0])
            os.kill(children[0], signal.SIGCONT)
        self.assertTrue(held)
        self.assertFalse([name for name in held if name.startswith("socket:")], held)

    def test_the_directory_is_free_after_a_kill(self):
        """When the server is killed, a child process that saves also ends. So the lock of the data
        directory is free.
        """
        server = self.start()
        with server.connect() as connection:
            for number in range(100):
                connection.call("SET", f"key:{number}", self.rng.randbytes(100_000))
        stopped = cycle = 0
        # A child process may end before the test suspends it. Then the test saves again.
        while cycle < CYCLES or stopped == 0:
            cycle += 1
            self.assertLess(cycle, 100 + CYCLES, "each child ended before it was stopped")
            with server.connect() as connection:
                reply = connection.call("BGSAVE" if cycle % 2 else "BGREWRITEAOF")
                self.assertTrue(reply.startswith(b"Background"), reply)
                server.wait_for_log("started by pid")
                children = server.suspend_children()
                stopped += len(children)
            server.crash()
            server = self.start()
            with server.connect() as connection:
                self.assertEqual(connection.call("DBSIZE"), 100)
            for child in children:
                # An orphaned child process may stay a zombie if its new parent does not wait for
                # it.
                wait_until(
                    lambda pid=child: process_state(pid) in "ZX", what="the end of the orphan"
                )
            self.assertEqual(list(self.directory.rglob("temp-*")), [])


if __name__ == "__main__":
    unittest.main()
