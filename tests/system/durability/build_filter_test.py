#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests bloomery-server --build-filter. A server loads the built file, and the filter is compared
with one that the server made.
"""

import contextlib
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import unittest

from harness import DEADLINE_S, SERVER, ServerTest, wait_until
from harness.disks import Tmpfs, why_no_mounts

LAYOUTS = ("native", "native-2", "redisbloom", "valkey-bloom", "fingerprints", "regions")
SPOOL = re.compile(r"bloomery-.*\.items\.tmp \(deleted\)$")


class Builder:
    """Mixin for tests that build filters in a directory of their own."""

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-build-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.out = self.directory / "dump.rdb"

    def build(self, items, *options, out=None, code=0):
        done = subprocess.run(
            [SERVER, "--build-filter", out or self.out, *map(str, options)],
            input=items, capture_output=True, timeout=120, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, code, done.stderr.decode())
        self.assertEqual(done.stderr == b"", code == 0, done.stderr)
        return (done.stdout if code == 0 else done.stderr).decode()

    def names(self):
        return sorted(os.listdir(self.directory))


class ProgramTest(Builder, unittest.TestCase):
    def test_refusals_are_one_line_and_leave_nothing(self):
        for items, options, reason in (
            (b"", (), "no items"),
            (b"abc", ("--records", "length32"), "byte 0 is cut off"),
            (b"\xff\xff\xff\xff", ("--records", "length32"), "claims 4294967295 bytes"),
            (b"a\n", ("--capacity", "200000000000000"), "nsufficient memory"),
            (b"a\n", ("--layout", "unknown"), "--layout takes"),
            (b"a\n", ("--capacity", "0"), "--capacity takes"),
        ):
            with self.subTest(reason=reason):
                output = self.build(items, "--error", "0.01", *options, code=1)
                self.assertIn(reason, output)
                self.assertEqual(output.count("\n"), 1, output)
                self.assertEqual(self.names(), [])

    def test_old_file_stays_until_the_new_one_is_complete(self):
        self.out.write_bytes(b"old")
        self.build(b"\xff", "--error", "0.1", "--records", "length32", code=1)
        self.assertEqual(self.out.read_bytes(), b"old")
        self.build(b"a\n", "--error", "0.1")
        self.assertTrue(self.out.read_bytes().startswith(b"REDIS"))
        self.assertEqual(self.names(), ["dump.rdb"])

    def test_closed_standard_input_is_an_error(self):
        self.out.write_bytes(b"old")
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" <&-', "sh", SERVER, "--build-filter", self.out,
             "--error", "0.01", "--capacity", "10"],
            capture_output=True, timeout=120, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr, rb"\Abloomery-server: standard input is closed.*\n\Z")
        self.assertEqual(self.out.read_bytes(), b"old")
        self.assertEqual(self.names(), ["dump.rdb"])

    def test_signal_leaves_nothing(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, writing)
        with subprocess.Popen(
            [SERVER, "--build-filter", self.out, "--error", "0.01"], stdin=reading,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            os.close(reading)
            try:
                os.write(writing, b"item\n" * 1000)
                wait_until(lambda: self.reads_pipe(process.pid), what="the builder reads")
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(DEADLINE_S), -signal.SIGINT)
            finally:
                process.kill()
        self.assertEqual(self.names(), [])

    def reads_pipe(self, pid):
        """Returns whether the process has its temporary file of items open. The file is already
        unlinked.
        """
        with contextlib.suppress(OSError):  # the process may have just closed a file
            files = pathlib.Path(f"/proc/{pid}/fd")
            return any(SPOOL.search(os.readlink(file)) for file in files.iterdir())
        return False

    def test_terminal_gets_a_bar(self):
        main, other = pty.openpty()
        shown = bytearray()

        def read():
            while True:
                try:
                    shown.extend(os.read(main, 4096))
                except OSError:
                    return

        items = b"".join(b"item %d\n" % number for number in range(300000))
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        done = subprocess.run(
            [SERVER, "--build-filter", self.out, "--error", "0.01"], input=items,
            stdout=subprocess.PIPE, stderr=other, timeout=120, check=False,
        )  # fmt: skip
        os.close(other)
        reader.join(DEADLINE_S)
        os.close(main)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"adding   [", shown)
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown[-80:])
        self.assertIn(b"items 299", done.stdout)


class BuildFilterTest(Builder, ServerTest):
    def serve(self, snapshot, *options):
        """Starts a server that loads a copy of the snapshot. Returns a client of that server."""
        directory = tempfile.mkdtemp(prefix="bloomery-test-")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        shutil.copy(snapshot, pathlib.Path(directory) / "dump.rdb")
        return self.start_server(*options, directory=directory).connect()

    def test_file_equals_the_filter_of_a_server(self):
        items = [b"user:%d" % (number * 7919 % 30000) for number in range(40000)]
        for layout in LAYOUTS:
            for capacity in (40000, 3000):
                with self.subTest(layout=layout, capacity=capacity):
                    self.build(
                        b"\n".join(items), "--error", 0.001, "--capacity", capacity,
                        "--layout", layout, "--key", "built",
                    )  # fmt: skip
                    client = self.serve(self.out, "--bf.bloom-use-random-seed", "no")
                    client.call("BF.RESERVE", "made", "0.001", capacity, "LAYOUT", layout)
                    for start in range(0, len(items), 5000):
                        client.call("BF.MADD", "made", *items[start : start + 5000])
                    self.assertEqual(client.call("DUMP", "built"), client.call("DUMP", "made"))
                    self.assertEqual(self.chunks(client, "built"), self.chunks(client, "made"))
                    self.assertEqual(
                        client.call("BF.INFO", "built"), client.call("BF.INFO", "made")
                    )
                    client.call("RESTORE", "restored", 0, client.call("DUMP", "built"))
                    for position, data in self.chunks(client, "built"):
                        client.call("BF.LOADCHUNK", "loaded", position, data)
                    for key in ("built", "restored", "loaded"):
                        self.assertEqual(client.call("BF.MEXISTS", key, *items[:5000]), [1] * 5000)
                    client.close()

    def chunks(self, client, key):
        found, position = [], 0
        while True:
            position, data = client.call("BF.SCANDUMP", key, position)
            if position == 0:
                return found
            found.append((position, data))

    def test_pipes_files_and_records_make_the_same_filter(self):
        items = [b"line %d" % number for number in range(5000)]
        text = b"\n".join(items) + b"\n"
        records = b"".join(struct.pack("<I", len(item)) + item for item in items)
        answers = []
        for name, data, options in (
            ("lines.rdb", text, ()),
            ("records.rdb", records, ("--records", "length32")),
        ):
            self.build(data, "--error", 0.01, *options, out=self.directory / name)
            source = self.directory / "items"
            source.write_bytes(data)
            with open(source, "rb") as file:
                subprocess.run(
                    [SERVER, "--build-filter", self.directory / ("file-" + name), "--error", "0.01",
                     *options], stdin=file, check=True, capture_output=True, timeout=120,
                )  # fmt: skip
            source.unlink()
        for name in self.names():
            client = self.serve(self.directory / name)
            answers.append(client.call("DUMP", "filter"))
            client.close()
        self.assertEqual(len(answers), 4)
        self.assertEqual(len(set(answers)), 1)

    def test_full_disk_is_reported(self):
        if reason := NO_MOUNTS:
            self.skipTest(reason)
        disk = Tmpfs(1 << 20)
        self.addCleanup(disk.remove)
        items = b"".join(b"item %d\n" % number for number in range(200000))
        # The first build fills the disk with its temporary file of items. The second build fills
        # the disk with the snapshot.
        for options in ((), ("--capacity", 2000000)):
            out = disk.path / "out.rdb"
            output = self.build(items, "--error", 1e-6, *options, out=out, code=1)
            self.assertIn("No space left on device", output)
            self.assertEqual(os.listdir(disk.path), [])


if __name__ == "__main__":
    NO_MOUNTS = why_no_mounts()
    unittest.main(verbosity=2)
