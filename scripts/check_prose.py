#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds English that is hard to read in changed lines, and says how to rewrite it.

Usage: check_prose.py [BASE] [--all] [--root DIR]
  BASE    judge the lines and commits since this commit (default: where this branch left main, or
          the commit before)
  --all   report on every line of the tree, and exit with 0
  --root  the tree to check (default: the one this script lies in)

The rules are in scripts/prose_rules.py. They apply to comments, texts and Markdown, to names that
BASE does not have yet, to the names of tests, and to the subjects of commits. Text between quotes
or backticks is a quotation and is left alone.
"""

import argparse
import ast
import bisect
import collections
import io
import pathlib
import re
import subprocess
import sys
import tokenize

import check_tree
import mutation_operators
import prose_rules as rules

# They quote what the rules forbid.
EXCLUDED = (
    "scripts/check_prose.py", "scripts/prose_rules.py", "tests/scripts/check_prose_test.py",
)  # fmt: skip
SUFFIXES = (".h", ".cpp", ".py", ".sh", ".cmake", ".md")
# A shorter text is a word of a protocol or a name.
TEXT_WORDS_MIN = 3
QUOTATION = re.compile(r"`[^`]*`|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)|https?://\S+")
SENTENCE_END = re.compile(r"(?<=[.?!:])[)\]]?\s+(?=[A-Z`\"(])|(?<=[.?!]) +(?=[a-z_]+[(_])")
# A line that begins so continues no sentence: a list, a table, a drawing, an indented usage.
BREAKS = re.compile(r"^(?:[-*+|>#=]|\d+[.)] |\s{2,}|[A-Z][A-Za-z ]{2,20}: )|^\W*$")
CODE = re.compile(r"[;{}]\s*$|^\W*[\w.]+ ?=|-->|\w\(\)? \{")
SHELL_COMMENT = re.compile(r"(?:^|\s)#(?!!)\s?(.*)$")
SHELL_TEXT = re.compile(r"'([^'$]*)'|\"([^\"$]*)\"")

Finding = collections.namedtuple("Finding", "path line message")


class Block:
    """Prose of one comment, paragraph or text; it knows the line of each position."""

    def __init__(self, kind):
        self.kind = kind  # comment, text, page or row (of a table)
        self.text = ""
        self.starts = []  # positions where a line begins
        self.lines = []

    def add(self, line, text):
        if self.text:
            self.text += " "
        self.starts.append(len(self.text))
        self.lines.append(line)
        self.text += text.strip()

    def line_at(self, position):
        return self.lines[max(0, bisect.bisect_right(self.starts, position) - 1)]


def join(kind, numbered):
    """Blocks from (line number, text) of lines that follow each other."""
    blocks, last = [], None
    for number, text in numbered:
        if "SPDX-License" in text:
            continue
        if last != number - 1 or BREAKS.match(text):
            blocks.append(Block("row" if text.startswith("|") else kind))
        blocks[-1].add(number, re.sub(r"^\s*(?:[-*+>]|\d+[.)]) ", "", text))
        last = number
    return blocks


def cpp_blocks(text):
    comments, texts = [], []
    for match in check_tree.NO_CODE.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        if match[0].startswith("//"):
            begins_line = not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
            comments.append((number, match[0][2:].removeprefix(" "), begins_line))
        elif match[0].startswith("/*"):
            continue  # the name of a parameter
        elif match[0].startswith('"'):
            texts.append((number, match[0].strip('"')))
    blocks = []
    for number, words, begins_line in comments:
        continues = blocks and blocks[-1][-1][0] == number - 1 and begins_line
        if continues and text.split("\n", number)[number - 1].lstrip().startswith("//"):
            blocks[-1].append((number, words))
        else:
            blocks.append([(number, words)])
    found = [block for each in blocks for block in join("comment", each)]
    return found + text_blocks(texts)


def text_blocks(numbered):
    """Adjacent texts are one that was broken."""
    blocks, last = [], None
    for number, words in numbered:
        if last != number - 1:
            blocks.append(Block("text"))
        blocks[-1].add(number, words)
        last = number
    return [block for block in blocks if len(block.text.split()) >= TEXT_WORDS_MIN]


def python_blocks(text):
    comments, texts, docstrings = [], [], docstring_lines(text)
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        number = token.start[0]
        if token.type == tokenize.COMMENT:
            comments.append((number, token.string.lstrip("#").removeprefix(" ")))
        elif token.type == tokenize.STRING:
            words = token.string.strip("rbfuRBFU").strip("\"'")
            if number in docstrings:
                lines = list(enumerate(words.split("\n"), number))
                margin = min((len(each) - len(each.lstrip()) for _, each in lines[1:]
                              if each.strip()), default=0)  # fmt: skip
                lines = [lines[0], *((line, each[margin:]) for line, each in lines[1:])]
                found += join("comment", lines)
            elif "\n" not in words:
                texts.append((number, words))
    return found + join("comment", comments) + text_blocks(texts)


def docstring_lines(text):
    found = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found.add(value.lineno)
    return found


def shell_blocks(text):
    comments, texts = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if match := SHELL_COMMENT.search(line):
            # `#` within a text or a pattern begins no comment.
            if not line[: match.start()].strip() or match[1][:1].islower():
                comments.append((number, match[1]))
        for match in SHELL_TEXT.finditer(line) if not line.lstrip().startswith("#") else ():
            texts.append((number, match[1] or match[2] or ""))
    return join("comment", comments) + text_blocks(texts)


def page_blocks(text):
    numbered, fenced = [], False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and line.strip() and not line.startswith("    "):
            numbered.append((number, line.lstrip() if line.startswith("  ") else line))
    return join("page", numbered)


def blocks_of(path, text):
    if path.endswith((".h", ".cpp")):
        return cpp_blocks(text)
    if path.endswith(".py"):
        return python_blocks(text)
    return page_blocks(text) if path.endswith(".md") else shell_blocks(text)


def sentences(text):
    """(start, sentence) of each sentence."""
    start = 0
    for match in SENTENCE_END.finditer(text):
        yield start, text[start : match.start()]
        start = match.end()
    yield start, text[start:]


def count_words(sentence):
    return sum(1 for word in sentence.split() if re.search(r"[A-Za-z]", word))


def check_block(block):
    """(first line, last line, message) of each finding."""
    # Of the same length, so that positions stay.
    text = QUOTATION.sub(lambda match: "Q" * len(match[0]), block.text)
    for name, pattern, cure in rules.PHRASES:
        for match in pattern.finditer(text):
            lines = block.line_at(match.start()), block.line_at(match.end() - 1)
            yield *lines, f"`{match[0].strip(' .;:')}` ({name}): {cure}"
    if block.kind == "text":
        return
    for start, sentence in sentences(text):
        first, last = block.line_at(start), block.line_at(start + max(0, len(sentence) - 1))
        for name, pattern, cure in rules.OPENINGS:
            if match := pattern.search(sentence):
                yield first, first, f"`{match[0]} …` ({name}): {cure}"
        words = count_words(sentence)
        is_prose = block.kind != "row" and not CODE.search(sentence)
        if words > rules.SENTENCE_WORDS_MAX and is_prose:
            yield first, last, (
                f"a sentence of {words} words, {rules.SENTENCE_WORDS_MAX} are allowed: "
                f"split it (`{block.text[start : start + 40]}…`)"
            )


def code_lines(path, text):
    """The lines without comments and texts."""
    if path.endswith((".h", ".cpp")):
        return mutation_operators.mask(text).split("\n")
    if not path.endswith(".py"):
        return []
    lines = [[] for _ in range(text.count("\n") + 2)]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NAME, tokenize.OP):
            lines[token.start[0] - 1].append(token.string)
    return [re.sub(r" (?=\()", "", " ".join(tokens)) for tokens in lines]


def check_names(path, text, known):
    """(line, line, message) of names of tests, and of names that are not `known`."""
    for number, line in enumerate(code_lines(path, text), 1):
        for match in rules.IDENTIFIER.finditer(line):
            if match[0] not in known:
                yield number, number, f"the name `{match[0]}`: {rules.IDENTIFIER_CURE}"
    for number, line in enumerate(text.split("\n"), 1):
        for pattern, length in (
            (rules.TEST_NAME, rules.TEST_NAME_MAX),
            (rules.PYTHON_TEST_NAME, rules.PYTHON_TEST_NAME_MAX),
        ):
            if match := pattern.match(line):
                for message in check_test_name(match[1], length):
                    yield number, number, message


def check_test_name(name, length):
    if rules.TEST_OPENING.match(name):
        yield f"the test `{name}`: begin with the subject, e.g. `HalfClosedClientGetsReplies`"
    elif match := rules.TEST_WORDS.search(name):
        yield f"the test `{name}`: `{match[0].strip('_')}` is none of the field's words"
    if len(name) > length:
        yield f"the test `{name}`: {len(name)} characters, {length} are allowed: name the behaviour"


def check_subject(subject):
    if not rules.SUBJECT.match(subject):
        yield "write `area: change`, the area in lower case"
    if len(subject) > rules.SUBJECT_MAX:
        yield f"{len(subject)} characters, {rules.SUBJECT_MAX} are allowed"
    if subject.endswith("."):
        yield "leave out the period"
    change = subject.partition(": ")[2]
    if match := rules.SUBJECT_PAST.match(change):
        yield f"`{match[0]}`: write the imperative, e.g. `add`, not `added`"
    for name, pattern, cure in rules.PHRASES:
        if match := pattern.search(QUOTATION.sub("", change)):
            yield f"`{match[0]}` ({name}): {cure}"


class Repository:
    def __init__(self, root):
        self.root = pathlib.Path(root)

    def git(self, *arguments, check=True):
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "-c", "core.quotePath=off", *arguments],
            cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
            errors="replace",
        )  # fmt: skip
        if check and done.returncode:
            sys.exit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout if done.returncode == 0 else ""

    def base(self):
        """Where this branch left main, or the commit before."""
        base = self.git("merge-base", "HEAD", "main", check=False).strip()
        head = self.git("rev-parse", "HEAD").strip()
        if base and base != head:
            return base
        return self.git("rev-parse", "--verify", "--quiet", "HEAD~1", check=False).strip() or head

    def files(self):
        return self.git("ls-files", "-c", "-o", "--exclude-standard").splitlines()

    def added_lines(self, base):
        """{path: set of line numbers}; None instead of the set for a file that git does not know"""
        added, path = {}, None
        for line in self.git("diff", "-U0", "--no-color", "--no-ext-diff", base).splitlines():
            if line.startswith("+++ "):
                path = line[6:].rstrip("\t") if line.startswith("+++ b/") else None
            elif path and (match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)):
                first, count = int(match[1]), int(match[2] or 1)
                added.setdefault(path, set()).update(range(first, first + count))
        for path in self.git("ls-files", "-o", "--exclude-standard").splitlines():
            added[path] = None
        return added

    def subjects(self, base):
        for line in self.git("log", "--no-merges", "--format=%h %s", f"{base}..HEAD").splitlines():
            yield line.partition(" ")[::2]

    def known_names(self, base):
        """The names of BASE that the rule on names finds: who calls them did not choose them."""
        words = self.git(
            "grep", "-hoE", r"\w*(tell|told|note|judge|look|misuse|anew|body|who|vain)\w*", base,
            "--", "*.h", "*.cpp", "*.py", check=False,
        )  # fmt: skip
        return set(words.split())


def check_file(path, text, added, known):
    """Findings on the `added` lines; None stands for all lines."""
    found = [each for block in blocks_of(path, text) for each in check_block(block)]
    found += check_names(path, text, known)
    for first, last, message in sorted(found):
        lines = sorted(added.intersection(range(first, last + 1))) if added is not None else [first]
        if lines:
            yield Finding(path, lines[0], message)


def is_checked(path):
    name = pathlib.PurePath(path).name
    return path not in EXCLUDED and (path.endswith(SUFFIXES) or name == "CMakeLists.txt")


def findings(repository, base):
    """All of the tree where `base` is None."""
    if base is None:
        added, known = dict.fromkeys(repository.files()), set()
    else:
        added, known = repository.added_lines(base), repository.known_names(base)
    for path in sorted(filter(is_checked, added)):
        if (repository.root / path).is_file():
            text = (repository.root / path).read_text(encoding="utf-8")
            yield from check_file(path, text, added[path], known)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", nargs="?")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[1])
    options = parser.parse_args()
    repository = Repository(options.root)
    base = None if options.all else options.base or repository.base()
    count = 0
    for path, line, message in findings(repository, base):
        print(f"{path}:{line}: {message}")
        count += 1
    for commit, subject in repository.subjects(base) if base else ():
        for message in check_subject(subject):
            print(f"commit {commit}: `{subject}`: {message}")
            count += 1
    print(f"prose: {count} problems{f' since {base[:12]}' if base else ''}")
    sys.exit(1 if count and base else 0)


if __name__ == "__main__":
    main()
