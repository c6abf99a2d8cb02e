# SPDX-License-Identifier: MIT
"""A server process: its start, its log, its signals, and the checks when it ends.

The server runs in a temporary directory on a free port of 127.0.0.1. When it is stopped (SIGTERM)
it must exit with 0. Its log must have no sanitizer report, and no warning (level mark `#`) that the
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


# A log line is `PID:role date time level text`. Only the level `#` means a warning or an error.
WARNING_LINE = re.compile(r"^\d+:[A-Z] \d+ \w+ \d+ [\d:.]+ # (.*)$")
SANITIZER_LINE = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:")
# A healthy server logs HARMLESS_WARNINGS. Most of them are about settings of the machine, which the
# tests must not change. Every redis-server also logs REDIS_WARNINGS, when it starts or ends.
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
    """Sends SIGSTOP, and returns when all threads of the process have stopped. On a busy machine a
    thread stops with a delay, and may serve a request before it stops.
    """
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: _is_stopped(pid), what=f"all threads of {pid} are stopped")


def _is_stopped(pid):
    stats = pathlib.Path(f"/proc/{pid}/task").glob("*/stat")
    with contextlib.suppress(OSError):  # The read fails for a thread that has just ended.
        return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in stats)
    return False


class Process:
    """A server process that runs until stop(). `log` is the list of its log lines so far, which any
    thread may read.
    """

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
        """Without `directory` the server gets a temporary directory, which stop() removes. `setup`
        runs in the new process before the program starts. The server reads `config_file` before the
        options.
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
        # The output ends when the server has died. Then threads that wait for the server's start
        # must wake up.
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
        """Announces a warning that the test causes, so that stop() does not report it as a problem.
        """
        self.announced.append(pattern)

    def children(self):
        """Returns the process ids of the children that any thread of the server has forked."""
        found = []
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(OSError):  # The thread may have ended since iterdir().
                found += [int(child) for child in (task / "children").read_text("ascii").split()]
        return found

    def suspend_children(self):
        """Sends SIGSTOP to each child process that still saves. Returns the process ids of the
        stopped child processes.

        A child process first asks the kernel to kill it when the server dies, and then ignores
        SIGINT. A child that is stopped before it has asked would outlive the server. So the method
        waits until the child ignores SIGINT.
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
        """Sends SIGSTOP, and returns when all threads of the server have stopped."""
        suspend(self.pid)

    def resume(self):
        """Resumes the suspended server. Does nothing if the server has ended."""
        self.process.send_signal(signal.SIGCONT)

    def crash(self):
        """Kills the server by SIGKILL, as part of a test. stop() does not report this end as a
        problem.
        """
        self.expected_exit = -signal.SIGKILL
        self.process.kill()
        return self.wait_for_exit()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self):
        """Stops the server by SIGTERM. Returns the problems: a wrong exit code, and unexpected log
        lines.
        """
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
    """Returns the state of a process as ps(1) shows it: T is stopped, Z a zombie, X dead or
    missing.
    """
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
