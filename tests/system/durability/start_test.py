#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the messages of a starting server: about files that it cannot open, cannot parse or
removes, and about addresses that are in use. Also tests how INFO counts the time of the start.
"""

import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

from harness import DEADLINE_S, SERVER, ServerTest, free_port, wait_until
from harness.info import info
from harness.preloads import process_faults
from harness.resp import Connection, encode

LOG = pathlib.Path("appendonlydir")
INCREMENTAL = LOG / "appendonly.aof.1.incr.aof"


class StartTest(ServerTest):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-start-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def start(self):
        return self.start_server("--appendonly", "yes", directory=self.directory)

    def test_time_of_loading_is_no_time_of_service(self):
        """Loads 300 keys with a delay of 10 ms each, so the server starts long before it is ready.
        """
        options = ("--appendonly", "no", "--enable-debug-command", "yes")
        server = self.start_server(*options, directory=self.directory)
        with server.connect() as connection:
            connection.pipeline([("SET", f"key:{number}", "value") for number in range(300)])
            self.assertEqual(connection.call("SAVE"), b"OK")
        server.crash()
        server = self.start_server(*options, "--key-load-delay", "10000", directory=self.directory)
        with server.connect() as connection:
            fields = info(connection, "server")
        loaded_s = int(fields["uptime_in_seconds"]) - int(fields["seconds_since_ready"])
        self.assertGreaterEqual(loaded_s, 1, "the time since the start includes the load")

    def make_log(self):
        """Creates an append log of three commands, each followed by a checksum line. Returns the
        path of the incremental file, which has the commands.
        """
        server = self.start()
        with server.connect() as connection:
            for number in range(3):
                connection.call("SET", f"key:{number}", "value")
        server.crash()
        return self.directory / INCREMENTAL

    def run_to_its_end(self, *options, prefix=()):
        """Runs the server until it exits. Returns its exit status and its output. With `daemonize
        yes`, these are the exit status and the output of the process that starts the daemon.
        """
        command = [*prefix, SERVER, "--dir", self.directory, *options]
        done = subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=DEADLINE_S,
            check=False,
        )
        return done.returncode, done.stdout.decode()

    def refused(self, *options, **more):
        """Checks that the server exits with status 1 instead of starting. Returns its messages."""
        status, said = self.run_to_its_end("--port", free_port(), *options, **more)
        self.assertEqual(status, 1, said)
        return said

    def test_a_log_file_that_cannot_be_opened(self):
        for daemonize in ("no", "yes"):
            for path, reason in (
                (self.directory / "no" / "such" / "log", "No such file or directory"),
                (self.directory, "Is a directory"),
            ):
                with self.subTest(daemonize=daemonize, reason=reason):
                    said = self.refused("--logfile", path, "--daemonize", daemonize)
                    self.assertRegex(said, f"log: .*'{path}': {reason}")
        self.assertFalse((self.directory / "no").exists(), "a directory was made for it")

    def test_a_damaged_log_names_the_next_step(self):
        path = self.make_log()
        data = path.read_bytes()
        path.write_bytes(data.replace(b"key:0", b"kex:0"))
        said = self.refused("--appendonly", "yes")
        self.assertRegex(said, rf"append log '.*{path.name}', offset \d+: damaged")
        manifest = LOG / "appendonly.aof.manifest"
        self.assertIn(f"--check-aof {self.directory / manifest}", said)
        self.assertRegex(said, "replica.*backup")
        report = subprocess.run(
            [SERVER, "--check-aof", self.directory / manifest], stdout=subprocess.PIPE, check=False
        )
        self.assertEqual(report.returncode, 1)
        log = self.directory / "server.log"
        said = self.refused("--appendonly", "yes", "--logfile", log)
        self.assertIn(f"see its log: {log}", said)
        self.assertIn("damaged", log.read_text())

    def test_starter_of_a_daemon_reports_why_there_is_none(self):
        daemon = ("--daemonize", "yes")
        said = self.refused(*daemon, prefix=process_faults(FORKS_MAX=0))
        self.assertRegex(said, "daemon: .*fork: Resource temporarily")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            said = self.refused(*daemon, "--bind", "127.0.0.1", "--port", port)
            self.assertIn("aborting: Could not", said)
        path = self.make_log()
        path.write_bytes(path.read_bytes().replace(b"key:0", b"kex:0"))
        self.assertIn("damaged", self.refused(*daemon, "--appendonly", "yes"))

    def test_start_at_a_limit_of_threads(self):
        """If any thread cannot be created, the server exits with an error status and a message."""
        port = free_port()
        options = ("--port", port, "--appendonly", "yes", "--io-threads", "2", "--save", "")
        options += ("--http-port", free_port(), "--bind", "127.0.0.1", "--daemonize", "yes")
        for threads in range(30):
            faults = process_faults(THREADS_MAX=threads)
            status, said = self.run_to_its_end(*options, prefix=faults)
            if status == 0:
                break
            self.assertEqual(status, 1, said)
            self.assertRegex(said, "thread '[a-z0-9-]+': Resource temporarily")
        self.assertGreater(threads, 3)
        with Connection(port) as client:
            self.assertEqual(client.call("PING"), b"PONG")
            client.send(encode("SHUTDOWN"))
            with self.assertRaises((EOFError, ConnectionResetError)):
                client.read_reply()

    def test_daemon_without_standard_streams_reports(self):
        """If the standard streams are closed, the files that a daemon opens must not get the
        descriptors 0 to 2, which belong to these streams.
        """
        port = free_port()
        closed = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
        words = [*closed, SERVER, "--dir", self.directory, "--port", port, "--bind", "127.0.0.1",
                 "--daemonize", "yes", "--save", ""]  # fmt: skip
        done = subprocess.run([str(word) for word in words], timeout=DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 0)
        with Connection(port) as client:
            self.assertEqual(client.call("PING"), b"PONG")
            client.send(encode("SHUTDOWN"))
            with self.assertRaises((EOFError, ConnectionResetError)):
                client.read_reply()

    def test_damaged_last_checksum_line_is_reported(self):
        path = self.make_log()
        data = path.read_bytes()
        mark = data.rindex(b"#") + 1
        message = "no sound checksum line .*last 1 commands"
        for damaged in (data[: mark - 1], data[:mark] + b" " + data[mark + 1 :]):
            path.write_bytes(damaged)
            server = self.start()
            server.expect_log(message)
            pattern = f"{path.name}: {message}"
            self.assertTrue([line for line in server.log if re.search(pattern, line)])
            with server.connect() as connection:
                self.assertEqual(connection.call("DBSIZE"), 3)
            server.crash()
            again = self.start()
            repeated = [line for line in again.log if re.search(message, line)]
            self.assertEqual(repeated, [], "it was sealed")
            again.crash()

    def test_removed_files_are_named(self):
        self.make_log()
        left = ["temp-123.rdb", "temp-rewriteaof-bg-123.aof", f"{LOG}/temp-appendonly.aof.manifest"]
        for name in left:
            (self.directory / name).write_bytes(b"part")
        server = self.start()
        for name in left:
            self.assertFalse((self.directory / name).exists())
            self.assertTrue(
                [line for line in server.log if re.search(f"Removed '[^']*{name}'", line)], name
            )

    def test_only_a_start_fails_when_it_cannot_listen(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            said = self.refused("--bind", "127.0.0.1", "--port", port)
            self.assertIn(f"Failed listening on port {port} (TCP), aborting: Could not", said)
            server = self.start_server()
            server.expect_log("Failed listening on port")
            with server.connect() as client:
                client.call("CONFIG", "SET", "port", port)
                server.wait_for_log(rf"Failed listening on port {port} \(TCP\): Could not")
                self.assertEqual(client.call("PING"), b"PONG")

    def test_parent_may_ignore_the_ends_of_children(self):
        # A parent that ignores SIGCHLD passes this on to the programs that it starts.
        server = self.start_server("--appendonly", "yes", prefix=("env", "--ignore-signal=CHLD"))
        with server.connect() as connection:
            for command, running in (("BGSAVE", "rdb_bgsave_in_progress"),
                                     ("BGREWRITEAOF", "aof_rewrite_in_progress")):  # fmt: skip
                self.assertTrue(connection.call(command).startswith(b"Background"))
                wait_until(lambda field=running: info(connection, "persistence")[field] == "0")
            fields = info(connection, "persistence")
        self.assertEqual(fields["rdb_last_bgsave_status"], "ok")
        self.assertEqual(fields["aof_last_bgrewrite_status"], "ok")
        self.assertEqual(fields["aof_rewrites"], "1")

    def test_log_is_being_rewritten_until_it_has_a_base(self):
        held = self.directory / "held"
        held.touch()
        data = self.directory / "data"
        data.mkdir()
        server = self.start_server("--appendonly", "no", directory=data,
                                   prefix=process_faults(HELD_CHILD=held))  # fmt: skip
        self.addCleanup(held.unlink, missing_ok=True)
        with server.connect() as connection:
            connection.call("SET", "key", "value")
            connection.call("BGSAVE")
            self.assertEqual(connection.call("CONFIG", "SET", "appendonly", "yes"), b"OK")
            fields = info(connection, "persistence")
            self.assertEqual(fields["aof_rewrite_in_progress"], "1", "it waits for the snapshot")
            held.unlink()
            wait_until(lambda: info(connection, "persistence")["aof_rewrite_in_progress"] == "0")
        server.crash()
        server = self.start_server("--appendonly", "yes", directory=data)
        with server.connect() as connection:
            self.assertEqual(connection.call("GET", "key"), b"value")

    def test_socket_of_another_server_is_not_replaced(self):
        path = self.directory / "server.sock"
        server = self.start_server("--unixsocket", path)
        message = f"Failed opening Unix socket {path}: another server listens"
        self.assertIn(message, self.refused("--bind", "127.0.0.1", "--unixsocket", path))
        with Connection(unix_path=str(path)) as client:
            self.assertEqual(client.call("PING"), b"PONG")
        server.crash()
        self.assertTrue(path.exists())
        self.start_server("--unixsocket", path)
        with Connection(unix_path=str(path)) as client:
            self.assertEqual(client.call("PING"), b"PONG")


if __name__ == "__main__":
    unittest.main()
