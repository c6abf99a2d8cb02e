#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks README.md, CONTRIBUTING.md and docs/ for errors that no test of the server finds.

Usage: check_docs.py [--root DIR] [--external]
  --root      the tree to check (default: the tree of this script)
  --external  list the external URLs of the pages; the script does not fetch them

Rules: links lead to existing files and headings. A path of this tree in backticks exists. A word
with the form of a server option is in docs/configuration.md, which lists all options. A section
with measured figures names the command that prints the figures. README.md has at most 130 lines and
1,100 words.
"""

import argparse
import pathlib
import re
import sys

LINK = re.compile(r"(?<!\\)\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
# Matches only option names of several words, such as `io-threads`. A single word such as `port` may
# mean something else.
OPTION = re.compile(r"^(?:--)?([a-z][a-z0-9]*(?:[-.][a-z0-9]+)+|[a-z]+_[a-z_]+cpulist)$")
# Words that look like an option of the server but are not.
NOT_OPTIONS = {
    # Names of fields in replies.
    "qbuf-free", "entry-id", "timestamp-created", "timestamp-last-updated",
    # These words are names of programs, packages and libraries.
    "bloomery-server", "bloomery-cluster", "bloomery-docs", "redis-server", "redis-cli",
    "redis-benchmark", "redis-sentinel", "redis-tools", "valkey-server", "valkey-cli",
    "valkey-bloom", "native-2", "valkey-helm", "redis-py", "node-redis", "valkey-glide", "redis-rb",
    "etcd-server", "etcd-client", "prometheus-redis-exporter",
    # These words are names of threads.
    "huge-pages", "append-log", "cluster-role", "cluster-file",
    # These words are fields of CLIENT LIST, AUX fields of snapshots, fields or values of INFO,
    # latency events, or options of Sentinel.
    "tot-mem", "tot-net-in", "tot-net-out", "tot-cmds", "lib-name", "lib-ver", "aof-write",
    "redis-ver", "redis-bits", "used-mem",
    "repl-stream-db", "repl-id", "repl-offset", "aof-base", "bloomery-ver",
    "bloomery-foreign-stream", "bloomery-ahead", "waiting-for-sync",
    "failover-in-progress", "down-after-milliseconds",
}
# Matches words that end like a file name. Such a word is not checked as an option, because
# check_tree.py checks whether the file exists.
FILE = re.compile(
    r"\.(?:aof|cc|conf|cpp|crt|deb|go|h|html|js|json|key|log|md|mjs|pem|py|rdb|sh|txt|yml)$"
)
# Matches a path relative to the root of the tree, without wildcards or a <placeholder>. Pages may
# leave out the suffix .h or .cpp, which UNIT_SUFFIXES adds.
PATH = re.compile(
    r"^(?:bench|conf|core|docs|persistence|protocol|scripts|server|tests)/[^*?<>{}\[\]…]*$"
)
UNIT_SUFFIXES = ("", ".h", ".cpp")
README_LINES_MAX = 130
README_WORDS_MAX = 1_100
# Matches figures that only a measurement can give: nanoseconds, ratios, bits per item. Sizes and
# percentages are not matched, because they may be limits.
FIGURE = re.compile(
    r"\b\d[\d,.]*(?: to \d[\d,.]*| / \d[\d,.]*)? ?(?:ns|µs)\b"
    r"|\b\d+(?:\.\d+)? times (?:as|the)\b|\b\d+\.\d+ bits per item\b"
)
COMMAND = re.compile(
    r"(?:scripts|bench|build/release|tests/system)/[\w/.-]+|\bBF\.PLAN\b|`--only [\w| ,]+`"
)


def slug(heading, seen):
    """Returns the anchor that GitHub gives a heading. `seen` counts the earlier headings of the
    page with the same text, which get a number.
    """
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    text = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
    count = seen.get(text, 0)
    seen[text] = count + 1
    return f"{text}-{count}" if count else text


def blanked(text):
    """Returns the Markdown text without its fenced code blocks. Empty lines replace them, so that
    line numbers stay the same.
    """
    return BLOCK.sub(lambda match: "\n" * match[0].count("\n"), text)


class Pages:
    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        paths = [self.root / name for name in ("README.md", "CONTRIBUTING.md")]
        paths += sorted((self.root / "docs").glob("*.md"))
        self.texts = {path: path.read_text(encoding="utf-8") for path in paths if path.exists()}
        self.problems = []
        self.external = set()

    def report(self, path, position, message):
        text = self.texts[path]
        line = text.count("\n", 0, position) + 1
        self.problems.append(f"{path.relative_to(self.root)}:{line}: {message}")

    def anchors(self, path):
        seen = {}
        text = blanked(path.read_text(encoding="utf-8"))
        return {slug(match[2], seen) for match in HEADING.finditer(text)}

    def check_links(self, path):
        text = blanked(self.texts[path])
        for match in LINK.finditer(text):
            address = match[1]
            if re.match(r"[a-z]+:", address):
                self.external.add(address)
                continue
            file, _, anchor = address.partition("#")
            target = (path.parent / file).resolve() if file else path
            at = self.line_start(path, text, match.start())
            if not target.exists():
                self.report(path, at, f"the link leads nowhere: {address}")
            elif anchor and (target.suffix != ".md" or anchor not in self.anchors(target)):
                self.report(path, at, f"no heading has this anchor: {address}")

    def line_start(self, path, blank, position):
        """Finds the line that contains a position of `blank`, the result of blanked(). Returns the
        position in the page at which this line begins.
        """
        line = blank.count("\n", 0, position)
        return sum(len(row) + 1 for row in self.texts[path].split("\n")[:line])

    def check_paths(self, path):
        text = blanked(self.texts[path])
        for match in CODE.finditer(text):
            words = match[1].split()
            if not words or not PATH.match(words[0]):
                continue
            if not any((self.root / (words[0] + suffix)).exists() for suffix in UNIT_SUFFIXES):
                at = self.line_start(path, text, match.start())
                self.report(path, at, f"`{words[0]}` names no file of this tree")

    def options(self):
        page = self.root / "docs/configuration.md"
        rows = re.findall(r"^\| (`.*?) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
        return {name for row in rows for name in CODE.findall(row)}

    def check_options(self, path, options):
        text = blanked(self.texts[path])
        for match in CODE.finditer(text):
            words = match[1].split()
            name = OPTION.match(words[0]) if words else None
            if not name or name[1] in options or name[1] in NOT_OPTIONS or FILE.search(name[1]):
                continue
            if words[0].startswith("--") and words[0] in self.switches:
                continue
            self.report(
                path, self.line_start(path, text, match.start()),
                f"`{words[0]}` looks like an option that docs/configuration.md does not have: "
                "correct it, or add it to NOT_OPTIONS in scripts/check_docs.py",
            )  # fmt: skip

    @property
    def switches(self):
        """Returns the command-line options of all programs of this project, as named in their
        sources, scripts and manual pages.
        """
        if not hasattr(self, "_switches"):
            self._switches = set()
            for pattern in ("scripts/*", "bench/*.py", "bench/*.cpp", "docs/man/*.1",
                            "server/*.cpp", "server/base/config/command_line.cpp",
                            "server/cluster_tool/*.cpp", "server/tools/*.cpp", "Dockerfile"):
                for path in filter(pathlib.Path.is_file, self.root.glob(pattern)):
                    text = path.read_text(encoding="utf-8", errors="replace").replace("\\-", "-")
                    self._switches |= set(re.findall(r"--[a-z][a-z0-9-]+", text))
        return self._switches

    def check_figures(self, path):
        """Checks that each section with measured figures names the command that prints the figures.
        A page whose introduction says that a command "prints every figure" passes.
        """
        text = blanked(self.texts[path])
        cuts = [match.start() for match in HEADING.finditer(text)] + [len(text)]
        introduction = text[: cuts[1]] if len(cuts) > 1 else text
        if "prints every figure" in introduction:
            return
        for begin, end in zip(cuts, cuts[1:]):
            section = text[begin:end]
            figure = FIGURE.search(section)
            # The command may be in a fenced code block, so the section is searched with its blocks.
            whole = self.texts[path][
                self.line_start(path, text, begin) : self.line_start(path, text, end)
            ]
            if figure and not COMMAND.search(whole):
                at = self.line_start(path, text, begin + figure.start())
                self.report(
                    path, at, f"'{figure[0]}' is a measured figure: name the command that prints it"
                )

    def check(self):
        options = self.options()
        for path in self.texts:
            self.check_links(path)
            self.check_paths(path)
            # configuration.md is the list of options, so its words are not compared with the list.
            if path.name != "configuration.md":
                self.check_options(path, options)
            self.check_figures(path)
            if path.name == "README.md":
                self.check_size(path)

    def check_size(self, path):
        text = self.texts[path]
        lines, words = text.count("\n"), len(text.split())
        if lines > README_LINES_MAX or words > README_WORDS_MAX:
            self.report(path, len(text),
                        f"{lines} lines and {words} words; {README_LINES_MAX} lines and "
                        f"{README_WORDS_MAX} words are allowed")  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[1])
    parser.add_argument("--external", action="store_true")
    options = parser.parse_args()
    pages = Pages(options.root)
    pages.check()
    if options.external:
        print("\n".join(sorted(pages.external)))
        return 0
    print("\n".join(pages.problems))
    print(f"{len(pages.texts)} pages, {len(pages.problems)} problems")
    return 1 if pages.problems else 0


if __name__ == "__main__":
    sys.exit(main())
