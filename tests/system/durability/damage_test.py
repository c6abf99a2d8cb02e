#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that a server reports damaged data files with the file's name and the place of the damage,
and never loads wrong data.

Environment:
  BLOOMERY_DAMAGE_TAILS  number of append logs that are truncated or end in garbage
  BLOOMERY_DAMAGE_FLIPS  number of files in which one bit is flipped
"""

import contextlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from harness import SANITIZED, SERVER, SLOW, ServerTest, free_port, seed_from_environment
from harness.counts import count
from harness.resp import Connection
from harness.write_load import Writer

TAILS = count("DAMAGE_TAILS")
FLIPS = count("DAMAGE_FLIPS")
CUT_BYTES = 300
PLACE = re.compile(r"offset \d+|line \d+")
LOG = "appendonlydir"
OPTIONS = ["--save", "", "--enable-debug-command", "yes", "--io-threads", "1"]


class Outcome:
    """The result of one start of a server: the digest of the loaded data, or a log that says why
    the start failed.
    """

    def __init__(self, directory, *options):
        port = free_port()
        command = [SERVER, "--dir", directory, "--port", port, "--bind", "127.0.0.1"]
        began = time.monotonic()
        self.digest = None
        with subprocess.Popen(
            [str(word) for word in [*command, *OPTIONS, *options]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process, contextlib.ExitStack() as stack:
            stack.callback(process.kill)
            lines = []
            for line in process.stdout:
                lines.append(line.decode(errors="replace"))
                if b"Ready to accept connections" in line:
                    self.start_s = time.monotonic() - began
                    with Connection(port) as connection:
                        self.digest = connection.call("DEBUG", "DIGEST").decode()
                    process.kill()
            self.exit_code = process.wait()
        self.log = "".join(lines)
        if self.digest is not None:
            self.exit_code = 0


class DamageTest(ServerTest):
    """All tests damage copies of the same files: a snapshot, and an append log with a base file and
    an incremental file.
    """

    @classmethod
    def setUpClass(cls):
        cls.seed = seed_from_environment()
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-damage-"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root, ignore_errors=True)

    def setUp(self):
        self.rng = random.Random(f"{self.seed}/{self.id()}")
        self.sound = self.root / "sound"
        if not self.sound.exists():
            self.make_files()

    def make_files(self):
        self.sound.mkdir()
        options = ["--appendonly", "yes", "--appendfsync", "always", "--bf-initial-size", "50"]
        server = self.start_server(
            *options, "--enable-debug-command", "yes", directory=self.sound
        )
        writer = Writer("d", self.seed)
        with server.connect() as connection:
            for _ in range(40):
                writer.send_pipeline(connection)
            connection.call("SET", "text", "lorem ipsum " * 300)
            connection.call("SET", "expires", "soon", "PXAT", 4102444800000)
            connection.call("BGREWRITEAOF")
            server.wait_for_log("rewriting finished successfully")
            connection.call("SAVE")
            type(self).saved_digest = connection.call("DEBUG", "DIGEST").decode()
            for _ in range(20):
                writer.send_pipeline(connection)
            (incremental,) = (self.sound / LOG).glob("*.incr.aof")
            # After each command, records the length of the incremental file and the digest of the
            # data.
            digests = type(self).digests = []
            for _ in range(40):
                writer.longest_pipeline = 1
                writer.send_pipeline(connection)
                size = incremental.stat().st_size
                digests.append((size, connection.call("DEBUG", "DIGEST").decode()))
        server.crash()

    def copy(self):
        target = self.root / "copy"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.sound, target)
        return target

    def expected_digests(self, size):
        """Returns the digests that are valid if the log file is cut to `size` bytes. One is the
        digest after the last complete record. The other is the digest after the next record,
        because the cut may have removed only an annotation line and not the command.
        """
        count = sum(at <= size for at, _ in self.digests)
        return {digest for _, digest in self.digests[max(0, count - 1) : count + 1]}

    def check_torn(self, damage, size):
        directory = self.copy()
        (incremental,) = (directory / LOG).glob("*.incr.aof")
        damage(incremental)
        outcome = Outcome(directory, "--appendonly", "yes")
        self.assertIn(outcome.digest, self.expected_digests(size), outcome.log)
        # The first start has cut off the torn bytes, so the next start reports no damage.
        again = Outcome(directory, "--appendonly", "yes")
        self.assertEqual(again.digest, outcome.digest, again.log)
        self.assertNotIn("is torn", again.log)
        return outcome

    def test_cut_tails(self):
        whole = self.digests[-1][0]
        count = min(CUT_BYTES, TAILS // 2)
        for cut in sorted(self.rng.sample(range(1, CUT_BYTES + 1), count)):
            with self.subTest(cut=cut):
                self.check_torn(lambda path, c=cut: os.truncate(path, whole - c), whole - cut)

    def test_garbage_at_the_end(self):
        whole = self.digests[-1][0]
        for _ in range(TAILS // 2):
            size = self.rng.randint(1, 8192)
            is_zero = self.rng.random() < 0.5
            garbage = bytes(size) if is_zero else self.rng.randbytes(size)

            def append(path, bytes_=garbage):
                with open(path, "ab") as file:
                    file.write(bytes_)

            with self.subTest(size=size, is_zero=is_zero):
                outcome = self.check_torn(append, whole)
                # Every loader skips lines that begin with #. If the garbage begins with a complete
                # line of this kind, the server keeps that line and cuts off only the rest of the
                # garbage.
                cut = r"\d+" if garbage.startswith(b"#") else size
                self.assertRegex(outcome.log, rf"is torn: .* last {cut} bytes .*cut off")

    def flip(self, path):
        data = bytearray(path.read_bytes())
        bit = self.rng.randrange(len(data) * 8)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        return bit

    def check_flips(self, pattern, count, digest, *options):
        refused = 0
        for _ in range(count):
            directory = self.copy()
            (path,) = directory.glob(pattern)
            bit = self.flip(path)
            outcome = Outcome(directory, *options)
            with self.subTest(file=path.name, bit=bit):
                if outcome.digest is None:
                    refused += 1
                    self.assertEqual(outcome.exit_code, 1, outcome.log)
                    reason = outcome.log[outcome.log.index("Can't load the data") :]
                    self.assertIn(path.name, reason)
                    self.assertRegex(reason, PLACE)
                else:
                    self.assertEqual(outcome.digest, digest, outcome.log)
        print(f"{pattern}: {count} flipped bits, {refused} refused, the others load the same data")
        return refused

    def test_flipped_bits_of_the_manifest(self):
        count = FLIPS // 4
        refused = self.check_flips(
            f"{LOG}/*.manifest", count, self.digests[-1][1], "--appendonly", "yes"
        )
        self.assertGreater(refused, count // 2)

    def test_flipped_bits_of_the_base(self):
        count = FLIPS // 4
        refused = self.check_flips(
            f"{LOG}/*.base.rdb", count, self.digests[-1][1], "--appendonly", "yes"
        )
        self.assertEqual(refused, count)

    def test_flipped_bits_of_the_incremental_file(self):
        count = FLIPS // 4
        refused = self.check_flips(
            f"{LOG}/*.incr.aof", count, self.digests[-1][1], "--appendonly", "yes"
        )
        self.assertGreater(refused, count // 2)

    def test_flipped_bits_of_the_snapshot(self):
        count = FLIPS // 4
        refused = self.check_flips("dump.rdb", count, self.saved_digest, "--appendonly", "no")
        self.assertEqual(refused, count)

    def test_a_start_is_quick(self):
        times = sorted(
            Outcome(self.copy(), "--appendonly", "yes").start_s for _ in range(9)
        )
        print(f"a start takes {times[4] * 1000:.1f} ms (median of 9)", flush=True)
        self.assertLess(times[4], (5 if SANITIZED else 1) * SLOW)


if __name__ == "__main__":
    unittest.main()
