#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests of the harness, above all that its checks fail when a server is wrong."""

import contextlib
import io
import itertools
import os
import pathlib
import random
import socket
import tempfile
import types
import unittest
from unittest import mock

from harness import Process, ServerTest, counts, free_port, mode_matrix
from harness.command_stream import CommandStream
from harness.mode_matrix.cell_run import Client
from harness.mode_matrix.covering_array import covering_array
from harness.mode_matrix.filter_model import FilterModel
from harness.reply_matching import values_match
from harness.resp import Connection, ErrorReply, Push, encode

# A fake server. `--say` sets its log lines, and `--exit` its exit status after SIGTERM.
STAND_IN = """#!/usr/bin/python3
import signal, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(int(options.get("--exit", 0))))
for text in options.get("--say", "").split("|"):
    print("1:M 20 Nov 2026 09:37:03.456 " + text, flush=True)
print("1:M 20 Nov 2026 09:37:03.456 * Ready to accept connections", flush=True)
while True:
    signal.pause()
"""


class ProcessTest(unittest.TestCase):
    def problems(self, *options, announce=None):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "stand-in")
            program.write_text(STAND_IN, encoding="ascii")
            program.chmod(0o755)
            process = Process(program, options)
            process.wait_until_ready()
            if announce:
                process.expect_log(announce)
            return process.stop()

    def test_clean_end(self):
        self.assertEqual(self.problems("--say", "* fine|- detail|. chatter"), [])

    def test_exit_code(self):
        self.assertIn("exit code 3 instead of 0 at the end", self.problems("--exit", "3"))

    def test_warning_has_to_be_announced(self):
        self.assertIn("unannounced warning", self.problems("--say", "# disk on fire")[0])
        self.assertEqual(self.problems("--say", "# disk on fire", announce="on fire"), [])

    def test_sanitizer_report_is_never_accepted(self):
        said = "* ==1==ERROR: AddressSanitizer: heap-use-after-free"
        self.assertIn("sanitizer report", self.problems("--say", said, announce=".*")[0])


class SkippedTest(unittest.TestCase):
    def test_skipped_test_is_reported(self):
        class Skipping(ServerTest):
            def test(self):
                self.skipTest("no disk here")

        output = io.StringIO()
        result = unittest.TestResult()
        with contextlib.redirect_stdout(output):
            Skipping("test").run(result)
        self.assertEqual(len(result.skipped), 1)
        self.assertRegex(output.getvalue(), r"(?m)^SKIPPED \S*Skipping.test: no disk here$")


class RespTest(unittest.TestCase):
    """Tests that Connection parses every kind of reply, sent whole and byte by byte."""

    REPLIES = [
        (b"+OK\r\n", b"OK"),
        (b"-ERR no\r\n", ErrorReply("ERR no")),
        (b":-5\r\n", -5),
        (b"$-1\r\n", None),
        (b"*-1\r\n", None),
        (b"_\r\n", None),
        (b"$0\r\n\r\n", b""),
        (b"$4\r\na\r\nb\r\n", b"a\r\nb"),
        (b"#t\r\n", True),
        (b",0.5\r\n", 0.5),
        (b"=6\r\ntxt:hi\r\n", b"hi"),
        (b"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", [1, [b"x"]]),
        (b"%1\r\n+k\r\n*0\r\n", {b"k": []}),
        (b"~1\r\n#f\r\n", [False]),
        (b">1\r\n+note\r\n", Push([b"note"])),
    ]

    def test_replies(self):
        for raw, value in self.REPLIES:
            for step in (len(raw), 1):
                with self.subTest(raw=raw, step=step):
                    self.assertEqual(self.read(raw, step), (value, raw))

    def read(self, raw, step):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            with Connection(listener.getsockname()[1], timeout_s=5) as client:
                peer, _ = listener.accept()
                with peer:
                    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    for start in range(0, len(raw), step):
                        peer.sendall(raw[start : start + step])
                    return client.read_reply()

    def test_encode(self):
        self.assertEqual(encode("SET", b"\xff", 1), b"*3\r\n$3\r\nSET\r\n$1\r\n\xff\r\n$1\r\n1\r\n")


class DifferentialRulesTest(unittest.TestCase):
    def test_only_times_may_differ(self):
        self.assertTrue(values_match(b"TTL", 100, 101, []))
        self.assertFalse(values_match(b"TTL", 100, 200, []))
        self.assertFalse(values_match(b"TTL", -1, -2, []))
        self.assertFalse(values_match(b"TTL", ErrorReply("a"), ErrorReply("b"), []))
        self.assertFalse(values_match(b"GET", b"100", b"101", []))
        self.assertTrue(values_match(b"KEYS", [b"a", b"b"], [b"b", b"a"], []))
        self.assertFalse(values_match(b"MGET", [b"a", b"b"], [b"b", b"a"], []))

    def test_compares_transactions_by_queued_commands(self):
        self.assertTrue(values_match(b"EXEC", [b"OK", 100], [b"OK", 101], [b"SET", b"TTL"]))
        self.assertFalse(values_match(b"EXEC", [b"OK", 100], [b"OK", 101], [b"SET", b"INCR"]))
        self.assertFalse(values_match(b"EXEC", [1], [1, 2], [b"INCR", b"INCR"]))

    def test_same_seed_gives_same_commands(self):
        streams = [CommandStream(random.Random(7)) for _ in range(2)]
        for stream in streams:
            stream.start_s = 1_800_000_000
        commands = [[stream.next() for _ in range(5000)] for stream in streams]
        self.assertEqual(*commands)
        names = {command[0].upper() for command in commands[0] if command}
        wanted = """SETBIT GETBIT BITCOUNT BITPOS BITOP BITFIELD BITFIELD_RO GET SET GETSET GETDEL
            GETEX SETNX SETEX PSETEX MGET MSET MSETNX APPEND STRLEN GETRANGE SETRANGE SUBSTR INCR
            DECR INCRBY DECRBY INCRBYFLOAT LCS DEL UNLINK EXISTS TYPE TOUCH RENAME RENAMENX COPY
            MOVE KEYS SCAN DBSIZE FLUSHDB SWAPDB SELECT EXPIRE PEXPIRE EXPIREAT PEXPIREAT TTL PTTL
            EXPIRETIME PEXPIRETIME PERSIST OBJECT MULTI EXEC DISCARD WATCH ECHO PING"""
        self.assertEqual({name.encode() for name in wanted.split()} - names, set())


class CountTest(unittest.TestCase):
    def count(self, **environment):
        with mock.patch.dict(os.environ, environment):
            return counts.count("KILL_CYCLES")

    def test_tier_and_override(self):
        row = counts.COUNTS["KILL_CYCLES"]
        self.enterContext(mock.patch.dict(os.environ))
        os.environ.pop("BLOOMERY_KILL_CYCLES", None)
        self.enterContext(mock.patch.object(counts, "IS_LONG", False))
        with mock.patch.object(counts, "SANITIZED", False):
            self.assertEqual(self.count(), row.default)
            with mock.patch.object(counts, "IS_LONG", True):
                self.assertEqual(self.count(), row.long)
                self.assertEqual(self.count(BLOOMERY_KILL_CYCLES="7"), 7)
        with mock.patch.object(counts, "SANITIZED", True):
            self.assertEqual(self.count(), row.sanitized)
            with mock.patch.object(counts, "IS_LONG", True):
                self.assertEqual(self.count(), row.default)


class CoveringArrayTest(unittest.TestCase):
    PARAMETERS = ["abcde", "12", "uvwxyz", "+-", "ABCDEFG"]

    def combinations(self, rows, strength):
        columns = list(itertools.combinations(range(len(self.PARAMETERS)), strength))
        return {(of, tuple(row[i] for i in of)) for row in rows for of in columns}

    def test_all_combinations_are_in_few_rows(self):
        every_row = list(itertools.product(*self.PARAMETERS))
        for strength, rows_max in ((2, 44), (3, 260)):
            for seed in range(3):
                rows = covering_array(self.PARAMETERS, strength, random.Random(seed))
                missing = self.combinations(every_row, strength) - self.combinations(rows, strength)
                self.assertEqual(missing, set())
                self.assertLessEqual(len(rows), rows_max)
                again = covering_array(self.PARAMETERS, strength, random.Random(seed))
                self.assertEqual(rows, again)

    def test_impossible_pairs_are_absent(self):
        def is_possible(row):
            return not (row[0] == "a" and row[4] in "ABC") and row[1] + row[3] != "1+"

        every_row = filter(is_possible, itertools.product(*self.PARAMETERS))
        rows = covering_array(self.PARAMETERS, 2, random.Random(1), is_possible)
        self.assertEqual(self.combinations(rows, 2), self.combinations(every_row, 2))
        self.assertTrue(all(is_possible(row) for row in rows))


class ModeMatrixTest(unittest.TestCase):
    def choose(self, strength=2, rules=mode_matrix.RULES):
        return mode_matrix.choose_cells(strength, random.Random(1), rules=rules)

    def test_excluded_pairs_are_absent(self):
        excluded = mode_matrix.Excluded("a reason"), {"kind": ["bitmap"], "event": ["promotion"]}
        for cell in self.choose(rules=[excluded]):
            self.assertFalse(cell.kind == "bitmap" and cell.event == "promotion", cell)

    def test_each_refused_pair_has_a_cell_of_its_own(self):
        events = ["full_sync", "promotion"]
        refused = mode_matrix.Refused("an error"), {"configuration": ["tls"], "event": events}
        cells = self.choose(rules=[refused])
        found = [cell.event for cell in cells if mode_matrix.matches(cell, refused[1])]
        self.assertEqual(sorted(found), events)
        # A cell whose event the server rejects may end before it tests anything. So the other cells
        # must contain each kind of value with each event.
        others = [cell for cell in cells if not mode_matrix.matches(cell, refused[1])]
        kinds = {(cell.kind, cell.event) for cell in others}
        self.assertEqual(
            len(kinds), len(mode_matrix.PARAMETERS["kind"]) * len(mode_matrix.PARAMETERS["event"])
        )

    def test_names_of_cells_are_unique(self):
        cells = [mode_matrix.Cell(*v) for v in itertools.product(*mode_matrix.PARAMETERS.values())]
        self.assertEqual(len({str(cell) for cell in cells}), len(cells))


class ExactFilters:
    """A fake server whose filters make no errors except those that the test injects."""

    def __init__(self):
        self.items = {}
        self.counts = {}

    def run(self, name, key, *words):
        found = self.items.setdefault(key, set())
        if name == "COPY":
            self.items[words[0]] = set(found)
            self.counts[words[0]] = self.counts[key]
            return 1
        if name == "BF.CARD":
            return self.counts[key]
        answers = [int(item in found) for item in words]
        if name == "BF.MADD":
            found.update(words)
            self.counts[key] = len(found)
            return [1 - answer for answer in answers]
        return {"BF.MEXISTS": answers}[name]


class FilterModelTest(unittest.TestCase):
    """Tests that FilterModel of the mode matrix detects each kind of error of a filter."""

    def setUp(self):
        self.server = ExactFilters()
        run = types.SimpleNamespace(rng=random.Random(1), clock=types.SimpleNamespace(now_ms=0))
        self.model = FilterModel(run, ())
        self.model.begin(self.server)
        self.key = self.model.keys()[0]
        self.model.madd(self.server, self.key, ["a", "b", "a"])

    def test_a_right_filter(self):
        self.model.check(self.server)

    def test_a_lost_item(self):
        self.server.items[self.key].remove("a")
        with self.assertRaisesRegex(AssertionError, "lost 1 of"):
            self.model.check(self.server)

    def test_a_wrong_count(self):
        self.server.counts[self.key] += 1
        with self.assertRaisesRegex(AssertionError, "counts"):
            self.model.check(self.server)

    def test_bits_that_were_never_set(self):
        self.server.items[self.key].update(f"absent:{number}" for number in range(50))
        with self.assertRaisesRegex(AssertionError, "finds 50 absent items"):
            self.model.check(self.server)

    def test_an_error_inside_of_a_reply(self):
        reply = [1, [0, ErrorReply("ERR full")]]
        client = Client([types.SimpleNamespace(call=lambda *_: reply)], {})
        with self.assertRaisesRegex(AssertionError, "ERR full"):
            client.run("EXEC")


class FreePortTest(unittest.TestCase):
    def test_port_can_be_bound(self):
        with socket.create_server(("127.0.0.1", free_port())) as server:
            self.assertGreater(server.getsockname()[1], 0)


if __name__ == "__main__":
    unittest.main()
