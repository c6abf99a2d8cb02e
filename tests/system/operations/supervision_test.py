# SPDX-License-Identifier: MIT
"""Tests sd_notify messages (readiness, watchdog), --health-check, and log rotation."""

import os
import pathlib
import socket
import subprocess
import tempfile
import unittest

from harness import DEADLINE_S, SERVER, ServerTest, free_port, wait_until
from harness.resp import Connection


class SupervisionTest(ServerTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check_health(self, *options):
        """Runs --health-check with these options. Returns its exit status and output."""
        done = subprocess.run(
            [SERVER, "--health-check", *map(str, options)],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.strip()

    def manager(self):
        """Returns a socket that receives sd_notify messages, like the one of a service manager."""
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(str(self.folder / "notify"))
        manager.settimeout(DEADLINE_S)
        return manager

    def start_supervised(self, mode, **variables):
        os.environ.update(variables)
        try:
            return self.start_server("--supervised", mode)
        finally:
            for name in variables:
                del os.environ[name]

    def test_service_manager_is_notified_of_all_states(self):
        for mode in ("systemd", "auto"):
            manager = self.manager()
            server = self.start_supervised(
                mode, NOTIFY_SOCKET=str(self.folder / "notify"), WATCHDOG_USEC="1000000"
            )
            heard = []
            while heard.count("WATCHDOG=1") < 3 or not any("READY=1" in line for line in heard):
                heard.append(manager.recv(4096).decode())
            self.assertEqual(
                [line for line in heard if line.startswith("READY")],
                ["READY=1\nSTATUS=Ready to accept connections"],
            )
            self.assertEqual(server.stop(), [])
            manager.setblocking(False)
            try:
                while True:
                    heard.append(manager.recv(4096).decode())
            except BlockingIOError:
                pass
            # The server may still send WATCHDOG=1 while it stops.
            states = [line for line in heard if line != "WATCHDOG=1"]
            self.assertTrue(states[-1].startswith("STOPPING=1\n"), heard)
            manager.close()
            (self.folder / "notify").unlink()

    def test_health_of_a_server_that_serves(self):
        server = self.start_server("--requirepass", "secret")
        port = server.port
        code, text = self.check_health("--port", port)
        self.assertEqual(code, 0)
        self.assertTrue(text.startswith(f"port {port} answers -NOAUTH "), text)
        # --health-check also accepts a configuration file of the server.
        config = self.folder / "server.conf"
        config.write_text(f"port {port}\nrequirepass secret\n", encoding="ascii")
        self.assertEqual(self.check_health(config)[0], 0)
        self.assertEqual(server.stop(), [])
        code, text = self.check_health("--port", port)
        self.assertEqual((code, text), (1, f"port {port}: Connection refused"))

    def test_server_that_serves_no_client_may_be_alive(self):
        server = self.start_server("--maxclients", "1")
        port = server.port
        with server.connect() as client:
            self.assertEqual(client.call("PING"), b"PONG")
            for status, options in ((1, ()), (0, ("--alive",))):
                code, text = self.check_health(*options, "--port", port)
                self.assertEqual(code, status)
                self.assertRegex(text, f"port {port} answers -ERR .*clients")
        self.assertEqual(server.stop(), [])
        self.assertEqual(self.check_health("--alive", "--port", port)[0], 1)

    def test_health_check_uses_the_configured_address(self):
        port, path = free_port(), self.folder / "server.sock"
        options = ["--port", port, "--bind", "-192.0.2.1 127.0.0.2", "--unixsocket", path]
        server = self.start_server(*options, listen=False)
        answer = f"port {port} of 127.0.0.2 answers +PONG"
        self.assertEqual(self.check_health(*options), (0, answer))
        self.assertEqual(
            self.check_health("--port", 0, "--unixsocket", path), (0, f"{path} answers +PONG")
        )
        self.assertEqual(server.stop(), [])

    def test_rotated_log_is_reopened(self):
        log, port = self.folder / "server.log", free_port()
        process = subprocess.Popen(
            [SERVER, "--dir", self.folder, "--port", str(port), "--bind", "127.0.0.1",
             "--logfile", log.name])  # fmt: skip
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: log.exists() and "Ready to accept connections" in log.read_text())
        log.rename(self.folder / "server.log.1")

        def is_recreated():
            client.call("BGSAVE")
            return log.exists()

        with Connection(port) as client:
            wait_until(is_recreated, what="a new log file")
        process.terminate()
        self.assertEqual(process.wait(DEADLINE_S), 0)
        self.assertIn("bye bye", log.read_text())


if __name__ == "__main__":
    unittest.main()
