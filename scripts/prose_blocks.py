# SPDX-License-Identifier: MIT
"""Finds the prose in a file: comments, docstrings, texts and paragraphs, each with its lines.

scripts/check_prose.py applies the rules of scripts/prose_rules.py to these blocks.
"""

import bisect
import io
import re
import tokenize

import check_tree

# Minimum number of words. A shorter text is a word of a protocol or a name.
TEXT_WORDS_MIN = 3
# A line that begins like this starts a new block: a list, a table, a drawing, an indented usage.
BREAKS = re.compile(r"^(?:[-*+|>#=]|\d+[.)] |\s{2,}|[A-Z][A-Za-z ]{2,20}: )|^\W*$")
# Python tokens that change no statement, and those that begin or end a statement or a block.
LAYOUT_TOKENS = (tokenize.NL, tokenize.COMMENT)
STATEMENT_TOKENS = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
SHELL_COMMENT = re.compile(r"(?:^|\s)#(?!!)\s?(.*)$")
SHELL_TEXT = re.compile(r"'([^'$]*)'|\"([^\"$]*)\"")


class Block:
    """Holds the prose of one comment, paragraph or text, with the line of each position."""

    def __init__(self, kind):
        self.kind = kind  # kind of the block: comment, text, page or row of a table
        self.text = ""
        self.starts = []  # positions at which the lines of the block begin
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
    """Returns blocks from pairs (line number, text). Adjacent lines form one block."""
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
            continue  # skips the comments that name parameters
        elif match[0].startswith('"'):
            texts.append((number, match[0].strip('"')))
    groups = []
    for number, words, begins_line in comments:
        if groups and groups[-1][-1][0] == number - 1 and begins_line:
            groups[-1].append((number, words))
        else:
            groups.append([(number, words)])
    found = [block for group in groups for block in join("comment", group)]
    return found + text_blocks(texts)


def text_blocks(numbered):
    """Joins texts on adjacent lines, because they are one text that was broken."""
    blocks, last = [], None
    for number, words in numbered:
        if last != number - 1:
            blocks.append(Block("text"))
        blocks[-1].add(number, words)
        last = number
    return [block for block in blocks if len(block.text.split()) >= TEXT_WORDS_MIN]


def python_tokens(text):
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def python_blocks(tokens):
    comments, texts, found = [], [], []
    starts_statement = True
    for token in tokens:
        number = token.start[0]
        if token.type == tokenize.COMMENT:
            comments.append((number, token.string.lstrip("#").removeprefix(" ")))
        elif token.type == tokenize.STRING:
            words = token.string.strip("rbfuRBFU").strip("\"'")
            if starts_statement:
                found += join("comment", docstring_lines(number, words))
            elif "\n" not in words:
                texts.append((number, words))
        if token.type not in LAYOUT_TOKENS:
            starts_statement = token.type in STATEMENT_TOKENS
    return found + join("comment", comments) + text_blocks(texts)


def docstring_lines(number, words):
    """Returns (line number, line) of a docstring, without the indentation that its lines share."""
    lines = list(enumerate(words.split("\n"), number))
    margin = min((len(each) - len(each.lstrip()) for _, each in lines[1:] if each.strip()),
                 default=0)  # fmt: skip
    return [lines[0], *((line, each[margin:]) for line, each in lines[1:])]


def shell_blocks(text):
    comments, texts = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if match := SHELL_COMMENT.search(line):
            # A `#` within a text or a pattern does not begin a comment.
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


def manual_blocks(text):
    """A request such as `.TP` ends the paragraph before it."""
    return join("page", [
        (number, line.replace("\\-", "-")) for number, line in enumerate(text.split("\n"), 1)
        if line.strip() and not line.startswith(".")
    ])  # fmt: skip
