# SPDX-License-Identifier: MIT
"""The examples of README.md and docs/, run unchanged except for the port.

In a session of redis-cli a line `…` matches any number of lines of a reply.
"""

import pathlib
import re
import shlex
import tempfile
import unittest

from harness import ROOT, ServerTest
from harness.pages import PORT, PROGRAMS, blocks_of, run_program

# Debian has no package of their libraries.
NOT_RUN = {"java", "go"}


class ExamplesTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.server = self.start_server()
        folder = tempfile.TemporaryDirectory(prefix="bloomery-examples-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_block(self, language, text, number):
        """Returns the output."""
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
        """Each command of a redis-cli session must answer what the page shows."""
        shown = {}
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            for language, text in blocks_of(path.relative_to(ROOT)):
                if language == "" and "127.0.0.1:7000>" in text:
                    self.run_client(["redis-cli", "-p", self.server.port, "FLUSHALL"])
                    shown[path.name] = shown.get(path.name, 0) + self.check_session(text)
        print(f"\ncommands in sessions: {shown}")
        self.assertGreater(shown["README.md"], 5)
        self.assertGreater(shown["sizing.md"], 3)
        self.assertGreater(shown["commands.md"], 80)

    def test_each_bloom_command_is_explained(self):
        """Options, replies, errors: more than the command's row in the table."""
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
            # The program runs as on a terminal.
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


if __name__ == "__main__":
    unittest.main()
