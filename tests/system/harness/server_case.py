# SPDX-License-Identifier: MIT
"""ServerTest: a test case that starts servers. When the test ends, it stops and checks them."""

import os
import pathlib
import shutil
import subprocess
import unittest

from harness.ports import free_port_with_bus
from harness.process import Process
from harness.settings import SERVER

# Options for full syncs without a delay. By default a leader waits five seconds for more replicas
# before it starts a snapshot.
AT_ONCE = ("--repl-diskless-sync-delay", "0")


class ServerTest(unittest.TestCase):
    """A test case that owns servers; each is stopped and checked when the test ends."""

    maxDiff = 4000

    def skipTest(self, reason):
        """Prints the line by which scripts/test_report.py counts a test as skipped."""
        print(f"\nSKIPPED {self.id()}: {reason}", flush=True)
        super().skipTest(reason)

    def start_server(self, *options, prefix=(), listen=True, **more):
        """Starts the program under test and waits until it is ready."""
        return self._start(SERVER, self._defaults(options), prefix, listen, more)

    def serve_directory(self, directory, *options):
        """Starts the program under test on the data directory. Returns the server and a connection,
        which is closed when the test ends.
        """
        server = self.start_server("--dir", directory, *options)
        connection = server.connect()
        self.addCleanup(connection.close)
        return server, connection

    def start_redis(self, *options, **more):
        """Starts Debian's redis-server, for comparison with our server."""
        program = shutil.which("redis-server")
        self.assertIsNotNone(program, "redis-server is missing: run scripts/install_deps.sh test")
        if "--cluster-enabled" in options:
            more.setdefault("port", free_port_with_bus())
        options = [*AT_ONCE, *options, "--save", "", "--appendonly", "no"]
        return self._start(program, options, (), True, more)

    def _defaults(self, options):
        # Persistence is off by default, because few tests are about it.
        return ["--appendonly", "no", "--save", "", *AT_ONCE, *options]

    def _start(self, program, options, prefix, listen, more):
        if not pathlib.Path(program).exists():
            self.fail(f"{program} is missing: build it first (scripts/run.sh)")
        server = Process(program, options, prefix=prefix, listen=listen, **more)
        server.wait_until_ready()
        self.addCleanup(self._stop, server)
        return server

    def _stop(self, server):
        problems = server.stop()
        self.assertFalse(problems, "\n".join(map(str, problems)))

    def run_client(self, command, *, timeout_s=300, environment=None, stdin=None):
        """Runs a client program; its exit code must be 0. Returns its output."""
        done = subprocess.run(
            [str(word) for word in command],
            timeout=timeout_s,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            check=False,
        )
        output = done.stdout.decode(errors="replace")
        self.assertEqual(done.returncode, 0, f"{command} said:\n{output}")
        return output
