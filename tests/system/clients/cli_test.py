#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests redis-cli and redis-benchmark. Users run these tools every day, and the tools stop at the
first unexpected reply."""

import fcntl
import itertools
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import unittest

from harness import SANITIZED, ServerTest, wait_until
from harness.resp import encode

TROUBLE = r"(?i)error|warning|could not|unknown"
# Divisor of the number of requests: a server built with sanitizers gets a twentieth of them.
SHARE = 20 if SANITIZED else 1


class Terminal:
    """Runs a program on a pseudo-terminal, as a user would. `shown` holds the output so far."""

    def __init__(self, command):
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            # If the terminal has no size, redis-cli sends it a query and waits for the answer.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
            # redis-cli must not use the history and settings of the user who runs the tests.
            environment = {**os.environ, "TERM": "xterm", "REDISCLI_HISTFILE": "/dev/null",
                           "REDISCLI_RCFILE": "/dev/null"}  # fmt: skip
            os.execvpe(command[0], [str(word) for word in command], environment)
        self.shown = b""

    def type(self, keys):
        os.write(self.descriptor, keys)

    def wait_for(self, text):
        def is_shown():
            if select.select([self.descriptor], [], [], 0)[0]:
                self.shown += os.read(self.descriptor, 4096)
            return text in self.shown

        wait_until(is_shown, lambda: f"{text!r} in {self.shown!r}")

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.descriptor)


class CliTest(ServerTest):
    def setUp(self):
        self.server = self.start_server()

    def cli(self, *arguments, **options):
        return self.run_client(["redis-cli", "-p", self.server.port, *arguments], **options)

    def test_one_command(self):
        self.assertEqual(self.cli("SET", "k", "v"), "OK\n")
        self.assertEqual(self.cli("GET", "k"), "v\n")
        self.assertEqual(self.cli("--no-raw", "BF.ADD", "f", "a"), "(integer) 1\n")
        self.assertEqual(self.cli("-3", "--no-raw", "BF.EXISTS", "f", "a"), "(true)\n")
        self.assertEqual(self.cli("-x", "SET", "k", stdin=b"from stdin"), "OK\n")
        self.assertEqual(self.cli("GET", "k"), "from stdin\n")

    def test_hints_while_typing(self):
        """redis-cli reads the hints from COMMAND DOCS, because it does not know BF.* itself."""
        terminal = Terminal(["redis-cli", "-p", self.server.port])
        self.addCleanup(terminal.close)
        terminal.wait_for(b"> ")
        terminal.type(b"bf.reserve ")
        terminal.wait_for(b"key error_rate capacity [EXPANSION expansion] [NONSCALING]")
        terminal.type(b"f 0.01 ")
        terminal.wait_for(b"\x1b[0;90;49mcapacity [EXPANSION expansion] [NONSCALING]")
        terminal.type(b"1000\r")
        # redis-cli shows no hints for characters that are typed before the prompt appears.
        terminal.wait_for(f"OK\r\n127.0.0.1:{self.server.port}> ".encode())
        terminal.type(b"bf.mexists ")
        terminal.wait_for(b"key item [item ...]")

    def test_pipe_loads_many_commands(self):
        count = 100_000 // SHARE
        data = b"".join(encode("SET", f"key:{number}", number) for number in range(count))
        said = self.cli("--pipe", stdin=data)
        self.assertIn(f"errors: 0, replies: {count}", said)
        # redis-cli --pipe sends its input unchanged, so the commands may also be inline commands.
        data = b"".join(b"INCR n\r\n" for _ in range(count))
        self.assertIn(f"errors: 0, replies: {count}", self.cli("--pipe", stdin=data))
        self.assertEqual(self.cli("GET", "n"), f"{count}\n")
        self.assertEqual(self.cli("DBSIZE"), f"{count + 1}\n")

    def test_bigkeys_and_scan(self):
        self.cli("SET", "small", "x")
        self.cli("SETBIT", "big", "80000", "1")
        self.cli("BF.ADD", "f", "a")
        said = self.cli("--bigkeys")
        self.assertRegex(said, r'Biggest string found .*"big".* has 10001 bytes')
        self.assertNotRegex(said, TROUBLE)
        self.assertEqual(set(self.cli("--scan").split()), {"small", "big", "f"})
        said = self.cli("--memkeys")
        self.assertRegex(said, r'Biggest string found .*"big".* has \d{5} bytes')
        self.assertRegex(said, r"1 MBbloom--s with \d+ bytes")
        self.assertNotRegex(said, TROUBLE)

    def test_stat_shows_what_info_says(self):
        self.cli("SET", "k", "v")
        # `redis-cli --stat` runs until it is killed. stdbuf makes it flush each line, because the
        # kill would discard buffered output.
        with subprocess.Popen(
            ["timeout", "20", "stdbuf", "-oL",
             "redis-cli", "-p", str(self.server.port), "--stat", "-i", "0.2"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ) as stat:  # fmt: skip
            lines = list(itertools.islice(stat.stdout, 6))
            stat.terminate()
        self.assertEqual(len(lines), 6, lines)
        self.assertIn("keys", lines[1])
        self.assertEqual(lines[2].split()[0], "1", lines)

    def test_latency(self):
        """If its output is not a terminal, redis-cli --latency sends PINGs for a second. It then
        prints the minimum, maximum and mean latency and the number of PINGs.
        """
        least, most, mean, count = map(float, self.cli("--latency").split())
        self.assertLessEqual(least, mean)
        self.assertLessEqual(mean, most)
        self.assertGreater(count, 5)
        self.assertNotRegex(self.cli("--latency", "--raw"), TROUBLE)

    def test_hotkeys(self):
        self.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
        self.cli("SET", "cold", "1")
        for _ in range(50):
            self.cli("SET", "hot", "1")
        said = self.cli("--hotkeys")
        self.assertRegex(said, r"hot key found with counter: \d+\s+keyname: \"?hot\"?")
        self.assertNotRegex(said, TROUBLE)

    def benchmark(self, *arguments):
        said = self.run_client(
            ["redis-benchmark", "-p", self.server.port, "-q", *arguments], timeout_s=240
        )
        self.assertNotRegex(said, TROUBLE)
        self.assertIn("requests per second", said)
        return said

    def test_benchmark_of_strings(self):
        said = self.benchmark(
            "-n", 100_000 // SHARE, "-P", 350, "-t", "ping,set,get,incr,mset"
        )
        for name in ("PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"):
            self.assertIn(f"{name}: ", said)

    def test_benchmark_of_filters(self):
        count = 1_000_000 // SHARE
        self.benchmark("-r", 100_000_000, "-n", count, "-P", 16, "BF.ADD", "f", "item:__rand_int__")
        # BF.CARD is less than the number of requests. Half a percent of the random numbers occur
        # twice, and up to 1 % of the items are false positives.
        added = int(self.cli("BF.CARD", "f"))
        self.assertGreater(added, count * 0.97)
        self.assertLessEqual(added, count)


if __name__ == "__main__":
    unittest.main()
