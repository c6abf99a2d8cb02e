#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that a crashing server reports its stack and the names of its last commands, but no data.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import DEADLINE_S, SERVER, ServerTest, free_port, wait_until
from harness.resp import Connection

SANITIZED = bool(os.environ.get("BLOOMERY_SANITIZED"))


@unittest.skipIf(SANITIZED, "the sanitizer reports crashes")
class CrashTest(ServerTest):
    def fill(self, connection):
        connection.call("SET", "secret-key", "secret-value")
        connection.call("BF.ADD", "secret-filter", "secret-item")

    def check(self, report, *, commands):
        for part in ("=== BLOOMERY CRASH REPORT", "crashed by SIGSEGV (signal 11", "Stack (",
                     "bloomery-server", "Threads:", "=== END OF THE CRASH REPORT ==="):  # fmt: skip
            self.assertIn(part, report)
        printed = " ".join(re.findall(r"^  io-\d+:(.*)$", report, re.MULTILINE)).split()
        self.assertEqual(set(commands) - set(printed), set(), report)
        self.assertRegex(report, r"(?m)^  \d+ io-1$")
        self.assertNotIn("secret", report)

    def test_a_signal_leaves_a_report_in_the_log_file(self):
        directory = tempfile.mkdtemp(prefix="bloomery-crash-")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        log, port = pathlib.Path(directory) / "server.log", free_port()
        process = subprocess.Popen(
            [SERVER, "--dir", directory, "--port", str(port), "--bind", "127.0.0.1",
             "--logfile", "server.log", "--io-threads", "2"])  # fmt: skip
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: log.exists() and "Ready to accept connections" in log.read_text())
        with Connection(port) as connection:
            self.fill(connection)
        process.send_signal(signal.SIGSEGV)
        self.assertEqual(process.wait(DEADLINE_S), -signal.SIGSEGV)
        text = log.read_text()
        self.check(text, commands=("set", "bf.add"))
        self.assertRegex(text, r"sent by process %d\b" % os.getpid())

    def test_without_a_log_file_it_goes_to_standard_error(self):
        server = self.start_server("--io-threads", "2")
        with server.connect() as connection:
            self.fill(connection)
            server.process.send_signal(signal.SIGSEGV)
            server.expected_exit = -signal.SIGSEGV
            self.assertEqual(server.wait_for_exit(), -signal.SIGSEGV)
        text = "\n".join(server.log)
        self.check(text, commands=("set", "bf.add"))
        self.assertRegex(text, r"(?m)^  io-\d+: bf\.add set$")


class WatchdogTest(ServerTest):
    def test_stuck_thread_logs_its_stack(self):
        server = self.start_server("--enable-debug-command", "yes", "--io-threads", "1")
        server.expect_log("I/O thread .*event loop")
        with server.connect() as connection:
            # With a shorter period, a busy machine could cause a second report.
            self.assertEqual(connection.call("CONFIG", "SET", "watchdog-period", "1000"), b"OK")
            self.assertEqual(connection.call("DEBUG", "SLEEP", "3"), b"OK")
            wait_until(lambda: any("--------" in line for line in server.log), "the report's end")
            self.assertEqual(connection.call("CONFIG", "SET", "watchdog-period", "0"), b"OK")
            before = len(server.log)
            self.assertEqual(connection.call("DEBUG", "SLEEP", "2"), b"OK")
            self.assertNotIn("WATCHDOG", "\n".join(server.log[before:]))
        text = "\n".join(server.log)
        self.assertEqual(text.count("--- WATCHDOG TIMER EXPIRED ---"), 1)
        report = text[text.index("--- WATCHDOG"):]
        self.assertIn("bloomery-server", report[: report.index("\n--------")])

    def test_without_debug_it_cannot_be_set(self):
        server = self.start_server("--enable-debug-command", "no")
        with server.connect() as connection:
            reply = connection.call("CONFIG", "SET", "watchdog-period", "200")
            self.assertIn("DEBUG command not allowed", reply.text)


if __name__ == "__main__":
    unittest.main()
