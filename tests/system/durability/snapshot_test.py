#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that this server loads snapshots of Debian's Redis, and Redis loads ours."""

import collections
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import unittest

from harness import ROOT, SERVER, ServerTest, seed_from_environment

TOOL = pathlib.Path(
    os.environ.get("BLOOMERY_SNAPSHOT_TOOL", ROOT / "build" / "release" / "tests" / "snapshot_tool")
).absolute()
VECTORS = ROOT / "tests" / "vectors"
FAR_MS = 4102444800000
Key = collections.namedtuple("Key", "database name kind expires_at_ms value")


def random_value(rng):
    """Returns a random string: a number, a repetitive string, or random bytes. Together these
    strings use every encoding that Redis has for strings in a snapshot.
    """
    kind = rng.randrange(6)
    if kind == 0:
        return str(rng.randrange(-(1 << rng.randrange(1, 63)), 1 << rng.randrange(1, 63))).encode()
    if kind == 1:
        return rng.choice([b"", b"007", b"-0", b" 1", b"1e5", b"2147483648", b"-2147483648"])
    if kind == 2:
        return rng.choice([b"ab", b"\x00"]) * rng.randrange(5000)
    size = rng.choice([5, 20, 21, 44, 45, 300, 20000])
    return rng.randbytes(size) if kind == 3 else bytes(rng.choice(b"abc") for _ in range(size))


class SnapshotTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.seed = seed_from_environment()

    def setUp(self):
        self.rng = random.Random(self.seed)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-snapshot-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def copy(self, source, *options, name="dump.rdb"):
        """Runs snapshot_tool, which loads the snapshot `source` and saves its data to a new file.
        Returns the path of the new file.
        """
        target = self.directory / name
        self.run_client([TOOL, "copy", source, target, *options])
        return target

    def listed(self, path):
        """Returns the data that snapshot_tool reads from a file: the keys, and the number of values
        of each foreign type.
        """
        keys, foreign = {}, {}
        for line in self.run_client([TOOL, "list", path]).splitlines():
            words = line.split(" ")
            if words[0] == "foreign":
                foreign[" ".join(words[1:-1])] = int(words[-1])
                continue
            name, value = (bytes.fromhex(words[at][1:]) for at in (1, 4))
            keys[int(words[0]), name] = Key(int(words[0]), name, words[2], int(words[3]), value)
        return keys, foreign

    def saved_by_redis(self, redis):
        with redis.connect() as connection:
            self.assertEqual(connection.call("SAVE"), b"OK")
        return pathlib.Path(redis.directory) / "dump.rdb"

    def connect(self, redis):
        connection = redis.connect()
        self.addCleanup(connection.close)
        return connection

    def fill_with_strings(self, redis, count):
        """Sets `count` random keys in Redis. Returns a dictionary that maps (database, key) to
        (value, expiry); an expiry of -1 means none.
        """
        connection, model, database = self.connect(redis), {}, 0
        for number in range(count):
            if number % 50 == 0:
                database = self.rng.randrange(16)
                connection.call("SELECT", database)
            key = self.rng.choice([b"key:%d" % number, b"%d" % number, self.rng.randbytes(30)])
            value, expiry = random_value(self.rng), -1
            if self.rng.random() < 0.3:
                expiry = FAR_MS + number
                connection.call("SET", key, value, "PXAT", expiry)
            else:
                connection.call("SET", key, value)
            model[database, key] = value, expiry
        return model

    def assert_redis_answers(self, redis, model):
        connection, sizes = self.connect(redis), collections.Counter()
        for (database, key), (value, expiry) in sorted(model.items()):
            if sizes[database] == 0:
                connection.call("SELECT", database)
            sizes[database] += 1
            self.assertEqual(connection.call("GET", key), value)
            self.assertEqual(connection.call("PEXPIRETIME", key), expiry)
        for database in range(16):
            connection.call("SELECT", database)
            self.assertEqual(connection.call("DBSIZE"), sizes[database])

    def test_redis_loads_our_strings(self):
        redis = self.start_redis()
        model = self.fill_with_strings(redis, 3000)
        theirs = self.saved_by_redis(redis)
        for options in ([], ["no-compression"], ["no-checksum"]):
            with self.subTest(options=options):
                ours = self.copy(theirs, *options)
                # Both servers encode the values in the same way, so the sizes of the two files
                # differ only by the AUX fields.
                if not options:
                    self.assertLess(abs(ours.stat().st_size - theirs.stat().st_size), 100)
                loaded = self.start_redis("--dir", self.directory)
                loaded.expect_log("RDB file was saved with checksum disabled")
                self.assert_redis_answers(loaded, model)

    def test_we_read_the_strings_of_redis(self):
        for options in ([], ["--rdbcompression", "no"], ["--rdbchecksum", "no"]):
            with self.subTest(options=options):
                redis = self.start_redis(*options)
                model = self.fill_with_strings(redis, 2000)
                keys, foreign = self.listed(self.saved_by_redis(redis))
                self.assertEqual(foreign, {})
                read = {place: (key.value, key.expires_at_ms) for place, key in keys.items()}
                self.assertEqual(read, model)

    def test_foreign_types_are_skipped_and_counted(self):
        redis = self.start_redis()
        call = self.connect(redis).call
        counts = collections.Counter()
        for size in (1, 10, 2000):
            members = [b"m%d" % number for number in range(size)]
            long_members = [member * 30 for member in members]
            for name, items in (("short", members), ("long", long_members)):
                key = f"{name}:{size}"
                call("RPUSH", "list:" + key, *items)
                call("SADD", "set:" + key, *items)
                call("HSET", "hash:" + key, *[word for item in items for word in (item, item)])
                pairs = [word for at, item in enumerate(items) for word in (at / 3, item)]
                call("ZADD", "zset:" + key, *pairs)
                for item in items:
                    call("XADD", "stream:" + key, "*", "field", item)
                counts.update(["list", "set", "hash", "zset", "stream"])
            call("SADD", f"intset:{size}", *range(size))
            counts["set"] += 1
        for group in ("g1", "g2"):
            call("XGROUP", "CREATE", "stream:short:10", group, "0")
            call("XREADGROUP", "GROUP", group, "reader", "COUNT", 5, "STREAMS",
                 "stream:short:10", ">")  # fmt: skip
        call("PFADD", "hll", "a", "b")
        call("PEXPIREAT", "list:short:10", FAR_MS)
        call("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() end)")
        counts["function library"] += 1
        model = self.fill_with_strings(redis, 300)
        keys, foreign = self.listed(self.saved_by_redis(redis))
        self.assertEqual(foreign, dict(counts))
        hll = keys.pop((0, b"hll"))
        self.assertTrue(hll.value.startswith(b"HYLL"))
        read = {place: (key.value, key.expires_at_ms) for place, key in keys.items()}
        self.assertEqual(read, model)

    def test_keys_with_idle_times_and_frequencies_are_read(self):
        for policy in ("allkeys-lru", "allkeys-lfu"):
            redis = self.start_redis("--maxmemory", "1gb", "--maxmemory-policy", policy)
            model = self.fill_with_strings(redis, 200)
            keys, _ = self.listed(self.saved_by_redis(redis))
            self.assertEqual({place: key.value for place, key in keys.items()},
                             {place: value for place, (value, _) in model.items()})  # fmt: skip


class CheckTest(unittest.TestCase):
    """Tests redis-check-rdb and bloomery-server --check-rdb, which read files without a running
    server.
    """

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-snapshot-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def run_program(self, *words, expected_exit=0):
        """Runs a program, checks its exit status, and returns its output."""
        done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, check=False, timeout=300)  # fmt: skip
        self.assertEqual(done.returncode, expected_exit, f"{words} said:\n{done.stdout}")
        return done.stdout

    def test_redis_check_rdb_accepts_our_files(self):
        for writer in ("redisbloom", "valkey-bloom"):
            for options in ([], ["no-compression"]):
                ours = self.directory / "dump.rdb"
                self.run_program(TOOL, "copy", VECTORS / writer / "dump.rdb", ours, *options)
                said = self.run_program("redis-check-rdb", ours)
                self.assertIn("Checksum OK", said)
                self.assertIn("RDB looks OK!", said)
                self.assertIn("[info] 23 keys read", said)

    def test_our_check_separates_sound_from_damaged_files(self):
        whole = VECTORS / "redisbloom" / "dump.rdb"
        said = self.run_program(SERVER, "--check-rdb", whole)
        self.assertIn("database 0: 13 redisbloom filter", said)
        self.assertTrue(said.endswith("check sum ok\nOK\n"), said)
        damaged = bytearray(whole.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        (self.directory / "damaged.rdb").write_bytes(damaged)
        for name in ("damaged.rdb", "absent.rdb"):
            said = self.run_program(
                SERVER, "--check-rdb", self.directory / name, expected_exit=1
            )
            self.assertIn("ERROR: ", said)


if __name__ == "__main__":
    unittest.main()
