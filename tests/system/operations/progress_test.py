#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the line that shows on a terminal how much of a file the server has loaded. The server
erases this line before it prints a log line.
"""

import os
import pty
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

from harness import DEADLINE_S, SERVER, ServerTest, free_port, wait_until

WIPE = "\r\x1b[K"


class ProgressTest(ServerTest):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="bloomery-progress-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def make_snapshot(self):
        server = self.start_server("--rdbcompression", "no", directory=self.directory)
        with server.connect() as connection:
            for number in range(2000):
                connection.call("SET", f"key:{number}", os.urandom(2000))
            self.assertEqual(connection.call("SAVE"), b"OK")
        self.assertFalse(server.stop())

    def start_on(self, stdout, stderr):
        process = subprocess.Popen(
            [SERVER, "--dir", self.directory, "--port", str(free_port()), "--bind", "127.0.0.1",
             "--save", "", "--appendonly", "no", "--io-threads", "2"],
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
        )  # fmt: skip
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def read_terminal(self, leader, text):
        while True:
            try:
                text.append(os.read(leader, 4096).decode())
            except OSError:
                return

    def on_terminal(self):
        """Starts and ends a server on a pseudo-terminal. Returns all its output."""
        leader, follower = pty.openpty()
        text = []
        process = self.start_on(follower, follower)
        os.close(follower)
        reader = threading.Thread(target=self.read_terminal, args=(leader, text))
        reader.start()
        wait_until(lambda: "Ready to accept" in "".join(text), "the server is ready")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE_S), 0)
        reader.join()
        os.close(leader)
        return "".join(text)

    def test_the_log_and_the_progress_line_do_not_mix(self):
        self.make_snapshot()
        text = self.on_terminal()
        self.assertIn(WIPE + "Loading [", text)
        self.assertRegex(text, r"Loading \[=* *\] +\d+ %")
        shown = [line.split(WIPE)[-1] for line in text.replace("\r\n", "\n").split("\n") if line]
        for line in shown:
            self.assertRegex(line, r"^\d+:M \d\d \w+ \d{4} [\d:.]+ [*#.-] ", text)
            self.assertNotIn("Loading [", line)

    def test_log_is_plain_without_a_terminal(self):
        self.make_snapshot()
        process = self.start_on(subprocess.PIPE, subprocess.STDOUT)
        lines = []
        while not lines or "Ready to accept" not in lines[-1]:
            lines.append(process.stdout.readline().decode())
            self.assertNotEqual(lines[-1], "", lines)
        process.send_signal(signal.SIGTERM)
        lines += process.stdout.read().decode().splitlines()
        process.stdout.close()
        text = "\n".join(lines)
        self.assertNotIn("\x1b", text)
        self.assertNotIn("[==", text)
        self.assertRegex(text, r"Ready to accept connections: Bloomery \S+, port \d+ .* 2 I/O "
                               r"threads.* '/\S+', 2000 keys .*\d+\.\d{3} s")  # fmt: skip


if __name__ == "__main__":
    unittest.main()
