#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests that check_docs.py finds each kind of error in a small tree, and no error in this
repository."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import check_docs  # noqa: E402

OPTIONS = "| option |\n| --- |\n| `max-clients`, `max-slaves` | integer |\n"


class CheckDocsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "docs").mkdir()
        self.write("docs/configuration.md", OPTIONS)

    def write(self, path, text):
        (self.root / path).write_text(text, encoding="utf-8")

    def problems(self, text):
        self.write("README.md", text)
        pages = check_docs.Pages(self.root)
        pages.check()
        return pages.problems

    def assert_problem(self, text, words):
        problems = self.problems(text)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(words, problems[0])

    def test_this_tree(self):
        pages = check_docs.Pages(ROOT)
        pages.check()
        self.assertEqual(pages.problems, [])
        self.assertGreater(len(pages.texts), 15)

    def test_links(self):
        self.write("docs/other.md", "# Other\n\n## A `b`, c!\n\n## Twice\n\n## Twice\n")
        good = "# Top\n[x](docs/other.md) [y](docs/other.md#a-b-c) [z](#top) [w](docs)\n"
        self.assertEqual(self.problems(good + "[v](docs/other.md#twice-1)\n"), [])
        self.assert_problem("# Top\n\n[x](docs/none.md)\n", "README.md:3: the link leads nowhere")
        self.assert_problem("[x](docs/other.md#d)\n", "no heading has this anchor")
        self.assert_problem("[x](#nothing)\n", "no heading has this anchor")
        self.assertEqual(self.problems("```\n[x](none.md)\n```\n"), [])

    def test_paths(self):
        for folder in ("server", "core"):
            (self.root / folder).mkdir()
        self.write("server/unit.h", "")
        self.write("core/other.cpp", "")
        good = "`server/unit.h` `server/unit` `core/other --all` `core/` `docs/configuration.md`\n"
        self.assertEqual(self.problems(good), [])
        no_paths = "`server/*_test.cpp` `core/<name>.h` `tests/{a,b}.py` `build/x` `a server/x`\n"
        self.assertEqual(self.problems(no_paths), [])
        self.assertEqual(self.problems("```\n`core/none.h`\n```\n"), [])
        self.assert_problem("text\n`server/none.h`\n", "README.md:2: `server/none.h` names no file")
        self.assert_problem("`core/unit`\n", "`core/unit` names no file of this tree")
        self.assert_problem("`server/unit.h.cpp`\n", "names no file of this tree")

    def test_size_of_readme(self):
        self.assertEqual(self.problems("a line\n" * 130), [])
        self.assert_problem("a line\n" * 131, "131 lines and 262 words")
        self.assertEqual(self.problems("word " * 1_100), [])
        self.assert_problem("word " * 1_101, "0 lines and 1101 words")

    def test_external_links_are_only_listed(self):
        self.write("README.md", "[x](https://nowhere.example/a)\n")
        pages = check_docs.Pages(self.root)
        pages.check()
        self.assertEqual((pages.problems, pages.external), ([], {"https://nowhere.example/a"}))

    def test_options(self):
        self.assertEqual(self.problems("`max-clients 5` `--max-slaves` `redis-cli` `a.py`\n"), [])
        self.assert_problem("text\n`max-cleints 5`\n", "README.md:2: `max-cleints` looks like")
        self.assert_problem("`--no-such-thing`\n", "looks like an option")

    def test_figures(self):
        self.assert_problem("# A\n\n## B\nIt takes 5.1 ns.\n", "README.md:4: '5.1 ns' is a meas")
        self.assert_problem("# A\nscripts/bench.sh\n## B\n10.68 bits per item\n", "measured")
        (self.root / "scripts").mkdir()
        self.write("scripts/bench.sh", "")
        self.assertEqual(self.problems("# A\n## B\n5 ns (`scripts/bench.sh --only x`)\n"), [])
        self.assertEqual(self.problems("# A\n## B\n5 ns\n```\nbench/x.py\n```\n"), [])
        self.assertEqual(self.problems("# A\n## B\nat most 10 MB\n"), [])


if __name__ == "__main__":
    unittest.main()
