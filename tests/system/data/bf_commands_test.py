#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compares the replies of BF.* commands with the expected bytes, in RESP2 and RESP3.

Some clients compare error texts, so these tests compare whole error texts. The texts are those of
RedisBloom. Some end with a hint that this server adds.

A row is (command, RESP2 reply, RESP3 reply). A row with one reply expects this reply in both
protocols. The rows of a table run in order on one server, once per protocol.
"""

import unittest

from harness import ServerTest

WRONG_TYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
NOT_FOUND = b"-ERR not found\r\n"
OK = b"+OK\r\n"
YES = (b":1\r\n", b"#t\r\n")
NO = (b":0\r\n", b"#f\r\n")


def error(text):
    return b"-" + text.encode() + b"\r\n"


def arity(name):
    return error(f"ERR wrong number of arguments for '{name}' command")


def answers(*flags):
    """Returns the RESP2 and the RESP3 array reply of BF.MADD or BF.MEXISTS with these answers."""
    head = b"*%d\r\n" % len(flags)
    return tuple(head + b"".join((NO, YES)[flag][i] for flag in flags) for i in (0, 1))


def full_after(*flags):
    """Returns the reply of a BF.MADD that stops at a full filter, in RESP2 and in RESP3. The array
    has these answers, followed by the error."""
    both = answers(*flags)
    head = b"*%d\r\n" % (len(flags) + 1)
    tail = error("ERR non scaling filter is full")
    return tuple(head + one.split(b"\r\n", 1)[1] + tail for one in both)


RATE_RANGE = error("ERR error rate must be in the range (0.000000, 1.000000)")
BAD_CAPACITY = error("ERR bad capacity: write an integer, such as 100000")
EXPANSION_RANGE = error("ERR expansion must be in the range [0, 32768]")


def unknown(word):
    return error(f"Unknown argument received: '{word}'")


RESERVE = [
    ("BF.RESERVE", arity("bf.reserve")),
    ("BF.RESERVE k 0.01", arity("bf.reserve")),
    ("BF.RESERVE k 0.01 100", OK),
    ("BF.RESERVE k 0.01 100", error("ERR item exists")),
    ("BF.RESERVE k x 100", error("ERR bad error rate")),
    ("BF.RESERVE k 0 100", RATE_RANGE),
    ("BF.RESERVE k 1 100", RATE_RANGE),
    ("BF.RESERVE k -0.5 100", RATE_RANGE),
    ("BF.RESERVE k inf 100", RATE_RANGE),
    ("BF.RESERVE k nan 100", error("ERR bad error rate")),
    ("BF.RESERVE k 0.01 x", BAD_CAPACITY),
    ("BF.RESERVE k 0.01 +5", BAD_CAPACITY),
    ("BF.RESERVE k 0.01 05", BAD_CAPACITY),
    ("BF.RESERVE k 0.01 1.5", BAD_CAPACITY),
    ("BF.RESERVE k 0.01 9223372036854775808", BAD_CAPACITY),
    ("BF.RESERVE k 0.01 100 EXPANSION", error("ERR no expansion")),
    ("BF.RESERVE k 0.01 100 EXPANSION x", error("ERR bad expansion")),
    ("BF.RESERVE k 0.01 100 EXPANSION -1", EXPANSION_RANGE),
    ("BF.RESERVE k 0.01 100 EXPANSION 32769", EXPANSION_RANGE),
    ("BF.RESERVE k 0.01 100 NONSCALING EXPANSION 2", error("Nonscaling filters cannot expand")),
    ("BF.RESERVE k 0.01 100 EXPANSION 2 NONSCALING", error("Nonscaling filters cannot expand")),
    ("BF.RESERVE k 0.01 100 NOSCALING", unknown("NOSCALING")),
    ("BF.RESERVE k 0.01 100 NO", unknown("NO")),
    ("SET s text", OK),
    ("BF.RESERVE s 0.01 100", WRONG_TYPE),
    # A bad number takes precedence over WRONGTYPE, because arguments are checked before the key.
    ("BF.RESERVE s x 100", error("ERR bad error rate")),
    ("BF.RESERVE a 0.01 100 expansion 4", OK),
    ("BF.RESERVE b 0.01 100 nonscaling", OK),
    ("BF.RESERVE c 0.01 100 EXPANSION 0", OK),
    ("BF.RESERVE d 0.01 100 EXPANSION 0 NONSCALING", OK),
    ("BF.RESERVE e 1.0E-4 100", OK),
    ("BF.RESERVE f .5 100", OK),
    ("BF.RESERVE g 0x0.1 100", OK),
    ("BF.RESERVE h 0.01 1", OK),
    ("BF.RESERVE i 0.01 100 EXPANSION 32768", OK),
    ("BF.RESERVE NONSCALING 0.01 100", OK),
    ("BF.RESERVE EXPANSION 0.01 100", OK),
    ("BF.INFO NONSCALING EXPANSION", b"*1\r\n:2\r\n", b"%1\r\n+Expansion rate\r\n:2\r\n"),
    ("BF.INFO a EXPANSION", b"*1\r\n:4\r\n", b"%1\r\n+Expansion rate\r\n:4\r\n"),
    ("BF.INFO b EXPANSION", b"*1\r\n$-1\r\n", b"%1\r\n+Expansion rate\r\n_\r\n"),
    ("BF.INFO c EXPANSION", b"*1\r\n$-1\r\n", b"%1\r\n+Expansion rate\r\n_\r\n"),
]

ADD_AND_EXISTS = [
    ("BF.ADD k", arity("bf.add")),
    ("BF.ADD k a b", arity("bf.add")),
    ("BF.MADD k", arity("bf.madd")),
    ("BF.EXISTS k", arity("bf.exists")),
    ("BF.EXISTS k a b", arity("bf.exists")),
    ("BF.MEXISTS k", arity("bf.mexists")),
    ("BF.CARD", arity("bf.card")),
    ("BF.CARD k x", arity("bf.card")),
    ("BF.EXISTS none a", *NO),
    ("BF.MEXISTS none a b", *answers(0, 0)),
    ("BF.CARD none", b":0\r\n"),
    ("EXISTS none", b":0\r\n"),
    ("BF.ADD k a", *YES),
    ("BF.ADD k a", *NO),
    ("bf.add k b", *YES),
    ("BF.MADD k a b c d", *answers(0, 0, 1, 1)),
    ("BF.MADD k e e", *answers(1, 0)),
    ("BF.EXISTS k a", *YES),
    ("BF.MEXISTS k a b c d e", *answers(1, 1, 1, 1, 1)),
    ("BF.CARD k", b":5\r\n"),
    (["BF.ADD", "k", b""], *YES),
    (["BF.ADD", "k", b""], *NO),
    (["BF.ADD", "k", b"\x00\xff\r\n"], *YES),
    (["BF.EXISTS", "k", b"\x00\xff\r\n"], *YES),
    (["BF.ADD", b"bin\x00\xff", b"x"], *YES),
    ("SET s text", OK),
    ("BF.ADD s a", WRONG_TYPE),
    ("BF.MADD s a b", WRONG_TYPE),
    ("BF.INSERT s ITEMS a", WRONG_TYPE),
    ("BF.CARD s", WRONG_TYPE),
    ("BF.INFO s", WRONG_TYPE),
    ("BF.EXISTS s a", *NO),
    ("BF.MEXISTS s a b", *answers(0, 0)),
    ("GET k", WRONG_TYPE),
    ("SETBIT k 1 1", WRONG_TYPE),
    ("INCR k", WRONG_TYPE),
    ("APPEND k x", WRONG_TYPE),
]

FULL_FILTER = [
    ("BF.RESERVE k 0.0001 3 NONSCALING", OK),
    ("BF.MADD k a b a c d e", *full_after(1, 1, 0, 1)),
    ("BF.ADD k f", error("ERR non scaling filter is full")),
    ("BF.ADD k a", *NO),
    ("BF.MADD k a b", *answers(0, 0)),
    ("BF.INSERT k ITEMS b f a", *full_after(0)),
    ("BF.CARD k", b":3\r\n"),
    ("BF.MEXISTS k a b c", *answers(1, 1, 1)),
]

INSERT = [
    ("BF.INSERT", arity("bf.insert")),
    ("BF.INSERT k ITEMS", arity("bf.insert")),
    ("BF.INSERT k CAPACITY", arity("bf.insert")),
    ("BF.INSERT k CAPACITY 10 ITEMS", arity("bf.insert")),
    ("BF.INSERT k NOCREATE ITEMS a", NOT_FOUND),
    ("EXISTS k", b":0\r\n"),
    ("BF.INSERT k ERROR x ITEMS a", error("Bad error rate")),
    ("BF.INSERT k ERROR 0 ITEMS a", error("Bad error rate")),
    ("BF.INSERT k ERROR 1 ITEMS a", error("Bad error rate")),
    (
        "BF.INSERT k CAPACITY x ITEMS a",
        error("Bad capacity: write an integer, such as 100000"),
    ),
    ("BF.INSERT k CAPACITY 0 ITEMS a", error("Bad capacity")),
    ("BF.INSERT k CAPACITY -1 ITEMS a", error("Bad capacity")),
    ("BF.INSERT k EXPANSION x ITEMS a", error("Bad expansion")),
    ("BF.INSERT k EXPANSION -1 ITEMS a", error("Bad expansion")),
    ("BF.INSERT k EXPANSION 32769 ITEMS a", error("Bad expansion")),
    ("BF.INSERT k BOGUS ITEMS a", unknown("BOGUS")),
    ("BF.INSERT k NO ITEMS a", unknown("NO")),
    ("EXISTS k", b":0\r\n"),
    ("BF.INSERT k ITEMS a b a", *answers(1, 1, 0)),
    ("BF.INSERT k CAPACITY 5000 NOCREATE ITEMS a c", *answers(0, 1)),
    ("BF.INFO k CAPACITY", b"*1\r\n:100\r\n", b"%1\r\n+Capacity\r\n:100\r\n"),
    ("BF.INSERT o nonscaling capacity 7 error 0.001 items a", *answers(1)),
    ("BF.INFO o CAPACITY", b"*1\r\n:7\r\n", b"%1\r\n+Capacity\r\n:7\r\n"),
    ("BF.INFO o EXPANSION", b"*1\r\n$-1\r\n", b"%1\r\n+Expansion rate\r\n_\r\n"),
    ("BF.INSERT p EXPANSION 0 ITEMS a", *answers(1)),
    ("BF.INFO p EXPANSION", b"*1\r\n$-1\r\n", b"%1\r\n+Expansion rate\r\n_\r\n"),
    ("BF.INSERT q CAPACITY 1 CAPACITY 9 ITEMS CAPACITY 20", *answers(1, 1)),
    ("BF.INFO q CAPACITY", b"*1\r\n:9\r\n", b"%1\r\n+Capacity\r\n:9\r\n"),
    ("BF.INSERT r", arity("bf.insert")),
    ("BF.INSERT r CAPACITY 30", arity("bf.insert")),
    ("EXISTS r", b":0\r\n"),
    ("BF.INSERT t NONSCALING EXPANSION 3 ITEMS a", *answers(1)),
    ("BF.INFO t EXPANSION", b"*1\r\n$-1\r\n", b"%1\r\n+Expansion rate\r\n_\r\n"),
]

INFO = [
    ("BF.INFO", arity("bf.info")),
    ("BF.INFO none", NOT_FOUND),
    # If the key is missing and the field is unknown, the error names the missing key.
    ("BF.INFO none NOSUCH", NOT_FOUND),
    ("BF.RESERVE k 0.01 2 EXPANSION 3", OK),
    ("BF.INFO k NOSUCH", error("Invalid information value")),
    ("BF.INFO k CAPACITY ITEMS", arity("bf.info")),
    ("BF.MADD k a b c", *answers(1, 1, 1)),
    ("BF.INFO k CAPACITY", b"*1\r\n:8\r\n", b"%1\r\n+Capacity\r\n:8\r\n"),
    ("BF.INFO k filters", b"*1\r\n:2\r\n", b"%1\r\n+Number of filters\r\n:2\r\n"),
    ("BF.INFO k Items", b"*1\r\n:3\r\n", b"%1\r\n+Number of items inserted\r\n:3\r\n"),
    ("BF.INFO k EXPANSION", b"*1\r\n:3\r\n", b"%1\r\n+Expansion rate\r\n:3\r\n"),
]

KEYSPACE = [
    ("BF.ADD k a", *YES),
    ("TYPE k", b"+MBbloom--\r\n"),
    ("OBJECT ENCODING k", b"$3\r\nraw\r\n"),
    ("COPY k l", b":1\r\n"),
    ("BF.ADD l b", *YES),
    ("BF.EXISTS k b", *NO),
    ("BF.EXISTS l a", *YES),
    ("RENAME l m", OK),
    ("BF.EXISTS m b", *YES),
    ("EXPIREAT m 4070908800", b":1\r\n"),
    ("BF.ADD m c", *YES),
    ("EXPIRETIME m", b":4070908800\r\n"),
    ("PERSIST m", b":1\r\n"),
    ("SCAN 0 TYPE MBbloom-- MATCH k", b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n"),
    ("SCAN 0 TYPE string", b"*2\r\n$1\r\n0\r\n*0\r\n"),
    ("SET k x", OK),
    ("TYPE k", b"+string\r\n"),
    ("DEL m", b":1\r\n"),
    ("BF.EXISTS m b", *NO),
]

TRANSACTION = [
    ("WATCH k", OK),
    ("BF.ADD k a", *YES),
    ("MULTI", OK),
    ("PING", b"+QUEUED\r\n"),
    ("EXEC", b"*-1\r\n", b"_\r\n"),
    # BF.ADD of a present item does not modify the key, so EXEC succeeds.
    ("WATCH k", OK),
    ("BF.ADD k a", *NO),
    ("MULTI", OK),
    ("BF.MADD k a b", b"+QUEUED\r\n"),
    ("EXEC", *[b"*1\r\n" + one for one in answers(0, 1)]),
    ("MULTI", OK),
    ("BF.ADD k", arity("bf.add")),
    ("EXEC", error("EXECABORT Transaction discarded because of previous errors.")),
]

TABLES = {
    "reserve": RESERVE,
    "add and exists": ADD_AND_EXISTS,
    "full filter": FULL_FILTER,
    "insert": INSERT,
    "info": INFO,
    "keyspace": KEYSPACE,
    "transaction": TRANSACTION,
}


class BfCommandsTest(ServerTest):
    def setUp(self):
        self.server = self.start_server()
        self.client = self.server.connect()
        self.addCleanup(self.client.close)

    def fresh(self, protocol):
        self.client.call("FLUSHALL")
        self.client.call("HELLO", protocol)

    def test_tables(self):
        for name, rows in TABLES.items():
            for protocol in (2, 3):
                # Each table has its own connection, so commands that close a connection do not
                # affect the next table.
                with self.server.connect() as client:
                    client.call("FLUSHALL")
                    client.call("HELLO", protocol)
                    self.check_table(client, name, rows, protocol)

    def check_table(self, client, name, rows, protocol):
        for number, (command, *replies) in enumerate(rows):
            words = command.split() if isinstance(command, str) else command
            expected = replies[min(protocol - 2, len(replies) - 1)]
            with self.subTest(table=name, row=number, protocol=protocol, command=words):
                self.assertEqual(client.call_raw(*words), expected)

    def test_filter_grows_and_forgets_nothing(self):
        items = [b"item:%d" % number for number in range(20000)]
        self.client.call("BF.RESERVE", "k", "0.001", "100")
        added = 0
        for start in range(0, len(items), 1000):
            added += sum(self.client.call("BF.MADD", "k", *items[start : start + 1000]))
        self.assertEqual(self.client.call("BF.CARD", "k"), added)
        self.assertEqual(set(self.client.call("BF.MEXISTS", "k", *items)), {1})
        strangers = [b"other:%d" % number for number in range(100_000)]
        false_positives = sum(self.client.call("BF.MEXISTS", "k", *strangers))
        # At this error rate, 100 false positives are expected. The limit 150 is five standard
        # deviations higher.
        self.assertLessEqual(false_positives, 150)
        self.assertGreater(self.client.call("BF.INFO", "k", "FILTERS")[0], 1)


if __name__ == "__main__":
    unittest.main()
