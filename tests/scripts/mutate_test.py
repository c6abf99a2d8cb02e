#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks which lines mutate.py changes, how it selects mutations, and how it runs tests."""

import argparse
import pathlib
import sys
import tempfile
import threading
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import mutate  # noqa: E402
import mutation_operators  # noqa: E402
import mutation_tests  # noqa: E402

PATH = "core/a.cpp"


def body(*lines):
    return "int f(int a, int b) {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def afters(*lines):
    """Makes a function with these lines as its body, and mutates it. Returns the changed line of
    each mutation, without indentation.
    """
    return [
        mutation.after.strip() for mutation in mutation_operators.candidates(PATH, body(*lines))
    ]


class OperatorsTest(unittest.TestCase):
    def test_swaps_operators(self):
        for before, after in (
            ("<", "<="), (">=", ">"), ("==", "!="), ("&&", "||"), ("+", "-"), ("*", "/"),
        ):  # fmt: skip
            with self.subTest(before):
                self.assertEqual(afters(f"return a {before} b;"), [f"return a {after} b;"])

    def test_leaves_templates_and_references(self):
        self.assertEqual(afters("std::vector<int> x(a, b);"), [])
        self.assertEqual(afters("const auto&& x = f(a);", "char* const y = g(b);"), [])

    def test_changes_constants_both_ways(self):
        self.assertEqual(afters("return g(a, 7U);"), ["return g(a, 8U);", "return g(a, 6U);"])
        self.assertEqual(afters("return g(a, 0);"), ["return g(a, 1);"])

    def test_leaves_digits_of_names_and_fractions(self):
        self.assertEqual(afters("return crc64(a, 0x10, 1.5, x2);"), [])

    def test_swaps_words(self):
        self.assertEqual(afters("return g(true);"), ["return g(false);"])
        self.assertEqual(afters("return std::min(a, b);"), ["return std::max(a, b);"])

    def test_negates_conditions(self):
        self.assertEqual(afters("if (g(a)) {", "}"), ["if (!(g(a))) {"])

    def test_does_not_negate_declarations(self):
        self.assertEqual(afters("if (auto x = g(a)) {", "}"), [])

    def test_removes_statements(self):
        for statement in ("g(a);", "map_[a].erase(b);", "sum_ = a;", "sum_ += a;", "return;"):
            with self.subTest(statement):
                self.assertIn(";", afters(statement))

    def test_removes_early_returns(self):
        self.assertIn(";", afters("if (a) return b;"))

    def test_does_not_remove_parts_of_statements(self):
        self.assertNotIn(";", afters("return h(b,", "g(a));"))
        self.assertNotIn(";", afters("const int x =", "g(a);"))
        self.assertNotIn(";", afters("int x = g(a);"))

    def test_leaves_comments_texts_logs_and_assertions(self):
        self.assertEqual(afters(
            "// a == b", 'g2("a < 1 && true");', "assert(a == b);", "log_.warn(a + 1);",
            "static_assert(1 == 1);", "x.reserve(1);", "#define X 1",
        ), [";"])  # fmt: skip

    def test_leaves_lines_outside_functions(self):
        text = "constexpr int kSize = 7;\nint f(int a = 1);\n"
        self.assertEqual(mutation_operators.candidates(PATH, text), [])

    def test_changes_functions_of_one_line(self):
        found = mutation_operators.candidates(PATH, "bool f(int a) { return a == 1; }\n")
        self.assertEqual(len(found), 3)


class SelectionTest(unittest.TestCase):
    TEXTS = {PATH: body("return a < b;"), "core/b.cpp": body(*["g(a + 1, true);"] * 30)}

    def select(self, seed):
        return list(mutation_operators.Selection(self.TEXTS, seed))

    def test_same_seed_selects_the_same(self):
        self.assertEqual(self.select(28), self.select(28))
        self.assertNotEqual(self.select(28), self.select(29))

    def test_selects_each_mutation_once(self):
        drawn = self.select(1)
        self.assertEqual(len(drawn), len(set(drawn)))
        self.assertEqual(len(drawn), 1 + 30 * 5)

    def test_prefers_large_files(self):
        self.assertGreater(sum(each.path == "core/b.cpp" for each in self.select(1)[:10]), 5)


class ApplyTest(unittest.TestCase):
    def setUp(self):
        self.text = body("return a < b;")
        self.mutation = mutation_operators.candidates(PATH, self.text)[0]

    def test_changes_one_line(self):
        changed = mutation_operators.apply(self.mutation, self.text)
        self.assertEqual(changed, body("return a <= b;"))

    def test_refuses_another_line(self):
        with self.assertRaises(ValueError):
            mutation_operators.apply(self.mutation, "\n" + self.text)

    def test_finds_a_line_that_moved(self):
        moved = mutation_operators.relocate(self.mutation, "\n\n" + self.text)
        self.assertEqual(moved.line, 4)
        self.assertIsNone(mutation_operators.relocate(self.mutation, body("return b;")))


class ReportTest(unittest.TestCase):
    def row(self, number, caught_by):
        mutation = mutation_operators.candidates(PATH, body("return a < b;"))[0]
        return {"number": number, **mutation._asdict(), "caught_by": caught_by, "seconds": 1}

    def test_sums_by_kind_of_test(self):
        rows = [self.row(1, "unit core_tests"), self.row(2, "system acl"), self.row(3, "")]
        self.assertEqual(mutate.summarize(rows), "caught 2 of 3 (unit 1, system 1)")

    def test_compares_by_number(self):
        old = {"mutations": [self.row(1, "unit core_tests"), self.row(2, "")]}
        now = [self.row(1, ""), self.row(2, "")]
        self.assertEqual([row["number"] for row in mutate.lost(old, now)], [1])

    def test_reads_old_mutations(self):
        old = {"mutations": [self.row(4, "")]}
        found = list(mutate.from_old(old, {PATH: "\n" + body("return a < b;")}))
        self.assertEqual([(number, each.line) for number, each in found], [(4, 3)])
        self.assertEqual([each for _, each in mutate.from_old(old, {PATH: ""})], [None])

    def test_finds_lines_of_moved_files(self):
        moved = "server/" + pathlib.Path(PATH).name
        texts = {"server/other.cpp": body("return a < b;"), moved: "\n" + body("return a < b;")}
        ((_, found),) = mutate.from_old({"mutations": [self.row(4, "")]}, texts)
        self.assertEqual((found.path, found.line), (moved, 3))
        # A file that has not moved is not searched for elsewhere.
        found = list(mutate.from_old({"mutations": [self.row(4, "")]}, {**texts, PATH: ""}))
        self.assertEqual([each for _, each in found], [None])

    def test_replaces_mutations_that_do_not_compile(self):
        mutation = mutation_operators.candidates(PATH, body("return a < b;"))[0]
        trial = mock.Mock()
        trial.run.side_effect = [None, "", "unit core_tests"]
        options = argparse.Namespace(only=None, json=None, count=2)
        with mock.patch("builtins.print"):
            rows = mutate.run_all(enumerate([mutation] * 9, 1), trial, options, {})
        self.assertEqual([row["number"] for row in rows], [2, 3])


class TrialTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = pathlib.Path(folder.name) / PATH
        self.source.parent.mkdir()
        self.source.write_text(body("return a < b;"))
        for name, value in (("TREE", pathlib.Path(folder.name)), ("build", self.built)):
            patched = mock.patch.object(mutate, name, value)
            patched.start()
            self.addCleanup(patched.stop)
        self.compiles = True
        self.programs = mock.Mock()
        self.programs.in_order.return_value = ["core_tests", "server_tests"]
        self.system = mock.Mock()
        self.mutation = mutation_operators.candidates(PATH, self.source.read_text())[0]

    def built(self, _targets, _jobs):
        self.assertEqual(self.source.read_text(), body("return a <= b;"))
        return self.compiles, ""

    def result(self, *caught):
        self.programs.catches.side_effect = [*caught, *[False] * 9]
        found = mutate.Trial(self.programs, self.system, 1).run(self.mutation)
        self.assertEqual(self.source.read_text(), body("return a < b;"))
        return found

    def test_asks_the_mirror_first_and_system_tests_last(self):
        self.system.catching.return_value = "acl"
        self.assertEqual(self.result(True), "unit core_tests of the file")
        self.assertEqual(self.result(False, True), "unit core_tests")
        self.assertEqual(self.result(False, False, True), "unit server_tests")
        self.assertEqual(self.result(), "system acl")
        self.system.catching.return_value = ""
        self.assertEqual(self.result(), "")

    def test_mutation_that_does_not_compile_is_no_result(self):
        self.compiles = False
        self.assertIsNone(self.result())


class RunTest(unittest.TestCase):
    def test_ends_a_session_after_the_timeout(self):
        done = mutation_tests.run(["sh", "-c", "sleep 600 & sleep 600"], timeout_s=0.2)
        self.assertIsNone(done.code)

    def test_ends_a_session_on_request(self):
        stop = threading.Event()
        stop.set()
        self.assertIsNone(mutation_tests.run(["sleep", "600"], stop=stop).code)

    def programs(self, script, timeout_s=60):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = pathlib.Path(folder.name, "core_tests")
        program.write_text(f"#!/bin/sh\ncd {folder.name}\n{script}\n")
        program.chmod(0o755)
        programs = mutation_tests.Programs(pathlib.Path(folder.name), None, 2)
        programs.timeout_s["core_tests"] = timeout_s
        return programs

    def test_a_failing_part_catches(self):
        self.assertTrue(self.programs('[ "$GTEST_SHARD_INDEX" != 5 ]').catches("core_tests"))
        self.assertFalse(self.programs("exit 0").catches("core_tests"))

    def test_failure_that_does_not_repeat_is_ignored(self):
        programs = self.programs("mkdir $GTEST_SHARD_INDEX && exit 1; exit 0")
        self.assertFalse(programs.catches("core_tests"))

    def test_a_crash_and_a_timeout_catch(self):
        self.assertTrue(self.programs("kill -SEGV $$").catches("core_tests"))
        self.assertTrue(self.programs("sleep 600", timeout_s=1).catches("core_tests"))

    def test_an_empty_filter_runs_nothing(self):
        self.assertFalse(self.programs("exit 1").catches("core_tests", ""))

    def test_filter_names_the_suites_of_a_file(self):
        text = "TEST(A, X) {}\nTEST_F(B, Y) {}\nTEST_F(B, Z) {}\n"
        self.assertEqual(
            mutation_tests.suites_filter(text), "A.*:*/A.*:A/*:B.*:*/B.*:B/*"
        )

    def test_likely_tests_come_first(self):
        names = ["server", "acl", "replica_shutdown", "replication"]
        path = "server/session/acl/user.cpp"
        self.assertEqual(max(names, key=lambda name: (mutation_tests.likeness(path, name), name)),
                         "server")  # fmt: skip
        self.assertEqual(mutation_tests.likeness("core/a.cpp", "acl"), 0)
        self.assertEqual(mutation_tests.likeness(path, "acl"), 1)


if __name__ == "__main__":
    unittest.main()
