#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests scripts/docker-healthcheck.sh. The script finds the server among the processes of the
container, and queries the port that the server's options and configuration file name. In these
tests a PID namespace takes the place of the container."""

import os
import pathlib
import subprocess
import unittest

from harness import DEADLINE_S, ROOT, SERVER, free_port, wait_until
from harness.tls import TlsTest

SCRIPT = ROOT / "scripts/docker-healthcheck.sh"


class ContainerHealthTest(TlsTest):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root may make a namespace of processes")
        self.place = pathlib.Path(self.folder.name)

    def start_container(self, *command):
        """Starts the command as process 1 of a new PID namespace."""
        process = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *map(str, command)],
            cwd=self.place, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: self.runs_command(process), "process 1 of the container")
        return self.first_process(process)

    def runs_command(self, process):
        """Returns whether process 1 of the container runs its command. Until then it runs unshare,
        and may not have mounted /proc.
        """
        first = self.first_process(process)
        return first and pathlib.Path(os.readlink(f"/proc/{first}/exe")).name != "unshare"

    @staticmethod
    def first_process(process):
        done = subprocess.run(
            ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    def health(self, container):
        done = subprocess.run(
            ["nsenter", "-t", container, "-p", "-m", SCRIPT], timeout=DEADLINE_S, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd=self.place,
            env={**os.environ, "PATH": f"{SERVER.parent}:{os.environ['PATH']}"},
        )  # fmt: skip
        return done.returncode, done.stdout.strip()

    def wait_for_health(self, container, answer):
        wait_until(
            lambda: self.health(container) == (0, answer), lambda: str(self.health(container))
        )

    def serve(self, *options):
        return (SERVER, *options, "--bind", "127.0.0.1", "--appendonly", "no", "--save", "")

    def test_port_is_that_of_the_options(self):
        port = free_port()
        container = self.start_container(*self.serve("--port", port))
        self.wait_for_health(container, f"port {port} answers +PONG")

    def test_port_is_that_of_the_file(self):
        port = free_port()
        (self.place / "own.conf").write_text(f"port {port}\n", encoding="ascii")
        container = self.start_container(*self.serve("own.conf"))
        self.wait_for_health(container, f"port {port} answers +PONG")

    def test_tls_port_is_asked_where_there_is_no_other(self):
        port = free_port()
        container = self.start_container(*self.serve(
            "--port", 0, "--tls-port", port, "--tls-cert-file", self.place / "server.crt",
            "--tls-key-file", self.place / "server.key", "--tls-ca-cert-file",
            self.place / "ca.crt",
        ))  # fmt: skip
        wait_until(lambda: self.health(container)[0] == 0, lambda: str(self.health(container)))
        self.assertIn(str(port), self.health(container)[1])

    def test_server_is_found_behind_an_init(self):
        port = free_port()
        words = " ".join(f"'{word}'" for word in self.serve("--port", port))
        container = self.start_container("sh", "-c", f"{words} & wait")
        self.wait_for_health(container, f"port {port} answers +PONG")

    def test_container_without_a_server_is_ill(self):
        container = self.start_container("sleep", "600")
        status, said = self.health(container)
        self.assertEqual(status, 1)
        self.assertIn("no server", said)


if __name__ == "__main__":
    unittest.main()
