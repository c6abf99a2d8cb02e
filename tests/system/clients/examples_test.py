# SPDX-License-Identifier: MIT
"""Runs the examples of README.md and docs/. Only the port is changed.

In a session of redis-cli, a line `…` stands for any number of lines of a reply. A code block that
no test runs has the line `<!-- not run: REASON -->` before it.
"""

import pathlib
import re
import shlex
import tempfile
import unittest

from harness import ROOT, ServerTest, free_port
from harness.pages import PORT, PROGRAMS, blocks_of, reasons_of, run_program

# Java and Go programs are not run, because Debian has no package of their Redis clients.
NOT_RUN = {"java", "go"}
PAGES = [path.relative_to(ROOT) for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]]
# Maps a page and a language to the test that runs the page's code blocks in this language.
RUN_ELSEWHERE = {
    "docs/backup.md": {"sh": "walks_test.py"},
    "docs/cluster.md": {language: "partition_test.py" for language in PROGRAMS},
    "docs/migration.md": {"sh": "walks_test.py"},
    "docs/persistence.md": {"sh": "walks_test.py"},
    "docs/upgrading.md": {"sh": "walks_test.py"},
}


class ExamplesTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.server = self.start_server()
        folder = tempfile.TemporaryDirectory(prefix="bloomery-examples-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_block(self, language, text, number):
        """Runs a code block of a page, and returns its output."""
        text = text.replace(PORT, str(self.server.port))
        return run_program(self.folder, language, text, f"example{number}")

    def test_clients_page(self):
        blocks = blocks_of("docs/clients.md")
        languages = [language for language, _ in blocks]
        self.assertEqual(set(languages), set(PROGRAMS) | NOT_RUN)
        for number, (language, text) in enumerate(blocks):
            if language in NOT_RUN:
                continue
            for fresh in ("post:1", ""):
                printed = self.run_block(language, text, number)
                if language == "sh":
                    self.assertTrue(printed.split()[-3:] == ["1", "1", "0"], printed)
                    break
                shown = next(line for line in printed.splitlines() if line.startswith("show:"))
                self.assertEqual("post:1" in shown, bool(fresh), f"{language}: {printed}")
                self.assertIn("seen now:", printed)

    def test_sessions(self):
        """Each command in a redis-cli session of a page must get the reply that the page shows."""
        shown = {}
        for path in sorted(PAGES):
            for language, text in blocks_of(path):
                if language == "" and "127.0.0.1:7000>" in text:
                    self.run_client(["redis-cli", "-p", self.server.port, "FLUSHALL"])
                    shown[path.name] = shown.get(path.name, 0) + self.check_session(text)
        print(f"\ncommands in sessions: {shown}")
        self.assertGreater(shown["README.md"], 5)
        self.assertGreater(shown["sizing.md"], 3)
        self.assertGreater(shown["commands.md"], 80)

    def test_each_bloom_command_is_explained(self):
        """Under each command, docs/commands.md must explain its options, replies and errors, in
        addition to its row in the table.
        """
        page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
        sections = re.split(r"^### ", page, flags=re.MULTILINE)[1:]
        bloom = [section for section in sections if section.startswith("BF.")]
        self.assertGreater(len(bloom), 20)
        for section in bloom:
            words = re.split(r"\*Since .*\*\n", section.split("\n## ")[0])[1]
            self.assertTrue(words.strip(), section.splitlines()[0])

    def check_session(self, text):
        parts = re.split(r"^127\.0\.0\.1:7000> (.*)\n", text, flags=re.MULTILINE)[1:]
        for command, answer in zip(parts[::2], parts[1::2]):
            command = re.sub(r"\s+#.*$", "", command)
            # With the environment variable FAKETTY, redis-cli formats replies as on a terminal.
            printed = self.run_client(
                ["redis-cli", "-p", self.server.port, *shlex.split(command)],
                environment={"FAKETTY": "1"},
            )
            answer = re.sub(r"\s+#.*$", "", answer, flags=re.MULTILINE).strip()
            printed = "\n".join(line.rstrip() for line in printed.rstrip().splitlines())
            if "…" in answer:
                pattern = re.sub(r"(?m)^…$\n?", "\0", answer).split("\0")
                pattern = r"(?s:.*)".join(map(re.escape, pattern))
                self.assertRegex(printed.strip() + "\n", rf"\A{pattern}\n?\Z", command)
            else:
                self.assertEqual(printed.strip(), answer, command)
        return len(parts) // 2

    def test_readme_programs(self):
        blocks = [block for block in blocks_of("README.md") if block[0] in ("python",)]
        self.assertTrue(blocks)
        for number, (language, text) in enumerate(blocks):
            self.run_block(language, text, number)

    def test_filters_page(self):
        """Runs the programs of docs/filters.md, one per language. They use deletion, a window,
        expiry and several filters.
        """
        programs = [block for block in blocks_of("docs/filters.md") if block[0] in PROGRAMS]
        self.assertEqual({language for language, _ in programs}, set(PROGRAMS))
        for number, (language, text) in enumerate(programs):
            for _ in range(2):  # in the second run the filters already exist
                printed = self.run_block(language, text, number)
                for line in (r"deleted: 1", r"liked by: 1 0", r"expires: 86[34]\d\d"):
                    self.assertRegex(printed, rf"(?m)^{line}$", language)

    def test_blocks_for_pasting(self):
        """Sends each code block with the language `redis` to redis-cli. No reply may be an error.
        """
        pasted = {}
        for path in sorted(PAGES):
            self.run_client(["redis-cli", "-p", self.server.port, "FLUSHALL"])
            for text in (text for language, text in blocks_of(path) if language == "redis"):
                printed = self.run_client(
                    ["redis-cli", "-p", self.server.port], stdin=text.encode()
                )
                self.assertNotRegex(printed, r"(?m)^[A-Z]+ |error", text)
                pasted[path.name] = pasted.get(path.name, 0) + text.count("\n")
        print(f"\ncommands in blocks for pasting: {pasted}")
        self.assertGreater(pasted["README.md"], 5)

    def test_password_and_tls_in_ten_commands(self):
        configuration = self.folder / "server.conf"
        configuration.write_text("", encoding="utf-8")
        # The commands on the page change a configuration file, whose path must be the server's
        # first argument. The harness passes only options, so a shell inserts the path.
        server = self.start_server(prefix=("sh", "-c", f'exec "$0" {configuration} "$@"'))
        (text,) = [text for _, text in blocks_of("docs/security.md") if "openssl req" in text]
        self.assertEqual(len(text.replace("\\\n", "").splitlines()), 10)
        text = text.replace(PORT, str(server.port)).replace("7443", str(free_port()))
        printed = run_program(self.folder, "sh", text)
        self.assertRegex(printed, r"OK\nOK\nOK\n1\nThis user has no permissions .*\nOK\nOK\n")
        self.assertIn("tls-port", configuration.read_text(encoding="utf-8"))

    def test_every_block_is_run_or_has_a_reason(self):
        reasons = []
        for path in sorted(PAGES):
            for language, text, reason in reasons_of(path):
                elsewhere = RUN_ELSEWHERE.get(str(path), {})
                if reason:
                    reasons.append(f"{path}: {text.splitlines()[0]} ({reason})")
                elif language and language not in elsewhere:
                    known = {"README.md": {"python"}, "docs/security.md": {"sh"}}.get(
                        str(path), set(PROGRAMS)
                    )
                    self.assertIn(language, known | {"redis"}, f"{path}: {text}")
        print("\nnot run:", *reasons, sep="\n  ")


if __name__ == "__main__":
    unittest.main()
