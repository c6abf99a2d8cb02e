# SPDX-License-Identifier: MIT
"""Starts servers for the system tests and checks how they end.

A test case derives from ServerTest. Each server runs in a temporary directory on a free port of
127.0.0.1. When it is stopped (SIGTERM) it must exit with 0, and its log must hold no warning
(level mark `#`) and no sanitizer report that the test did not announce with expect_log().

Environment:
  BLOOMERY_SERVER  the program under test (default build/release/bloomery-server)
  BLOOMERY_SEED    seed of the random tests, to replay a run
  BLOOMERY_TEST_LIMIT_S  seconds until the test is ended: shortly before, it tells where it stands
"""

import collections
import contextlib
import faulthandler
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from resp import Connection

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER = pathlib.Path(
    os.environ.get("BLOOMERY_SERVER", ROOT / "build" / "release" / "bloomery-server")
).absolute()
# The same tests may run against a Redis, to tell a wrong test from a wrong server.
SERVER_IS_REDIS = SERVER.name.startswith("redis")
# A sanitizer's quarantine and shadow count as the server's memory, and it is many times slower.
SANITIZED = "BLOOMERY_SANITIZED" in os.environ
if limit_s := os.environ.get("BLOOMERY_TEST_LIMIT_S"):
    faulthandler.dump_traceback_later(int(limit_s) - 10)
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60

# A line is `PID:role date time level text`; only `#` is a warning or worse.
WARNING_LINE = re.compile(r"^\d+:[A-Z] \d+ \w+ \d+ [\d:.]+ # (.*)$")
SANITIZER_LINE = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:")
# Said by a healthy start on a machine whose settings are not ours to change, or by every Redis
# when it starts or ends.
HARMLESS_WARNINGS = [
    r"overcommit_memory",
    r"TCP backlog setting",
    r"Transparent Huge Pages",
    r"open files",
    # A test may end while a rewrite that the server began by itself goes on.
    r"There is a child saving. Killing it!",
]
REDIS_WARNINGS = [
    r"oO0OoO0OoO0Oo Redis is starting",
    r"Redis version=",
    r"Configuration loaded",
    r"User requested shutdown",
    r"is now ready to exit",
    r"Warning: no config file",
    r"Server initialized",
    r"You requested maxclients|Unable to set the max number|Current maximum open files",
]


CLAIMS_MAX = 200  # each is a descriptor
_claims = collections.deque()


def _claim(port):
    """Whether nobody uses the port, nor has been given it by free_port(): neither this process nor
    another that still runs. A name in the abstract namespace of Unix sockets goes with its owner.
    """
    claim = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(OSError):
        claim.bind(f"\0bloomery-test-port-{port}")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            if len(_claims) == CLAIMS_MAX:
                _claims.popleft().close()
            _claims.append(claim)
            return True
    claim.close()
    return False


def free_port(offsets=(0,)):
    """A port such that nobody listens on it, with each of the offsets added. None of those that
    Linux gives to outgoing connections (32768 and up): these come and go all the time, also while
    a server that holds the port restarts."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000 - max(offsets))
        if all(_claim(port + offset) for offset in offsets):
            return port


def free_port_with_bus():
    """A port as free_port() gives, and the one where a redis-server in a cluster listens too."""
    return free_port((0, 10_000))


def seed_from_environment():
    """The seed of this run; printed, so that a failure can be replayed."""
    seed = int(os.environ.get("BLOOMERY_SEED", random.randrange(1 << 32)))
    print(f"BLOOMERY_SEED={seed}", flush=True)
    return seed


class Process:
    """A server that runs until stop(). `log` grows while it lives; thread-safe to read."""

    def __init__(
        self,
        program,
        options=(),
        *,
        port=None,
        listen=True,
        prefix=(),
        directory=None,
        setup=None,
        config_file=None,
    ):
        """`directory` is kept at the end, a temporary one is not. `setup` runs in the new process
        before the program does. A `config_file` is read before the options."""
        self.keeps_directory = directory is not None
        self.directory = str(directory or tempfile.mkdtemp(prefix="bloomery-test-"))
        self.host = "127.0.0.1"
        self.port = port or free_port()
        self.log = []
        self.expected_exit = 0
        self.announced = list(HARMLESS_WARNINGS)
        if pathlib.Path(program).name.startswith("redis"):
            self.announced += REDIS_WARNINGS
        command = [*prefix, str(program)]
        command += [str(config_file)] if config_file else []
        command += ["--dir", self.directory]
        if listen:
            command += ["--port", str(self.port), "--bind", "127.0.0.1"]
        command += [str(option) for option in options]
        self.command = command
        self.process = subprocess.Popen(
            command,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            preexec_fn=setup,
        )
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self.process.pid

    def _read_log(self):
        for line in self.process.stdout:
            self.log.append(line.rstrip("\n"))
            if "Ready to accept connections" in line:
                self._ready.set()
        # The end of the output wakes a waiter too: the server died.
        self._ready.set()

    def wait_until_ready(self):
        self._ready.wait(START_TIMEOUT_S)
        if not any("Ready to accept connections" in line for line in self.log):
            self.kill()
            self.wait_for_exit()
            self._remove_directory()
            raise AssertionError(
                f"{self.command} did not get ready; its output:\n" + "\n".join(self.log)
            )

    def wait_for_exit(self, timeout_s=STOP_TIMEOUT_S):
        code = self.process.wait(timeout_s)
        self._reader.join(timeout_s)
        self.process.stdout.close()
        return code

    def wait_for_log(self, pattern, timeout_s=10):
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if any(re.search(pattern, line) for line in self.log):
                return
            time.sleep(0.02)
        raise AssertionError(f"no log line matches {pattern!r}:\n" + "\n".join(self.log))

    def expect_log(self, pattern):
        """Announces a warning that this test provokes."""
        self.announced.append(pattern)

    def children(self):
        """The processes that it has forked; any of its threads may have."""
        found = []
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(OSError):  # a thread that has ended
                found += [int(child) for child in (task / "children").read_text("ascii").split()]
        return found

    def suspend_children(self):
        """SIGSTOP to each child that saves and has not ended; returns those that stand still.

        A child stopped in its first instants would outlive the server: it has not yet bound its
        life to the server's. It ignores SIGINT right after it has.
        """
        stopped = []
        for child in self.children():
            wait_until(
                lambda pid=child: process_state(pid) in "ZX" or ignores_interrupts(pid),
                what=f"child {child} is bound to the life of its parent",
            )
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGSTOP)
            wait_until(lambda pid=child: process_state(pid) in "TZX", what=f"{child} is stopped")
            stopped += [child] if process_state(child) == "T" else []
        return stopped

    def _remove_directory(self):
        if not self.keeps_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def suspend(self):
        """SIGSTOP; returns when no thread of it runs, which may take until each was scheduled."""
        self.process.send_signal(signal.SIGSTOP)
        wait_until(self._is_stopped, what="all threads are stopped")

    def _is_stopped(self):
        stats = pathlib.Path(f"/proc/{self.pid}/task").glob("*/stat")
        with contextlib.suppress(OSError):  # a thread has just ended
            return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in stats)
        return False

    def resume(self):
        """Lets a suspended process go on; one that has ended is left alone."""
        self.process.send_signal(signal.SIGCONT)

    def crash(self):
        """SIGKILL, as part of a test: stop() then finds nothing wrong with it."""
        self.expected_exit = -signal.SIGKILL
        self.process.kill()
        return self.wait_for_exit()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self):
        """SIGTERM; returns what was wrong with the end or the log, an empty list if nothing."""
        problems = []
        try:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
            code = self.wait_for_exit()
            if code != self.expected_exit:
                problems.append(f"exit code {code} instead of {self.expected_exit} at the end")
        except subprocess.TimeoutExpired:
            self.kill()
            problems.append(f"still running {STOP_TIMEOUT_S} s after SIGTERM")
        problems += self.unexpected_lines()
        if problems:
            problems += ["last log lines:"] + self.log[-30:]
        self._remove_directory()
        return problems

    def unexpected_lines(self):
        found = []
        for line in self.log:
            if SANITIZER_LINE.search(line):
                found.append("sanitizer report: " + line)
            match = WARNING_LINE.match(line)
            if match and not any(re.search(known, line) for known in self.announced):
                found.append("unannounced warning: " + line)
        return found

    def connect(self, **options):
        return Connection(self.port, host=self.host, **options)

    def resident_bytes(self):
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class ServerTest(unittest.TestCase):
    """A test case that owns servers; each is stopped and checked when the test ends."""

    maxDiff = 4000

    def skipTest(self, reason):
        """Told in a line that scripts/count_tests.py looks for: a skipped test has not passed."""
        print(f"\nSKIPPED {self.id()}: {reason}", flush=True)
        super().skipTest(reason)

    def start_server(self, *options, prefix=(), listen=True, **more):
        """Starts the program under test and waits until it is ready."""
        return self._start(SERVER, self._defaults(options), prefix, listen, more)

    def start_redis(self, *options):
        """Starts Debian's redis-server, the oracle."""
        program = shutil.which("redis-server")
        self.assertIsNotNone(program, "redis-server is missing: run scripts/install_deps.sh test")
        more = {"port": free_port_with_bus()} if "--cluster-enabled" in options else {}
        return self._start(program, [*options, "--save", "", "--appendonly", "no"], (), True, more)

    def _defaults(self, options):
        # Nothing of these tests is about persistence: keep the disk out of them.
        return ["--appendonly", "no", "--save", "", *options]

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


def process_state(pid):
    """As ps(1) tells it: T is stopped, Z a zombie, and X here also one that is gone."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return "X"
    return stat.rpartition(")")[2].split()[0]


def ignores_interrupts(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    ignored = int(re.search(r"^SigIgn:\s*(\w+)$", status, re.MULTILINE)[1], 16)
    return bool(ignored >> (signal.SIGINT - 1) & 1)


def wait_until_loaded(connection):
    wait_until(lambda: connection.call("PING") == b"PONG", 60, "loading")


def wait_until(condition, timeout_s=10, what="condition"):
    """Polls until condition() is true. `what` may be a function that tells it at the end."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            told = what() if callable(what) else what
            raise AssertionError(f"{told} did not come true within {timeout_s} s")
        time.sleep(0.02)
