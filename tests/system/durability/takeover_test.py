#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that this server loads data directories of Redis + RedisBloom and of Valkey + valkey-bloom,
and answers as those servers did.
"""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import DEADLINE_S, SERVER, ServerTest, free_port
from harness.resp import encode
from harness.vector_checks import VECTORS, VectorChecks

SNAPSHOTS = ("dump.rdb", "dump-uncompressed.rdb", "dump-nochecksum.rdb")
LOGS = tuple(
    f"aof-preamble-{preamble}-{moment}"
    for preamble in ("no", "yes")
    for moment in ("live", "rewritten")
)


class TakeoverTest(VectorChecks, ServerTest):
    def serve(self, *options):
        return self.serve_directory(self.directory, *options)

    def begin(self):
        """Sets `self.directory` to a new directory, because a running server still locks the
        previous one.
        """
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-takeover-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def take_over_snapshot(self, vendor, snapshot):
        self.begin()
        shutil.copy(VECTORS / vendor / snapshot, self.directory / "dump.rdb")
        _, connection = self.serve()
        self.check_all(connection, vendor)

    def take_over_log(self, vendor, log):
        self.begin()
        source = VECTORS / vendor / log / "appendonlydir"
        shutil.copytree(source, self.directory / "appendonlydir", dirs_exist_ok=True)
        # The test starts the server twice. The first start loads the append log of RedisBloom or
        # valkey-bloom. The second start also loads the commands that the first server appended.
        for _ in range(2):
            server, connection = self.serve("--appendonly", "yes")
            changed = ("tiny", "scaled") if log.endswith("rewritten") else ()
            self.check_all(connection, vendor, changed)
            connection.call("SELECT", "0")
            if changed:
                self.assertEqual(connection.call("BF.EXISTS", "tiny", "item:50"), 1)
                self.assertEqual(connection.call("BF.EXISTS", "scaled", "scaled:200"), 1)
                self.assertEqual(connection.call("GET", "after"), b"rewrite")
            connection.call("SET", "ours", "1")
            self.assertFalse(server.stop())

    def test_snapshots(self):
        for vendor in ("redisbloom", "valkey-bloom"):
            for snapshot in SNAPSHOTS:
                with self.subTest(vendor=vendor, snapshot=snapshot):
                    self.take_over_snapshot(vendor, snapshot)

    def test_logs(self):
        for vendor in ("redisbloom", "valkey-bloom"):
            for log in LOGS:
                with self.subTest(vendor=vendor, log=log):
                    self.take_over_log(vendor, log)

    def test_keys_of_other_types_are_skipped_when_asked(self):
        for vendor in ("redisbloom", "valkey-bloom"):
            with self.subTest(vendor=vendor):
                self.begin()
                shutil.copy(VECTORS / vendor / "mixed-types.rdb", self.directory / "dump.rdb")
                server, connection = self.serve("--rdb-foreign-types", "skip")
                server.expect_log("Skipped .* of type")
                self.assertEqual(connection.call("GET", "s"), b"v")
                self.assertEqual(connection.call("BF.EXISTS", "f", "a"), 1)
                self.assertEqual(connection.call("BF.EXISTS", "g", "b"), 1)

    def test_streams_of_redis_8_6_are_skipped(self):
        """The snapshot has a stream with one entry and one producer, in a record type that is new
        in Redis 8.6. With rdb-foreign-types=skip the server skips the stream.
        """
        name, text = b"\x06stream", b"\x01k\x01v"
        entries = b"\x01\x10" + bytes(16) + b"\x08listpack"
        # The trailing zero is the number of consumer groups.
        numbers = b"\x01" * 8 + b"\x00"
        producers = b"\x40\x64\x40\x64\x01\x01p\x01\x01m\x01\x00\x01\x00"
        stream = b"\x1a" + name + entries + numbers + producers
        snapshot = b"REDIS0013\xfe\x00" + stream + b"\x00" + text + b"\xff" + bytes(8)
        self.begin()
        (self.directory / "dump.rdb").write_bytes(snapshot)
        self.assertRegex(self.refuse("--appendonly", "no"), "type 'stream.*rdb-foreign-types skip")
        server, connection = self.serve("--appendonly", "no", "--rdb-foreign-types", "skip")
        server.expect_log("Skipped 1 .*stream")
        self.assertEqual(connection.call("GET", "k"), b"v")

    def test_configuration_of_valkey_9(self):
        """Starts a server with options of Valkey 9. Some of these options exist in Redis too, some
        have another name there, and some have no effect in our server.
        """
        self.begin()
        lines = [
            "protected-mode yes", "tcp-backlog 511", "hide-user-data-from-log yes",
            'locale-collate ""', "dual-channel-replication-enabled no", "replica-lazy-flush yes",
            "commandlog-execution-slower-than 10000", "commandlog-reply-larger-than 1048576",
            "set-max-listpack-entries 128", "primaryauth secret", "availability-zone eu-1a",
            "max-new-connections-per-cycle 10", "search.reader-threads 2",
        ]  # fmt: skip
        path = self.directory / "valkey.conf"
        path.write_text("\n".join(lines) + "\n")
        server = self.start_server("--dir", self.directory, config_file=path)
        for name in ("replica-lazy-flush", "search.reader-threads"):
            server.expect_log(f"directive '{name}' has no effect")
        with server.connect() as connection:
            self.assertIn(b"availability_zone:eu-1a", bytes(connection.call("INFO", "server")))
            self.assertEqual(
                connection.call("CONFIG", "GET", "masterauth"), [b"masterauth", b"secret"]
            )

    def refuse(self, *options):
        """Checks that a server exits with status 1 instead of starting on `self.directory`. Returns
        its messages.
        """
        done = subprocess.run(
            [SERVER, "--port", str(free_port()), "--dir", self.directory, *options],
            capture_output=True, text=True, timeout=DEADLINE_S)  # fmt: skip
        self.assertEqual(done.returncode, 1)
        return done.stdout

    def test_keys_of_other_types_are_refused_by_default(self):
        for vendor in ("redisbloom", "valkey-bloom"):
            with self.subTest(vendor=vendor):
                self.begin()
                snapshot = self.directory / "dump.rdb"
                shutil.copy(VECTORS / vendor / "mixed-types.rdb", snapshot)
                before = snapshot.read_bytes()
                said = self.refuse("--appendonly", "no")
                self.assertRegex(said, rf"'{snapshot}': .*rdb-foreign-types")
                self.assertEqual(snapshot.read_bytes(), before)

    def test_commands_that_we_do_not_serve(self):
        """The append log has commands of another server that this server does not implement, such
        as ZADD.
        """
        commands = [("SELECT", "0"), ("SET", "s", "1"), ("ZADD", "z", "1", "member"),
                    ("MULTI",), ("INCR", "s"), ("XADD", "x", "*", "a", "b"), ("EXEC",),
                    ("BF.ADD", "f", "item")]  # fmt: skip
        self.begin()
        log = self.directory / "appendonly.aof"
        log.write_bytes(b"".join(encode(*command) for command in commands))
        before = log.read_bytes()
        said = self.refuse("--appendonly", "yes")
        self.assertRegex(said, "unknown command 'ZADD'.*rdb-foreign-types skip")
        kept = self.directory / "appendonlydir" / "appendonly.aof"
        self.assertEqual((log if log.exists() else kept).read_bytes(), before)
        server, connection = self.serve("--appendonly", "yes", "--rdb-foreign-types", "skip")
        server.wait_for_log("2 foreign skipped")
        self.assertEqual(connection.call("GET", "s"), b"2")
        self.assertEqual(connection.call("BF.EXISTS", "f", "item"), 1)
        self.assertEqual(connection.call("DBSIZE"), 2)


if __name__ == "__main__":
    unittest.main()
