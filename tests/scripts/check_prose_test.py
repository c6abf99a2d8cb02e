#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests check_prose.py with a bad and a good sample for each rule, and in a git repository with a
list of exceptions.
"""

import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import check_prose  # noqa: E402

LONG = "The server " + "reads one more word and " * 6 + "then stops."


def messages(path, text):
    return [each.message for each in check_prose.check_file(path, text)]


class RulesTest(unittest.TestCase):
    def assert_found(self, path, text, pattern):
        found = messages(path, text)
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], pattern)

    def assert_clean(self, path, text):
        self.assertEqual(messages(path, text), [])

    def test_phrases(self):
        for bad, name, good in (
            ("The peer sends no more.", "no more", "The peer sends no more than 10 bytes."),
            ("It does not run any more.", "no more", "It needs any more bytes that come."),
            ("The call is in vain.", "in vain", "The call fails."),
            ("The replica loads anew.", "anew", "The replica loads again."),
            ("The lock blocks nobody.", "nobody", "The lock blocks no one."),
            ("Besides, it counts.", "besides", "It also counts."),
            ("It has a key besides the value.", "besides", "It has a key and a value."),
            ("Everybody may read.", "nobody", "Everyone may read."),
            ("It waits for ever.", "for ever", "It waits for every key."),
            ("The server judges the file.", "judge", "The server validates the file."),
            ("It notes that a save is due.", "note", "Please note that the key is old."),
            ("It reads what is missing.", "what is", "What is a filter?"),
            ("The memory cannot be had.", "had", "It had 10 bytes."),
            ("The log hinders the end.", "ill", "The log prevents the end."),
            ("A leader has so many of them.", "so many", "It read so many bytes that it failed."),
            ("The slot belongs to whoever asked.", "whoever", "The slot belongs to the caller."),
            ("It keeps that which came last.", "whoever", "It keeps the last one."),
            ("The client is told of the end.", "tell", "The client is notified of the end."),
            ("It tells the journal.", "tell", "It notifies the journal."),
            ("A replica tells its offset.", "tell", "A replica reports its offset."),
            ("A probe tells alive from ready.", "tell", "A probe separates alive from ready."),
            ("The caller looks again.", "look again", "The caller retries."),
            ("It reads what stands there.", "stands", "RESP stands for a protocol."),
            ("The key stands in the log.", "stands", "The noun stands alone."),
            ("A lock for who has the key.", "who", "A client who has the key."),
            ("It asks for what it has.", "of what", "It asks for the key that it has."),
            ("It waits for so many seconds.", "so many", "It waits so many seconds in a row."),
            ("What it does here goes by it.", "goes by|opening", "Time goes by."),
            ("It stops amid a write.", "amid", "It stops during a write."),
            ("The thread is ill.", "ill", "The thread is stuck."),
        ):
            with self.subTest(bad):
                found = messages("core/a.h", f"// {bad}\n")
                self.assertTrue(found, bad)
                self.assertRegex(" ".join(found), rf"\((?:{name})\)")
                self.assert_clean("core/a.h", f"// {good}\n")

    def test_openings(self):
        for bad in ("What a thread may hold.", "Who is served first.", "Of a layer.",
                    "Behind recovery.", "For what lives on the loop.", "Whose key it is.",
                    "By the name, in any case.", "With whom it shares."):  # fmt: skip
            with self.subTest(bad):
                self.assert_found("core/a.h", f"// {bad}\n", r"\((opening|fragment)\)")
                self.assert_found("core/a.h", f"// It runs. {bad}\n", r"\((opening|fragment)\)")
        self.assert_clean("core/a.h", "// The caller knows what a thread may hold.\n")
        self.assert_clean("core/a.h", "// By default, a thread may hold it.\n")
        self.assert_clean("docs/a.md", "What is a filter? It is a set.\n")

    def test_long_sentences_of_joined_lines(self):
        wrapped = "\n".join(textwrap.wrap(LONG, 40))
        for path, mark in (("core/a.h", "// "), ("a.py", "# "), ("a.sh", "# "), ("a.md", "")):
            with self.subTest(path):
                text = textwrap.indent(wrapped, mark)
                self.assert_found(path, f"{text}\n", "a sentence of 34 words")
                half = textwrap.indent(wrapped.replace("word and", "word. And", 1), mark)
                self.assertEqual(len(messages(path, f"{half}\n")), 1)
                short = textwrap.indent(wrapped.replace("word and", "word. And"), mark)
                self.assert_clean(path, f"{short}\n")

    def test_sentences_without_a_verb(self):
        for bad in ("In memory that parent and child share.", "Too long for a number of a kind."):
            with self.subTest(bad):
                self.assert_found("core/a.h", f"// {bad}\n", "no verb")
        for good in ("The canonical text of a row, or the number.", "In memory, for the child.",
                     "In memory that parent and child can share.",
                     "With a lock the thread waits for it."):  # fmt: skip
            self.assert_clean("core/a.h", f"// {good}\n")

    def test_lists_and_tables_are_no_sentence(self):
        items = "".join(f"- an item of five words {number}\n" for number in range(9))
        self.assert_clean("a.md", items)
        self.assert_clean("a.md", f"| {LONG} | {LONG} |\n")
        self.assert_clean("a.md", f"```\n{LONG}\n```\n")
        self.assert_clean("core/a.h", "// SPDX-License-Identifier: MIT\n// The thing.\n")

    def test_docstrings_and_texts(self):
        self.assert_found("a.py", '"""The log names nobody."""\n', "nobody")
        self.assert_found("a.py", 'print("this names nobody here")\n', "nobody")
        self.assert_found("core/a.cpp", 'f("this names nobody here");\n', "nobody")
        self.assert_found("a.sh", "echo 'this names nobody here'\n", "nobody")
        for path in ("CMakeLists.txt", "Dockerfile", "conf/a.conf", "a.yml", "a.service"):
            self.assert_found(path, "# This names nobody.\n", "nobody")
        self.assert_found("a.1", ".TP\nThis names nobody.\n", "nobody")

    def test_quotations_are_left_alone(self):
        self.assert_clean("a.md", "The user `nobody` runs it.\n")
        self.assert_clean("core/a.h", '// Redis says "no more", as it always did.\n')
        self.assert_clean("core/a.cpp", 'f("nobody");\n')

    def test_names(self):
        for bad in ("tell_clients", "note_use", "judge_stream", "look_again", "looks_first",
                    "is_told", "told_keys", "has_told_", "may_be_misused", "misuse",
                    "shown_keys"):  # fmt: skip
            with self.subTest(bad):
                self.assert_found("core/a.h", f"void {bad}(int a);\n", f"the name `{bad}`")
                self.assert_found("a.py", f"def {bad}(a):\n    pass\n", f"the name `{bad}`")
        for good in ("notify_clients", "notes", "teller", "footnote_use", "lookup"):
            self.assert_clean("core/a.h", f"void {good}(int a);\n")
        self.assert_clean("a.py", "size = file.tell()\n")
        self.assert_clean("core/a.h", '// tell_clients() is gone.\n#include "core/note_use.h"\n')

    def test_names_of_tests(self):
        for bad in ("WhoIsServed", "WhatIsLostIsGone", "ThatItRuns", "KeyIsTold", "X" * 46):
            with self.subTest(bad):
                self.assert_found("tests/a.cpp", f"TEST_F(Some, {bad}) {{\n}}\n", "the test")
        for bad in ("test_what_is_lost", "test_key_is_told", "test_" + "x" * 46):
            with self.subTest(bad):
                self.assert_found("a.py", f"def {bad}(self):\n    pass\n", "the test")
        self.assert_clean("tests/a.cpp", "TEST(Some, HalfClosedClientGetsReplies) {\n}\n")
        self.assert_clean("tests/a.cpp", "TEST(Some, WholeCommandsStay) {\n}\n")
        self.assert_clean("a.py", "def test_whole_commands_stay(self):\n    pass\n")

    def test_subjects(self):
        for bad, pattern in (
            ("Tests: add one", "area: change"), ("add one", "area: change"),
            (f"tests: {'x' * 60}", "60 are allowed"), ("tests: add one.", "period"),
            ("tests: added one", "imperative"), ("tests: forgave windows", "imperative"),
            ("cluster: write the key anew", "anew"),
        ):  # fmt: skip
            with self.subTest(bad):
                found = list(check_prose.check_subject(bad))
                self.assertEqual(len(found), 1, found)
                self.assertRegex(found[0], pattern)
        for good in ("tests: add one", "server/net: seed the table", "tests: feed the parser"):
            self.assertEqual(list(check_prose.check_subject(good)), [])


class RepositoryTest(unittest.TestCase):
    """Tests in a git repository. Its first commit has bad lines and a list of exceptions that
    permits these lines."""

    OLD = "// The lock blocks nobody.\n\nvoid tell_clients();\n"
    LIST = "# The list.\n1 a.h\nname tell_clients\n"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.git("init", "-q", "-b", "main")
        self.commit("core: add a lock", **{"a.h": self.OLD, check_prose.EXCEPTIONS: self.LIST})
        self.commit("core: add nothing")

    def git(self, *arguments):
        subprocess.run(
            ["git", "-C", self.root, "-c", "user.name=A", "-c", "user.email=a@example.org",
             *arguments], check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def write(self, **files):
        for name, text in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def commit(self, subject, **files):
        self.write(**files)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)

    def check(self, *options):
        done = subprocess.run(
            [sys.executable, SCRIPTS / "check_prose.py", "--root", self.root, *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    def assert_found(self, *patterns, options=()):
        code, output = self.check(*options)
        self.assertEqual(code, 1, output)
        self.assertEqual(len(output.splitlines()), len(patterns) + 1, output)
        for pattern in patterns:
            self.assertRegex(output, f"(?m){pattern}")

    def assert_clean(self, *options):
        code, output = self.check(*options)
        self.assertEqual(code, 0, output)
        self.assertEqual(len(output.splitlines()), 1, output)

    def exceptions(self):
        return (self.root / check_prose.EXCEPTIONS).read_text()


class ExceptionsTest(RepositoryTest):
    def test_listed_findings_pass(self):
        self.assert_clean()

    def test_findings_of_unchanged_lines_fail(self):
        self.commit("core: add a page", **{"docs/b.md": "It names nobody.\n"})
        self.commit("core: add nothing")
        self.assert_found(r"^docs/b\.md:1: .*nobody")

    def test_one_finding_more_fails(self):
        self.commit("core: add a call", **{"a.h": "// It is anew.\n" + self.OLD})
        self.commit("core: add nothing")
        self.assert_found(r"^a\.h:1: .*anew", r"^a\.h:2: .*nobody", "^a.h: 2 findings, 1 are")

    def test_one_finding_less_fails_until_the_list_is_shortened(self):
        self.commit("core: change a comment", **{"a.h": "void tell_clients();\n"})
        self.assert_found("^a.h: 0 findings, 1 are listed .*--update")
        self.assert_clean("--update")
        self.assertEqual(self.exceptions(), "# The list.\nname tell_clients\n")

    def test_names_that_are_gone_fail(self):
        self.commit("core: rename", **{"a.h": self.OLD.replace("tell_", "notify_")})
        self.assert_found("no code has the name `tell_clients`")
        self.assert_clean("--update")
        self.assertEqual(self.exceptions(), "# The list.\n1 a.h\n")

    def test_deleted_files_leave_the_list(self):
        self.git("rm", "-q", "a.h")
        self.git("commit", "-q", "-m", "core: delete the lock")
        self.assert_clean("--update")
        self.assertEqual(self.exceptions(), "# The list.\n")

    def test_list_does_not_grow(self):
        self.commit("core: add b", **{
            "b.h": "// It is in vain.\nvoid tell_all();\n",
            check_prose.EXCEPTIONS: self.LIST + "1 b.h\nname tell_all\n",
        })  # fmt: skip
        self.assert_found(r"b\.h:1: .*in vain", "count of b.h may only fall", "`tell_all` is new")

    def test_update_lists_nothing_new(self):
        self.commit("core: add b", **{"b.h": "// It is in vain.\nvoid tell_all();\n"})
        self.assert_found(r"^b\.h:1: .*in vain", "^b.h:2: .*tell_all", options=["--update"])
        self.assertEqual(self.exceptions(), self.LIST)

    def test_new_rule_lets_the_list_grow(self):
        self.commit("core: add b", **{"b.h": "// It is in vain.\nvoid tell_all();\n"})
        self.commit("scripts: add a rule", **{check_prose.RULES: "# one more\n"})
        self.assert_clean("--update")
        self.assertIn("1 b.h\n", self.exceptions())
        self.assertIn("name tell_all\n", self.exceptions())
        self.commit("scripts: list b")
        self.assert_clean("HEAD~2")

    def test_renamed_files_keep_their_count(self):
        self.git("mv", "a.h", "b.h")
        self.git("commit", "-q", "-m", "core: rename the lock")
        self.assert_clean("--update")
        self.assertEqual(self.exceptions(), self.LIST.replace("a.h", "b.h"))

    def test_reason_excuses_changed_lines(self):
        changed = self.OLD.replace("The lock", "A lock")
        self.commit("core: change", **{"a.h": changed})
        self.assert_found(r"^a\.h:1: .*nobody")
        listed = self.LIST.replace("1 a.h", "1 a.h  # Redis' text")
        self.write(**{check_prose.EXCEPTIONS: listed})
        self.assert_clean("--update")
        self.assertEqual(self.exceptions(), listed)

    def test_all_reports_only(self):
        code, output = self.check("--all")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"a\.h:1: .*nobody")
        self.assertRegex(output, r"a\.h:3: .*tell_clients")

    def test_files_that_quote_the_rules_are_excluded(self):
        bad = "# It names nobody.\n"
        excluded = set(check_prose.EXCLUDED) - {check_prose.EXCEPTIONS}
        self.commit("core: add samples", **dict.fromkeys(excluded, bad))
        self.assert_clean()
        for path in check_prose.EXCLUDED:
            self.assertTrue((SCRIPTS.parent / path).is_file(), path)


class ChangedLinesTest(RepositoryTest):
    """check_prose.py must report a changed line, even if its file has no more findings than the
    list of exceptions allows."""

    def test_old_lines_are_left_alone(self):
        self.commit("core: add a call", **{"a.h": self.OLD + "void call();\n"})
        self.assert_clean()

    def test_changed_lines_are_found(self):
        self.commit("core: change", **{"a.h": self.OLD.replace("The lock", "A lock")})
        self.assert_found(r"^a\.h:1: .*nobody")

    def test_lines_not_committed_are_found(self):
        self.write(**{"a.h": "// It is in vain.\n" + self.OLD, "b.md": "It names nobody.\n"})
        self.assert_found(r"^a\.h:1: .*in vain", "^a.h: 2 findings", r"^b\.md:1: .*nobody")

    def test_sentence_with_a_changed_line_is_found(self):
        lines = textwrap.wrap(LONG, 40)
        old = "".join(f"// {line}\n" for line in [*lines[:2], "they end. It", *lines[2:]])
        self.commit("core: add a comment", **{"b.h": "// It ends.\n\n" + old})
        self.assert_clean()
        self.commit("core: join", **{"b.h": "// It ends.\n\n" + old.replace("they end. It", "it")})
        self.assert_found(r"^b\.h:3: a sentence")

    def test_new_names_are_found(self):
        self.commit("core: call it", **{"b.cpp": "void f() { tell_clients(); }\n"})
        self.assert_clean()
        self.commit("core: call another", **{"b.cpp": "void f() { tell_others(); }\n"})
        self.assert_found("tell_others")

    def test_subjects_since_the_base_are_found(self):
        self.commit("core: added nothing")
        self.assert_found("^commit .* imperative")
        self.commit("core: add nothing")
        self.assert_clean()
        self.assert_found("^commit .* imperative", options=["HEAD~2"])

    def test_branch_is_compared_with_main(self):
        self.git("checkout", "-q", "-b", "topic")
        self.commit("core: added nothing")
        self.commit("core: add nothing")
        self.assert_found("^commit .* imperative")


if __name__ == "__main__":
    unittest.main()
