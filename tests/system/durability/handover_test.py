#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that other servers can read our files. Debian's redis-server loads the strings of our
snapshots and logs, and redis-check-rdb accepts our snapshots.
"""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import DEADLINE_S, SERVER, ServerTest

STRINGS = {f"key:{number}": f"value {number} " * (number % 40) for number in range(300)}
FAR_MS = 4102444800000


class HandoverTest(ServerTest):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-handover-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def serve(self, *options):
        return self.serve_directory(self.directory, *options)

    def fill(self, connection):
        for key, value in STRINGS.items():
            connection.call("SET", key, value)
        connection.call("SET", "timed", "t", "PXAT", FAR_MS)
        connection.call("SETBIT", "bits", "70000", "1")

    def check(self, connection):
        for key, value in STRINGS.items():
            self.assertEqual(connection.call("GET", key), value.encode())
        self.assertEqual(connection.call("PEXPIRETIME", "timed"), FAR_MS)
        self.assertEqual(connection.call("GETBIT", "bits", "70000"), 1)

    def check_in_redis(self, *options):
        # Calls _start(), because start_redis() always disables the append log.
        program = shutil.which("redis-server")
        self.assertIsNotNone(program)
        redis = self._start(program, ["--dir", self.directory, *options], (), True, {})
        connection = redis.connect()
        self.addCleanup(connection.close)
        self.check(connection)
        return redis, connection

    def test_checker_accepts_redisbloom_filters(self):
        server, connection = self.serve("--bf-layout", "redisbloom")
        self.fill(connection)
        connection.call("BF.RESERVE", "grown", "0.01", "10")
        connection.call("BF.MADD", "grown", *range(500))
        self.assertEqual(connection.call("SAVE"), b"OK")
        self.assertFalse(server.stop())
        output = self.run_client(["redis-check-rdb", self.directory / "dump.rdb"])
        self.assertIn("RDB looks OK", output)

    def test_redis_loads_the_strings_of_our_snapshot(self):
        server, connection = self.serve()
        self.fill(connection)
        self.assertEqual(connection.call("SAVE"), b"OK")
        self.assertFalse(server.stop())
        self.check_in_redis("--appendonly", "no", "--save", "")

    def export(self, *options):
        """Runs bloomery-server --export-rdb on dump.rdb. Returns its output and its exit status."""
        done = subprocess.run(
            [SERVER, "--export-rdb", self.directory / "dump.rdb", self.directory / "out.rdb",
             *options], capture_output=True, timeout=DEADLINE_S, check=False)  # fmt: skip
        return (done.stdout + done.stderr).decode(), done.returncode

    def test_redis_loads_an_export_of_our_filters(self):
        server, connection = self.serve()
        self.fill(connection)
        connection.call("BF.ADD", "ours", "a")
        connection.call("BF.RESERVE", "deletable", "0.01", "100", "DELETABLE")
        connection.call("BF.RESERVE", "windowed", "0.01", "100", "WINDOW", "60")
        connection.call("BF.RESERVE", "theirs", "0.01", "100", "LAYOUT", "redisbloom")
        connection.call("SELECT", 3)
        connection.call("SET", "third", "3")
        self.assertEqual(connection.call("SAVE"), b"OK")
        self.assertFalse(server.stop())
        output, status = self.export()
        self.assertEqual(status, 2, output)
        for part in (
            "for redisbloom, 303 strings and 1 filter, ",
            "left out: 1 native-2 filter: ours",
            "left out: 1 native-2 filter with a window: windowed",
            "left out: 1 fingerprints filter: deletable",
        ):
            self.assertIn(part, output)
        judged = self.run_client(["redis-check-rdb", self.directory / "out.rdb"])
        self.assertIn("RDB looks OK", judged)
        output, status = self.export("--target", "redis")
        self.assertEqual((output.count("\n"), status), (1, 1), output)
        self.assertRegex(output, r"out\.rdb'.* already.*--overwrite")
        output, status = self.export("--target", "redis", "--overwrite")
        self.assertEqual(status, 2, output)
        self.assertIn("left out: 1 redisbloom filter: theirs", output)
        (self.directory / "out.rdb").rename(self.directory / "dump.rdb")
        _, connection = self.check_in_redis("--appendonly", "no", "--save", "")
        self.assertEqual(connection.call("DBSIZE"), len(STRINGS) + 2)
        connection.call("SELECT", 3)
        self.assertEqual(connection.call("GET", "third"), b"3")

    def test_redis_loads_our_log(self):
        server, connection = self.serve("--appendonly", "yes")
        self.fill(connection)
        connection.call("BGREWRITEAOF")
        base = self.directory / "appendonlydir" / "appendonly.aof.1.base.rdb"
        server.wait_for_log("rewriting finished successfully")
        self.assertTrue(base.exists())
        connection.call("SET", "later", "1")
        connection.call("MULTI")
        connection.call("INCR", "later")
        connection.call("INCR", "later")
        connection.call("EXEC")
        self.assertFalse(server.stop())
        log = (self.directory / "appendonlydir" / "appendonly.aof.2.incr.aof").read_bytes()
        self.assertIn(b"#bloomery-crc64:", log)
        _, redis = self.check_in_redis("--appendonly", "yes", "--save", "")
        self.assertEqual(redis.call("GET", "later"), b"3")

    def test_redis_loads_our_log_of_commands(self):
        server, connection = self.serve("--appendonly", "yes", "--aof-use-rdb-preamble", "no")
        self.fill(connection)
        connection.call("BGREWRITEAOF")
        server.wait_for_log("rewriting finished successfully")
        self.assertFalse(server.stop())
        base = self.directory / "appendonlydir" / "appendonly.aof.1.base.aof"
        self.assertIn(b"\r\nPXAT\r\n", base.read_bytes())
        self.check_in_redis("--appendonly", "yes", "--save", "")

    def layouts(self, connection):
        """Returns the names of all filter layouts. The server lists them in its error for an
        unknown layout.
        """
        refusal = str(connection.call("BF.PLAN", "0.01", "100", "LAYOUT", "none"))
        names = refusal.split("layout must be ")[1].replace(" or ", ", ").split(", ")
        self.assertIn("native", names)
        return names

    def test_we_load_our_log_of_commands(self):
        options = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no",
                   "--enable-debug-command", "yes"]  # fmt: skip
        server, connection = self.serve(*options)
        self.fill(connection)
        for layout in self.layouts(connection):
            connection.call("BF.RESERVE", layout, "0.01", "100", "LAYOUT", layout)
            connection.call("BF.MADD", layout, *range(5000))
        connection.call("PEXPIREAT", "native", FAR_MS)
        digest = connection.call("DEBUG", "DIGEST")
        connection.call("BGREWRITEAOF")
        server.wait_for_log("rewriting finished successfully")
        connection.call("BF.ADD", "native", "later")
        after = connection.call("DEBUG", "DIGEST")
        self.assertNotEqual(after, digest)
        self.assertFalse(server.stop())
        server, connection = self.serve(*options)
        self.assertEqual(connection.call("DEBUG", "DIGEST"), after)
        self.assertEqual(connection.call("BF.ADD", "native", "later"), 0)
        # Once aof-use-rdb-preamble is set to yes, the next rewrite writes a snapshot as the base
        # file of the append log.
        connection.call("CONFIG", "SET", "aof-use-rdb-preamble", "yes")
        connection.call("BGREWRITEAOF")
        base = self.directory / "appendonlydir" / "appendonly.aof.2.base.rdb"
        server.wait_for_log("rewriting finished successfully")
        self.assertTrue(base.exists())


if __name__ == "__main__":
    unittest.main()
