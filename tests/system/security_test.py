#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What went wrong in servers like this one, each as a test of ours; docs/security.md maps all of
them, also those that stand elsewhere.

BLOOMERY_SECURITY_ROUNDS makes the random tests longer; BLOOMERY_SEED replays them.
"""

import os
import pathlib
import random
import re
import subprocess
import tempfile
import threading
import time
import unittest

from harness import SANITIZED, SERVER, ServerTest, seed_from_environment, wait_until
from resp import ErrorReply, encode

ROUNDS = int(os.environ.get("BLOOMERY_SECURITY_ROUNDS", "2000"))
MIB = 1 << 20
SECRET = "hunter2-the-secret"
# A pattern must not hold a thread longer; sanitizers and -O0 builds are many times slower.
GLOB_S = 5 if SANITIZED or os.environ.get("BLOOMERY_BUILD_TYPE") != "Release" else 0.1


class SecurityTest(ServerTest):
    options = ()

    def setUp(self):
        self.rng = random.Random(seed_from_environment())
        self.server = self.start_server(*self.options)
        self.client = self.server.connect()
        self.addCleanup(self.client.close)

    def call(self, *words):
        return self.client.call(*words)

    def assert_alive(self):
        self.assertEqual(self.call("PING"), b"PONG")


class RequestTest(SecurityTest):
    """Bytes that claim to be commands."""

    def test_cve_2023_41056_query_buffers_grow_and_shrink(self):
        rng = self.rng
        for _ in range(max(20, ROUNDS // 40)):
            words = [rng.randbytes(rng.choice([0, 1, 30, 1000, 16383, 16385, 32768, 70_000]))
                     for _ in range(rng.randint(1, 8))]  # fmt: skip
            big = rng.randbytes(rng.choice([1, MIB, 3 * MIB]))
            data = b"".join(encode("ECHO", word) for word in words)
            data += encode("SET", "big", big) + encode("GET", "big")
            start = 0
            while start < len(data):
                size = rng.choice([1, 7, 1000, 16384, 65536, MIB])
                self.client.send(data[start : start + size])
                start += size
            for word in words:
                self.assertEqual(self.client.read_reply()[0], word)
            self.assertEqual(self.client.read_reply()[0], b"OK")
            self.assertEqual(self.client.read_reply()[0], big)

    def test_cve_2025_67733_no_error_holds_a_line_end(self):
        """Whatever stands in a command: each gets one reply, and an error is one line."""
        rng = self.rng
        names = [info[0].decode() for info in self.call("COMMAND")]
        names = [name for name in names if name not in (
            "shutdown", "monitor", "subscribe", "psubscribe", "ssubscribe", "psync", "sync",
            "quit", "reset", "unsubscribe", "punsubscribe", "sunsubscribe", "replicaof", "slaveof",
            "wait", "waitaof", "failover", "replconf", "hello", "auth", "debug", "client", "save",
            "bgsave", "bgrewriteaof", "config", "restore", "multi", "swapdb", "flushall",
        )] + ["client|setname", "client|kill", "client|nosuch", "config|set", "config|get",
              "debug|x", "hello", "auth", "client|setinfo", "object|x", "acl|setuser"]
        pieces = [b"\r\n", b"\n", b"\r", b"-ERR x", b"+OK\r\n", b"$3\r\n", b"a", b"0", b"\x00",
                  b"\xff", b"1", b" ", b"'", b'"', b"%s"]  # fmt: skip
        for _ in range(ROUNDS):
            commands = []
            for _ in range(10):
                words = [word.encode() for word in rng.choice(names).split("|")]
                if rng.random() < 0.2:
                    words[-1] = b"".join(rng.choices(pieces, k=3))
                words += [b"".join(rng.choices(pieces, k=rng.randint(0, 5)))
                          for _ in range(rng.randint(0, 4))]  # fmt: skip
                commands.append(words)
            self.client.send(b"".join(encode(*words) for words in commands))
            for words in commands:
                value, raw = self.client.read_reply()
                if isinstance(value, ErrorReply):
                    self.assertNotRegex(value.text, r"[\r\n]", words)
                    self.assertEqual(raw.count(b"\r\n"), 1, words)
            self.assertEqual(self.call("PING", "step"), b"step")
        # By lines instead of arrays, too.
        self.client.send(b'"no\\r\\nsuch" "a\\nb"\r\n')
        self.assertRegex(self.client.read_reply()[0].text, r"^ERR unknown command 'no  such'")

    def test_cve_2022_36021_2024_31228_patterns_that_explode(self):
        """Each question under a tenth of a second, however the pattern is made."""
        name = "a" * 10_000
        self.call("SET", name, "1")
        patterns = ["a*" * 500 + "b", "*" * 100_000 + "b", "?" * 1_000_000, "[a-z]*" * 500 + "0",
                    "*a" * 5_000 + "b", "\\a*" * 1000 + "b", "[" + "a" * 500_000, "*?" * 50_000]
        for pattern in patterns:
            for words in (
                ["KEYS", pattern], ["SCAN", 0, "MATCH", pattern, "COUNT", 1000],
                ["CONFIG", "GET", pattern], ["PUBSUB", "CHANNELS", pattern],
                ["ACL", "SETUSER", "u", "~" + pattern], ["ACL", "DRYRUN", "u", "GET", name],
                ["COMMAND", "LIST", "FILTERBY", "PATTERN", pattern],
            ):  # fmt: skip
                self.in_time(words)
        with self.server.connect() as listener:
            for pattern in patterns:
                listener.call("PSUBSCRIBE", pattern)
            self.in_time(["PUBLISH", name, "m"])

    def in_time(self, words):
        # The best of three: the machine may be busy.
        durations = []
        for _ in range(3):
            start_s = time.monotonic()
            self.call(*words)
            durations.append(time.monotonic() - start_s)
            if durations[-1] < GLOB_S:
                return
        self.fail(f"{[str(word)[:30] for word in words]} took {min(durations):.3f} s")

    def test_tls_bytes_on_the_plain_port(self):
        """A TLS greeting is an error of the protocol, or nothing yet; nobody else notices."""
        greeting = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) * 2
        for data in (greeting, greeting + b"\r\n", greeting[:5]):
            with self.server.connect() as client:
                client.send(data)
                client.send(b"\r\n")
                self.assertNotIn(b"PONG", client.socket.recv(4096))
        self.assert_alive()

    def test_cve_2026_81934_56684_23479_clients_that_are_killed(self):
        """While they pipeline, wait, listen or are in a transaction; by themselves and others."""
        stop = threading.Event()

        def live(words):
            while not stop.is_set():
                try:
                    with self.server.connect() as client:
                        while not stop.is_set():
                            client.send(b"".join(encode(*one) for one in words))
                            for _ in words:
                                client.read_reply()
                except (EOFError, OSError):
                    pass

        lives = [
            [["SET", "k", "v"]] * 50, [["MULTI"], ["SET", "k", "v"], ["GET", "k"], ["EXEC"]],
            [["WAIT", 1, 20]], [["WATCH", "k"], ["SET", "k", "v"], ["UNWATCH"]],
            [["SUBSCRIBE", "c"]], [["BF.MADD", "f", *range(200)]] * 5,
            [["CLIENT", "KILL", "SKIPME", "no", "TYPE", "pubsub"]], [["PUBLISH", "c", "m"]] * 20,
        ]  # fmt: skip
        threads = [threading.Thread(target=live, args=(words,)) for words in lives]
        for thread in threads:
            thread.start()
        killed = 0
        for number in range(200):
            kind = ["normal", "pubsub"][number % 2]
            reply = self.call("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
            killed += reply
            time.sleep(0.002)
        stop.set()
        self.call("CLIENT", "KILL", "TYPE", "normal")
        self.call("CLIENT", "KILL", "TYPE", "pubsub")
        for thread in threads:
            thread.join(30)
        self.assertGreater(killed, 100)
        own = self.call("CLIENT", "ID")
        self.assertEqual(self.call("CLIENT", "KILL", "ID", own, "SKIPME", "no"), 1)
        self.assertTrue(self.client.is_closed_by_server())
        with self.server.connect() as client:
            self.assertEqual(client.call("PING"), b"PONG")
            wait_until(lambda: len(client.call("CLIENT", "LIST").splitlines()) == 1)


class StrangerTest(SecurityTest):
    """Clients that have not logged in."""

    options = ("--requirepass", SECRET)

    def setUp(self):
        super().setUp()
        self.assertEqual(self.call("AUTH", SECRET), b"OK")

    def test_cve_2021_32675_little_memory_before_a_login(self):
        """noauth-mbulk-11, noauth-bulk-16385, and many who announce much and send little."""
        for data, error in (
            (b"*11\r\n", b"-ERR Protocol error: unauthenticated multibulk length\r\n"),
            (b"*1\r\n$16385\r\n", b"-ERR Protocol error: unauthenticated bulk length\r\n"),
        ):
            with self.server.connect() as client:
                client.send(data)
                self.assertEqual(client.read_to_end(), error)
        before = self.server.resident_bytes()
        strangers = []
        for number in range(500):
            stranger = self.server.connect()
            self.addCleanup(stranger.close)
            begins = [b"*10\r\n$16384\r\nx", b"*10\r\n$1\r\nx\r\n$16384\r\n"]
            stranger.send(begins[number % 2])
            strangers.append(stranger)
        self.assert_alive()
        self.assertLess(self.server.resident_bytes() - before, (200 if SANITIZED else 20) * MIB)

    def test_secrets_are_shown_nowhere(self):
        """By MONITOR, SLOWLOG, INFO, CLIENT LIST, CONFIG GET of others, COMMAND, or the log."""
        with self.server.connect() as monitor, self.server.connect() as client:
            monitor.call("AUTH", SECRET)
            watches = monitor.call("MONITOR") == b"OK"
            client.call("AUTH", SECRET)
            client.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
            for words in (
                ["AUTH", SECRET], ["AUTH", "default", SECRET], ["AUTH", "x", SECRET],
                ["HELLO", "3", "AUTH", "default", SECRET], ["HELLO", "3", "AUTH", "x", SECRET],
                ["HELLO", "2"], ["CONFIG", "SET", "requirepass", SECRET],
                ["CONFIG", "SET", "masterauth", SECRET], ["config", "set", "masteruser", SECRET],
                ["CONFIG", "SET", "hz", "10", "masterauth", SECRET],
                ["CONFIG", "SET", "requirepass", SECRET, "nosuch", "1"],
                ["ACL", "SETUSER", "u", ">" + SECRET], ["MULTI"], ["AUTH", SECRET], ["EXEC"],
                ["MIGRATE", "h", "1", "k", "0", "1", "AUTH", SECRET],
            ):  # fmt: skip
                client.call(*words)
            for words in (
                ["SLOWLOG", "GET", "128"], ["INFO", "everything"], ["CLIENT", "LIST"],
                ["CLIENT", "INFO"], ["MEMORY", "STATS"], ["LATENCY", "LATEST"], ["ACL", "LIST"],
                ["ACL", "GETUSER", "u"], ["ACL", "LOG"], ["COMMAND", "GETKEYS", "GET", "k"],
            ):  # fmt: skip
                self.assertNotIn(SECRET.encode(), client.call_raw(*words), words)
            if watches:
                seen = b""
                client.call("ECHO", "the-end")
                while b"the-end" not in seen:
                    seen += monitor.socket.recv(65536)
                self.assertNotIn(SECRET.encode(), seen)
            else:
                self.fail("MONITOR is not here")
        self.assertNotIn(SECRET, "\n".join(self.server.log))


class ProgramTest(unittest.TestCase):
    """What the program refuses before it serves."""

    def setUp(self):
        self.rng = random.Random(seed_from_environment())

    def test_a_snapshots_name_stays_in_the_directory(self):
        done = subprocess.run(
            [SERVER, "--dbfilename", "../x.rdb", "--port", "0"], capture_output=True, check=False,
            timeout=60,
        )  # fmt: skip
        self.assertEqual(done.returncode, 1)

    def test_cve_2025_27151_names_given_to_the_check_tools(self):
        """Long names, odd bytes, and files that are none."""
        with tempfile.TemporaryDirectory() as directory:
            odd = pathlib.Path(directory) / "x"
            for path in ("/" + "a/" * 3000 + "x", "a" * 255, "a" * 5000, "\x1b[31m", "%s%n", ""):
                for option in ("--check-rdb", "--check-aof"):
                    self.judge(option, path)
            for _ in range(max(10, ROUNDS // 100)):
                odd.write_bytes(b"REDIS0010" + self.rng.randbytes(self.rng.randrange(300)))
                self.judge("--check-rdb", odd)
                odd.write_bytes(b"file " + self.rng.randbytes(self.rng.randrange(300)))
                self.judge("--check-aof", odd)

    def judge(self, option, path):
        done = subprocess.run([SERVER, option, path], capture_output=True, check=False, timeout=60)
        self.assertIn(done.returncode, (0, 1), (option, path, done.stderr))
        self.assertNotRegex(done.stdout + done.stderr, re.compile(rb"[\x00\x1b]"))


if __name__ == "__main__":
    unittest.main()
