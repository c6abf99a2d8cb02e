#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the server process and its sockets: odd clients, limits, configuration, start and end."""

import os
import resource
import shutil
import signal
import socket
import stat
import tempfile
import threading
import time
import unittest

from harness import ServerTest, let_time_pass, wait_until
from harness.resp import Connection, encode

STORM = 2000


class ClientsTest(ServerTest):
    def setUp(self):
        self.server = self.start_server()

    def assert_alive(self):
        with self.server.connect() as other:
            self.assertEqual(other.call("PING"), b"PONG")

    def test_storm_of_connections(self):
        # The test process needs a descriptor for each connection. The usual limit of 1024
        # descriptors may be too low, so the test raises it.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        clients = [self.server.connect() for _ in range(STORM)]
        for client in clients:
            client.send(encode("INCR", "storm"))
        numbers = {client.read_reply()[0] for client in clients}
        self.assertEqual(numbers, set(range(1, STORM + 1)))
        for client in clients:
            client.close()
        self.assert_alive()


class OptionsTest(ServerTest):
    def test_sigterm_under_load_ends_with_zero(self):
        server = self.start_server()
        clients = [server.connect() for _ in range(20)]
        for client in clients:
            client.send(encode("INCR", "n") * 1000)
        os.kill(server.pid, signal.SIGTERM)
        self.assertEqual(server.wait_for_exit(), 0)
        for client in clients:
            client.close()

    def test_too_many_descriptors_leave_the_others_served(self):
        server = self.start_server(prefix=["prlimit", "--nofile=64:64"])
        server.expect_log(r"accept|descriptor|Too many open files|maxclients|max number of clients")
        first = server.connect()
        self.assertEqual(first.call("PING"), b"PONG")
        crowd = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(120)]
        server.wait_for_log(r"accept|descriptor|Too many open files|maxclients")
        began, busy_before_s = time.monotonic(), self.cpu_seconds(server.pid)
        let_time_pass(1, why="a server that tries to accept all the time would be busy in it")
        busy_s = self.cpu_seconds(server.pid) - busy_before_s
        self.assertLess(busy_s / (time.monotonic() - began), 0.5)
        self.assertEqual(first.call("SET", "k", "v"), b"OK")
        for member in crowd:
            member.close()
        first.close()
        wait_until(lambda: self.answers(server), what="a new client being served")

    def answers(self, server):
        try:
            with server.connect(timeout_s=2) as client:
                return client.call("PING") == b"PONG"
        except (OSError, EOFError):
            return False

    def cpu_seconds(self, pid):
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_unix_socket_is_never_wider_than_asked(self):
        self.addCleanup(os.umask, os.umask(0))
        modes = set()
        for _ in range(5):
            self.watch_one_start(modes)
        # The server creates the Unix socket with mode 0, so that no client connects before the
        # server has set the socket's group and mode.
        self.assertLessEqual(modes, {0, 0o700})
        self.assertIn(0o700, modes)

    def watch_one_start(self, modes):
        directory = tempfile.mkdtemp(prefix="bloomery-test-")
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "server.sock")
        ended = threading.Event()

        def watch():
            while not ended.is_set():
                try:
                    modes.add(stat.S_IMODE(os.stat(path).st_mode))
                except FileNotFoundError:
                    pass

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            self.start_server("--unixsocket", path, "--unixsocketperm", "700")
            with Connection(unix_path=path) as client:
                self.assertEqual(client.call("PING"), b"PONG")
        finally:
            ended.set()
            watcher.join()

    def test_renamed_commands(self):
        server = self.start_server(
            "--rename-command", "FLUSHALL", "", "--rename-command", "GET", "FETCH"
        )
        with server.connect() as client:
            self.assertEqual(client.call("SET", "k", "v"), b"OK")
            self.assertEqual(client.call("FETCH", "k"), b"v")
            for command in (("FLUSHALL",), ("GET", "k")):
                reply = client.call(*command)
                self.assertTrue(reply.text.startswith(f"ERR unknown command '{command[0]}'"), reply)

    def test_unknown_option_refuses_to_start(self):
        with self.assertRaisesRegex(AssertionError, "did not get ready"):
            self.start_server("--no-such-option", "1")


if __name__ == "__main__":
    unittest.main()
