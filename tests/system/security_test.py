#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What went wrong in servers like this one, each as a test of ours; docs/security.md maps all of
them, also those that stand elsewhere.

BLOOMERY_SECURITY_ROUNDS makes the random tests longer; BLOOMERY_SEED replays them.
"""

import itertools
import os
import pathlib
import random
import re
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from harness import SANITIZED, SERVER, ServerTest, seed_from_environment, wait_until
from resp import ErrorReply, encode

ROUNDS = int(os.environ.get("BLOOMERY_SECURITY_ROUNDS", "2000"))
MIB = 1 << 20
MIN_I64, MAX_I64 = -(2**63), 2**63 - 1
SECRET = "hunter2-the-secret"
# A pattern must not hold a thread longer; sanitizers and -O0 builds are many times slower.
GLOB_S = 5 if SANITIZED or os.environ.get("BLOOMERY_BUILD_TYPE") != "Release" else 0.1
EXTREMES = [0, 1, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**58, 2**61, 2**62, MAX_I64, MIN_I64,
            2**63, 2**64 - 1, 2**64, 2**64 // 8, 2**64 // 8 - 1]  # fmt: skip


def crc64_table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            # The reflected form of Jones' polynomial.
            crc = (crc >> 1) ^ 0x95AC9329AC4BC9B5 if crc & 1 else crc >> 1
        table.append(crc)
    return table


CRC64_TABLE = crc64_table()


def crc64(data):
    crc = 0
    for byte in data:
        crc = CRC64_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc


def signed_payload(body):
    """A DUMP payload whose checksum is right, whatever is in it."""
    return body + struct.pack("<Q", crc64(body))


class SecurityTest(ServerTest):
    options = ()

    def setUp(self):
        self.rng = random.Random(seed_from_environment())
        self.server = self.start_server(*self.options)
        self.client = self.server.connect()
        self.addCleanup(self.client.close)

    def call(self, *words):
        return self.client.call(*words)

    def assert_refused(self, *words):
        reply = self.call(*words)
        self.assertIsInstance(reply, ErrorReply, words)
        return reply.text

    def assert_alive(self):
        self.assertEqual(self.call("PING"), b"PONG")


class NumbersTest(SecurityTest):
    """Sizes, offsets and counts beyond what the arithmetic behind them can hold."""

    def test_cve_2021_21309_41099_32761_32625_29477_sizes_that_overflow(self):
        """SETBIT, GETBIT, BITFIELD, SETRANGE, APPEND around every power that matters."""
        for bulk_limit in ("512mb", "9223372036854775807"):
            self.call("CONFIG", "SET", "proto-max-bulk-len", bulk_limit)
            self.call("SET", "k", "x")
            for number in EXTREMES:
                # Legal on its own, but not to be carried out here: gigabytes.
                is_huge = 1 < number < 2**38
                for words in (
                    ["GETBIT", "k", number], ["GETRANGE", "k", number, number],
                    ["BITFIELD", "k", "GET", "u8", number], ["BITCOUNT", "k", number, number],
                    ["BITFIELD_RO", "k", "GET", "i64", f"#{number}"], ["BITPOS", "k", 1, number],
                ):  # fmt: skip
                    self.call(*words)
                if is_huge or number in (0, 1):
                    continue
                for words in (
                    ["SETBIT", "k", number, 1], ["SETRANGE", "k", number, "y"],
                    ["BITFIELD", "k", "SET", "u8", number, 1],
                    ["BITFIELD", "k", "INCRBY", "i64", f"#{number}", 1],
                ):  # fmt: skip
                    self.assert_refused(*words)
            self.assertEqual(self.call("GET", "k"), b"x")
        self.assert_alive()

    def test_bitfield_offset_hash_wrap(self):
        """2^58 × 64 is 2^64: Redis 7.0 writes at offset 0."""
        self.call("SET", "k", "abcdefgh")
        self.assert_refused("BITFIELD", "k", "SET", "i64", "#288230376151711744", "1")
        self.assertEqual(self.call("GET", "k"), b"abcdefgh")

    def test_cve_2022_35977_setrange_beyond_every_string(self):
        for offset in (MAX_I64, MAX_I64 - 1, 536870912, MIN_I64, -1):
            self.assert_refused("SETRANGE", "k", offset, "abc")
        self.assertEqual(self.call("EXISTS", "k"), 0)

    def test_cve_2023_25155_22458_counts_that_cannot_be_negated(self):
        self.call("SET", "k", "v")
        for words in (
            ["SCAN", "0", "COUNT", MIN_I64], ["BITCOUNT", "k", MIN_I64, MIN_I64],
            ["BITPOS", "k", "1", MIN_I64, MIN_I64], ["GETRANGE", "k", MIN_I64, MIN_I64],
            ["DECRBY", "n", MIN_I64], ["INCRBY", "n", MIN_I64], ["DECRBY", "n", MIN_I64],
            ["LCS", "k", "k", "IDX", "MINMATCHLEN", MIN_I64], ["EXPIRE", "nokey", MIN_I64],
            ["PEXPIREAT", "nokey", MIN_I64], ["SET", "k", "v", "PX", MIN_I64],
            ["GETEX", "k", "EX", MIN_I64], ["SETEX", "k", MIN_I64, "v"],
            ["RESTORE", "r", MIN_I64, "x"], ["WAIT", MIN_I64, 1], ["CLIENT", "PAUSE", MIN_I64],
            ["CLIENT", "KILL", "ID", MIN_I64], ["CLIENT", "LIST", "ID", MIN_I64],
            ["CLIENT", "UNBLOCK", MIN_I64], ["SLOWLOG", "GET", MIN_I64],
            ["MEMORY", "USAGE", "k", "SAMPLES", MIN_I64], ["BF.KEXISTS", MIN_I64, "k", "i"],
            ["BF.RESERVE", "f", "0.01", MIN_I64], ["BF.SCANDUMP", "k", MIN_I64],
            ["BF.RESERVE", "f", "0.01", "10", "EXPANSION", MIN_I64],
            ["BF.INSERT", "f", "CAPACITY", MIN_I64, "ITEMS", "a"],
            ["BF.LOADCHUNK", "f", MIN_I64, "x"], ["SELECT", MIN_I64], ["SWAPDB", MIN_I64, 0],
            ["MOVE", "k", MIN_I64], ["PSYNC", "?", MIN_I64], ["REPLCONF", "ack", MIN_I64],
            ["CONFIG", "SET", "maxmemory", MIN_I64], ["CONFIG", "SET", "hz", MIN_I64],
        ):  # fmt: skip
            with self.server.connect() as client:
                client.send(encode(*words))
                if words[0] not in ("PSYNC", "REPLCONF"):
                    client.read_reply()
        self.assert_alive()

    def test_cve_2023_28425_28856_the_same_key_in_all_places(self):
        fill = (["SET", "k", "\x01\x02"], ["BF.RESERVE", "k", "0.01", "100"])
        for setup in fill:
            for words in (
                ["BITOP", "AND", "k", "k", "k"], ["BITOP", "NOT", "k", "k"],
                ["MSET", "k", "1", "k", "2"], ["MSETNX", "k", "1", "k", "2"], ["MGET", "k", "k"],
                ["LCS", "k", "k"], ["LCS", "k", "k", "IDX"], ["RENAME", "k", "k"],
                ["RENAMENX", "k", "k"], ["COPY", "k", "k"], ["COPY", "k", "k", "REPLACE"],
                ["DEL", "k", "k"], ["UNLINK", "k", "k"], ["EXISTS", "k", "k"],
                ["TOUCH", "k", "k"], ["WATCH", "k", "k"], ["BF.MERGE", "k", "k"],
                ["BF.MERGE", "k", "k", "k"], ["BF.KEXISTS", "2", "k", "k", "i"],
                ["BF.KADD", "2", "k", "k", "i"], ["MOVE", "k", "0"], ["BF.CLEAR", "k"],
            ):  # fmt: skip
                self.call("DEL", "k")
                self.call(*setup)
                self.call(*words)
                self.call("UNWATCH")
        self.assert_alive()

    def test_cve_2023_28856_numbers_that_are_none(self):
        for number in ("nan", "NaN", "-nan", "inf", "-inf", "1e400", "0x1p3", ""):
            self.assert_refused("BF.RESERVE", "f", number, "100")
            self.assert_refused("BF.INSERT", "f", "ERROR", number, "ITEMS", "a")
            self.assert_refused("CONFIG", "SET", "bf-error-rate", number)
            self.call("INCRBYFLOAT", "n", number)
            self.assertNotRegex(self.call("GET", "n") or b"", rb"(?i)nan|inf")

    def test_cve_2024_25116_reservations_beyond_reason(self):
        """An error, or little memory: never an end, never a large calloc."""
        before = self.server.resident_bytes()
        rates = ["0", "1", "0.999999", "1e-300", "-0.5", "1.5", "0.01", "5e-324"]
        for rate, capacity in itertools.product(rates, EXTREMES):
            for options in ([], ["EXPANSION", 0], ["EXPANSION", 2**32], ["NONSCALING"],
                            ["DELETABLE"], ["WINDOW", MAX_I64]):  # fmt: skip
                self.call("BF.RESERVE", "f", rate, capacity, *options)
                self.call("BF.INFO", "f")
                self.call("DEL", "f")
        self.assert_alive()
        self.assertLess(self.server.resident_bytes() - before, 200 * MIB)

    def test_cve_2024_55656_53993_products_that_wrap(self):
        """Bits that are 2^64, a little less and a little more."""
        for capacity in (2**64 // 8, 2**64 // 8 - 1, 2**64 // 8 + 1, 2**61, 2**60, 2**48 + 1):
            for rate in ("0.0000000001", "0.01", "0.9"):
                self.call("BF.RESERVE", "f", rate, capacity)
                added = self.call("BF.ADD", "f", "item")
                if not isinstance(added, ErrorReply):
                    self.assertEqual(self.call("BF.EXISTS", "f", "item"), 1)
                self.call("DEL", "f")
                self.call("BF.PLAN", rate, capacity)
        self.assert_alive()


class PayloadTest(SecurityTest):
    """Bytes that claim to be values."""

    def test_cve_2019_10192_10193_2025_32023_strings_are_never_read_as_filters(self):
        self.call("BF.RESERVE", "f", "0.01", "100")
        payload = self.call("DUMP", "f")
        for text in (b"HYLL" + b"\x00" * 12, payload, b"MBbloom--", b"\xff" * 64, b""):
            self.call("SET", "k", text)
            self.call("SETRANGE", "k", 0, text)
            self.call("SETBIT", "k", 3, 1)
            for words in (
                ["BF.ADD", "k", "i"], ["BF.MADD", "k", "i"], ["BF.INFO", "k"], ["BF.CARD", "k"],
                ["BF.INSERT", "k", "ITEMS", "i"], ["BF.SCANDUMP", "k", 0], ["BF.STATS", "k"],
                ["BF.MERGE", "f", "k"], ["BF.CLEAR", "k"], ["BF.LOADCHUNK", "k", 2, "x"],
            ):  # fmt: skip
                with self.subTest(words=words):
                    self.assertIsInstance(self.call(*words), ErrorReply)
            self.assertEqual(self.call("BF.EXISTS", "k", "i"), 0)
        self.assert_refused("PFADD", "k", "i")

    def test_cve_2024_25115_chunks_that_lie(self):
        """Iterators, lengths and headers of BF.LOADCHUNK; the fuzzers forge many more."""
        for layout in ("native", "redisbloom"):
            self.call("CONFIG", "SET", "bf-layout", layout)
            self.call("DEL", "f")
            self.call("BF.RESERVE", "f", "0.01", "1000")
            self.call("BF.MADD", "f", *range(2000))
            chunks, cursor = [], 0
            while True:
                cursor, data = self.call("BF.SCANDUMP", "f", cursor)
                if cursor == 0:
                    break
                chunks.append((cursor, data))
            self.forge_chunks(chunks)
        self.assert_alive()

    def forge_chunks(self, chunks):
        rng = self.rng
        cursors = [0, -1, 1, 2, MAX_I64, MIN_I64, *[cursor for cursor, _ in chunks]]
        for _ in range(ROUNDS // 2):
            self.call("DEL", "g")
            for cursor, data in chunks:
                if rng.random() < 0.4:
                    cursor = rng.choice(cursors)
                kind = rng.randrange(6)
                if kind == 0:
                    data = data[: rng.randrange(len(data) + 1)]
                elif kind == 1:
                    data += bytes(rng.randrange(1, 100))
                elif kind == 2:
                    data = bytearray(data)
                    for _ in range(rng.randint(1, 4)):
                        data[rng.randrange(min(len(data), 128))] = rng.choice([0, 1, 127, 128, 255])
                self.call("BF.LOADCHUNK", "g", cursor, bytes(data))
                if rng.random() < 0.1:
                    self.call("BF.LOADCHUNK", "g", cursor, bytes(data))
            self.use_filter("g")

    def use_filter(self, key):
        for words in (
            ["BF.INFO", key], ["BF.ADD", key, "a"], ["BF.MADD", key, "b", "c"], ["BF.CARD", key],
            ["BF.EXISTS", key, "a"], ["BF.MEXISTS", key, "a", "z"], ["BF.SCANDUMP", key, 0],
            ["BF.STATS", key], ["COPY", key, "copy", "REPLACE"], ["DUMP", key],
            ["MEMORY", "USAGE", key], ["OBJECT", "ENCODING", key],
        ):  # fmt: skip
            self.call(*words)

    def test_cve_2026_25589_62356_and_21864_forged_payloads_of_filters(self):
        """With a right checksum. What is accepted must stand everything that a filter can be
        asked, and the ways to the disk."""
        payloads = []
        for layout in ("native", "redisbloom", "valkey-bloom"):
            self.call("CONFIG", "SET", "bf-layout", layout)
            for number, words in enumerate((["NONSCALING"], ["EXPANSION", "2"])):
                key = f"{layout}:{number}"
                self.call("BF.RESERVE", key, "0.01", "50", *words)
                self.call("BF.MADD", key, *range(40 + 80 * number))
                payloads.append(self.call("DUMP", key)[:-8])
        self.call("CONFIG", "SET", "bf-layout", "native")
        for words in (["DELETABLE"], ["DELETABLE", "REGIONS", "4"], ["WINDOW", "600"]):
            self.call("DEL", "special")
            self.call("BF.RESERVE", "special", "0.01", "50", *words)
            self.call("BF.MADD", "special", *range(40))
            payloads.append(self.call("DUMP", "special")[:-8])
        accepted = self.forge_payloads(payloads)
        print(f"{accepted} of {ROUNDS} forged payloads were accepted")
        self.call("SAVE")
        self.assert_alive()

    def forge_payloads(self, payloads):
        rng, accepted = self.rng, 0
        for body in payloads:
            self.assertEqual(self.call("RESTORE", "r", 0, signed_payload(body), "REPLACE"), b"OK")
        for number in range(ROUNDS):
            body = bytearray(rng.choice(payloads))
            for _ in range(rng.randint(1, 3)):
                # Where the sizes are, not the bits.
                index = rng.randrange(1, min(len(body) - 2, 160))
                kind = rng.randrange(4)
                if kind == 0:
                    body[index] = rng.choice([0, 1, 0x7F, 0x80, 0x81, 0xC3, 0xFF])
                elif kind == 1:
                    body[index] ^= 1 << rng.randrange(8)
                elif kind == 2:
                    del body[index : index + rng.randint(1, 9)]
                else:
                    body[index:index] = rng.randbytes(rng.randint(1, 9))
            reply = self.call("RESTORE", "r", 0, signed_payload(bytes(body)), "REPLACE")
            if reply == b"OK":
                accepted += 1
                self.use_filter("r")
                if accepted % 50 == 0:
                    self.call("SAVE")
        return accepted

    def test_cve_2026_25243_66373_63639_forged_payloads_of_strings(self):
        """Compressed and encoded strings whose lengths lie."""
        version = struct.pack("<H", 10)
        for body in (
            b"\x00\xc3\x05\x0aabcde", b"\x00\xc3\x01\x80\xff\xff\xff\xff\x00",
            b"\x00\xc3\x81" + b"\xff" * 8 + b"\x81" + b"\xff" * 8 + b"x", b"\x00\xc0", b"\x00\xc1a",
            b"\x00\xc2abc", b"\x00\xc4abc", b"\x00\xff", b"\x00\x81" + b"\xff" * 8,
            b"\x00\x80\xff\xff\xff\xffx", b"\x00\x05abc", b"\x00", b"", b"\x07\x00",
            b"\x00\xc3\x04\x04\xff\xff\xff\xff", b"\x00\xc3\x03\x09\x40\xff\x00",
        ):  # fmt: skip
            with self.subTest(body=body):
                reply = self.call("RESTORE", "s", 0, signed_payload(body + version), "REPLACE")
                self.assertIsInstance(reply, ErrorReply)
        self.assertEqual(self.call("EXISTS", "s"), 0)
        self.assert_alive()


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

    def test_cve_2026_27623_requests_that_are_empty(self):
        """Every order of {empty array, empty line, line, array, null array} in threes."""
        kinds = {b"*0\r\n": 0, b"\r\n": 0, b"PING\r\n": 1, encode("PING"): 1, b"*-1\r\n": 0}
        for three in itertools.product(kinds, repeat=3):
            with self.server.connect() as client:
                client.send(b"".join(three) + encode("PING", "end"))
                for _ in range(sum(kinds[one] for one in three)):
                    self.assertEqual(client.read_reply()[0], b"PONG", three)
                self.assertEqual(client.read_reply()[0], b"end", three)

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

    def test_hello_that_is_refused_changes_nothing(self):
        with self.server.connect() as client:
            self.assertRegex(client.call("HELLO", "3").text, "^NOAUTH ")
            for words in (
                ["3", "AUTH", "default", "wrong"], ["3", "AUTH", "nobody", SECRET],
                ["3", "AUTH", "default", SECRET, "SETNAME", "a b"],
                ["4", "AUTH", "default", SECRET],
                ["3", "AUTH", "default", SECRET, "NOSUCH"], ["3", "SETNAME", "x"],
                ["x", "AUTH", "default", SECRET], ["3", "AUTH", "default"],
            ):  # fmt: skip
                with self.subTest(words=words):
                    self.assertIsInstance(client.call("HELLO", *words), ErrorReply)
                    self.assertRegex(client.call("GET", "k").text, "^NOAUTH ")
            # Still RESP2, still without a name.
            client.send(encode("AUTH", SECRET) + encode("GET", "k") + encode("CLIENT", "GETNAME"))
            self.assertEqual([client.read_reply()[1] for _ in range(3)],
                             [b"+OK\r\n", b"$-1\r\n", b"$-1\r\n"])  # fmt: skip

    def test_hello_changes_the_protocol_at_once(self):
        self.client.send(
            b"".join(encode(*words) for words in (
                ["HELLO", "3"], ["GET", "no"], ["HELLO", "2"], ["GET", "no"], ["HELLO", "3"],
                ["GET", "no"], ["RESET"], ["AUTH", SECRET], ["GET", "no"],
            ))
        )  # fmt: skip
        replies = [self.client.read_reply()[1] for _ in range(9)]
        self.assertEqual([reply[:1] for reply in replies[0:6:2]], [b"%", b"*", b"%"])
        self.assertEqual(replies[1:6:2], [b"_\r\n", b"$-1\r\n", b"_\r\n"])
        self.assertEqual(replies[6:], [b"+RESET\r\n", b"+OK\r\n", b"$-1\r\n"])

    def test_reset_logs_out(self):
        self.assertEqual(self.call("RESET"), b"RESET")
        self.assertRegex(self.call("GET", "k").text, "^NOAUTH ")

    def test_enumeration_of_users_and_keys(self):
        """A stranger's error is the same for what is there and what is not."""
        self.call("SET", "present", "1")
        with self.server.connect() as client:
            texts = {client.call("AUTH", *words).text for words in (
                ("wrong",), ("default", "wrong"), ("nobody", "wrong"), ("nobody", ""),
                ("nobody", SECRET),
            )}  # fmt: skip
            self.assertEqual(len(texts), 1)
            self.assertEqual(client.call("GET", "present"), client.call("GET", "absent"))
            self.assertEqual(client.call("NOSUCH").text[:20], "ERR unknown command ")

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


class SettingsTest(SecurityTest):
    """What a client may not make the server do."""

    def test_setname_and_setinfo_forge_no_lines(self):
        for name in ("a b", "a\nb", "a\r\nid=9", "\x00", "a\x00b", "\x7f", "\x1b[0m", "é"):
            for words in (["CLIENT", "SETNAME"], ["HELLO", "3", "SETNAME"],
                          ["CLIENT", "SETINFO", "LIB-NAME"], ["CLIENT", "SETINFO", "LIB-VER"]):
                with self.subTest(words=words, name=name):
                    self.assert_refused(*words, name)
        self.assertEqual(len(self.call("CLIENT", "LIST").splitlines()), 1)

    def test_config_module_and_debug_are_no_weapons(self):
        """Files outside the directory, code, the process' own state."""
        for words in (
            ["CONFIG", "SET", "dir", "/tmp"], ["CONFIG", "SET", "dbfilename", "x.so"],
            ["CONFIG", "SET", "dbfilename", "../x"], ["CONFIG", "SET", "appendfilename", "x"],
            ["CONFIG", "SET", "logfile", "/tmp/x"], ["CONFIG", "SET", "pidfile", "/tmp/x"],
            ["CONFIG", "SET", "unixsocket", "/tmp/x"], ["CONFIG", "SET", "aclfile", "/tmp/x"],
            ["CONFIG", "SET", "enable-debug-command", "yes"],
            ["CONFIG", "SET", "enable-protected-configs", "yes"],
            ["MODULE", "LOAD", "/tmp/x.so"], ["MODULE", "LOADEX", "/tmp/x.so"],
            ["MODULE", "UNLOAD", "bf"], ["DEBUG", "SLEEP", "0"], ["DEBUG", "RELOAD"],
            ["DEBUG", "SEGFAULT"], ["DEBUG", "DIGEST"], ["CONFIG", "REWRITE"],
        ):  # fmt: skip
            with self.subTest(words=words):
                self.server.expect_log("CONFIG REWRITE failed")
                self.assert_refused(*words)
        (module,) = self.call("MODULE", "LIST")
        self.assertEqual(module[1], b"bf")

    def test_a_snapshots_name_stays_in_the_directory(self):
        done = subprocess.run(
            [SERVER, "--dbfilename", "../x.rdb", "--port", "0"], capture_output=True, check=False,
            timeout=60,
        )  # fmt: skip
        self.assertEqual(done.returncode, 1)

    def test_there_is_no_interpreter(self):
        """CVE-2022-24735, -2024-46981, -2025-49844 and the like have nothing to run in."""
        for words in (
            ["EVAL", "return 1", "0"], ["EVALSHA", "0" * 40, "0"], ["EVAL_RO", "return 1", "0"],
            ["FCALL", "f", "0"], ["FCALL_RO", "f", "0"], ["EVALSHA_RO", "0" * 40, "0"],
        ):  # fmt: skip
            self.assertRegex(self.assert_refused(*words), "^ERR unknown command")
        for words in (["SCRIPT", "LOAD", "return 1"], ["FUNCTION", "LOAD", "#!lua name=x"]):
            self.assert_refused(*words)

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
