# SPDX-License-Identifier: MIT
"""A server process: its start, its log, its signals, and the checks when it ends.

The server runs in a temporary directory on a free port of 127.0.0.1. When it is stopped (SIGTERM)
it must exit with 0. Its log must hold no warning (level mark `#`) and no sanitizer report that the
test did not announce with expect_log().
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading

from harness.ports import free_port
from harness.resp import Connection
from harness.waiting import DEADLINE_S, wait_until


# A line is `PID:role date time level text`; only `#` is a warning or worse.
WARNING_LINE = re.compile(r"^\d+:[A-Z] \d+ \w+ \d+ [\d:.]+ # (.*)$")
SANITIZER_LINE = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:")
# A healthy server logs these warnings. Some are about settings of the machine that the tests must
# not change. Every Redis logs the others when it starts or ends.
HARMLESS_WARNINGS = [
    r"overcommit_memory",
    r"TCP backlog setting",
    r"Transparent Huge Pages",
    r"open files",
    # The server logs this warning if a test ends while a rewrite still runs.
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


def suspend(pid):
    """Sends SIGSTOP; returns when no thread of the process runs. On a busy machine a thread still
    runs until it was scheduled, and may serve a request.
    """
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: _is_stopped(pid), what=f"all threads of {pid} are stopped")


def _is_stopped(pid):
    stats = pathlib.Path(f"/proc/{pid}/task").glob("*/stat")
    with contextlib.suppress(OSError):  # A thread of the process may have just ended.
        return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in stats)
    return False


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
        """A given `directory` is not removed at the end, a temporary one is. `setup` runs in the
        new process before the program does. A `config_file` is read before the options.
        """
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
        # At the end of its output the server has died, so waiters wake up too.
        self._ready.set()

    def wait_until_ready_or_ended(self):
        self._ready.wait(DEADLINE_S)

    def wait_until_ready(self):
        self.wait_until_ready_or_ended()
        if not any("Ready to accept connections" in line for line in self.log):
            self.kill()
            self.wait_for_exit()
            self._remove_directory()
            raise AssertionError(
                f"{self.command} did not get ready; its output:\n" + "\n".join(self.log)
            )

    def wait_for_exit(self, timeout_s=DEADLINE_S):
        code = self.process.wait(timeout_s)
        self._reader.join(timeout_s)
        self.process.stdout.close()
        return code

    def wait_for_log(self, pattern):
        wait_until(
            lambda: any(re.search(pattern, line) for line in self.log),
            lambda: f"a log line that matches {pattern!r}, in\n" + "\n".join(self.log) + "\n",
        )

    def expect_log(self, pattern):
        """Announces a warning that this test causes."""
        self.announced.append(pattern)

    def children(self):
        """Returns the child processes that any of its threads has forked."""
        found = []
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(OSError):  # The thread may have ended meanwhile.
                found += [int(child) for child in (task / "children").read_text("ascii").split()]
        return found

    def suspend_children(self):
        """Sends SIGSTOP to each child that still saves; returns the stopped children.

        A child asks the kernel to kill it when the server dies, and then ignores SIGINT. A child
        that is stopped before that would outlive the server.
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
        """Sends SIGSTOP; returns when no thread of the server runs."""
        suspend(self.pid)

    def resume(self):
        """Resumes a suspended process; ignores one that has ended."""
        self.process.send_signal(signal.SIGCONT)

    def crash(self):
        """Sends SIGKILL as part of a test: stop() then reports no problem."""
        self.expected_exit = -signal.SIGKILL
        self.process.kill()
        return self.wait_for_exit()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self):
        """Sends SIGTERM. Returns the problems of the exit and those found in the log."""
        problems = []
        try:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
            code = self.wait_for_exit()
            if code != self.expected_exit:
                problems.append(f"exit code {code} instead of {self.expected_exit} at the end")
        except subprocess.TimeoutExpired:
            self.kill()
            problems.append(f"still running {DEADLINE_S} s after SIGTERM")
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


def process_state(pid):
    """Returns the state as ps(1) shows it: T is stopped, Z a zombie, X also a missing process."""
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
