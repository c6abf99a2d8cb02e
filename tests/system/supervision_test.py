# SPDX-License-Identifier: MIT
"""What service managers and containers ask of a server: readiness, signs of life, health."""

import os
import pathlib
import socket
import subprocess
import tempfile
import unittest

from harness import SERVER, ServerTest


class SupervisionTest(ServerTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check_health(self, *options):
        """The exit code and what it said."""
        done = subprocess.run(
            [SERVER, "--health-check", *map(str, options)],
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.strip()

    def manager(self):
        """A socket that hears what a service manager would."""
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(str(self.folder / "notify"))
        manager.settimeout(30)
        return manager

    def start_supervised(self, mode, **variables):
        os.environ.update(variables)
        try:
            return self.start_server("--supervised", mode)
        finally:
            for name in variables:
                del os.environ[name]

    def test_service_manager_hears_of_start_life_and_end(self):
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
            self.assertTrue(heard[-1].startswith("STOPPING=1\n"), heard[-1])
            manager.close()
            (self.folder / "notify").unlink()

    def test_health_of_a_server_that_serves(self):
        server = self.start_server("--requirepass", "secret")
        port = server.port
        code, text = self.check_health("--port", port)
        self.assertEqual((code, text), (0, f"port {port} answers -NOAUTH Authentication required."))
        # A configuration that is the server's own serves as well.
        config = self.folder / "server.conf"
        config.write_text(f"port {port}\nrequirepass secret\n", encoding="ascii")
        self.assertEqual(self.check_health(config)[0], 0)
        self.assertEqual(server.stop(), [])
        code, text = self.check_health("--port", port)
        self.assertEqual((code, text), (1, f"port {port}: Connection refused"))


if __name__ == "__main__":
    unittest.main()
