# SPDX-License-Identifier: MIT
"""Splits the prose of a file into blocks: comments, docstrings, string literals and paragraphs.

scripts/check_prose.py applies the rules of scripts/prose_rules.py to these blocks.
"""

import bisect
import io
import re
import tokenize

import check_tree

# Minimum number of words of a string literal that is checked. Shorter literals are mostly names or
# words of a protocol.
TEXT_WORDS_MIN = 3
# Matches a line that starts a new block. Such a line is an entry of a list, a row of a table, or
# part of a drawing or of an indented usage text.
BREAKS = re.compile(r"^(?:[-*+|>#=]|\d+[.)] |\s{2,}|[A-Z][A-Za-z ]{2,20}: )|^\W*$")
# Python tokens that may occur anywhere without being part of a statement, and tokens after which a
# new statement begins.
LAYOUT_TOKENS = (tokenize.NL, tokenize.COMMENT)
STATEMENT_TOKENS = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
SHELL_COMMENT = re.compile(r"(?:^|\s)#(?!!)\s?(.*)$")
SHELL_TEXT = re.compile(r"'([^'$]*)'|\"([^\"$]*)\"")


class Block:
    """Holds the text of one comment, paragraph or string literal, and the line number of each
    position in the text.
    """

    def __init__(self, kind):
        self.kind = kind  # "comment", "text" (string literal), "page" or "row" (of a table)
        self.text = ""
        self.starts = []  # the positions in `text` at which the lines of the block begin
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
    """Joins (line number, text) pairs into blocks of the given kind. Adjacent lines form one block,
    but a line that matches BREAKS starts a new block.
    """
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
            continue  # skips /* */ comments, which only name parameters of calls
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
    """Joins string literals on adjacent lines into one block, because they are parts of one
    literal.
    """
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
    """Returns (line number, line) for each line of a docstring. Removes the indentation that the
    lines have in common.
    """
    lines = list(enumerate(words.split("\n"), number))
    margin = min((len(each) - len(each.lstrip()) for _, each in lines[1:] if each.strip()),
                 default=0)  # fmt: skip
    return [lines[0], *((line, each[margin:]) for line, each in lines[1:])]


def shell_blocks(text):
    comments, texts = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if match := SHELL_COMMENT.search(line):
            # A `#` after code may be part of a string or pattern. It counts as the start of a
            # comment only if a lower-case letter follows.
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
    """Returns the paragraphs of a manual page. A request line such as `.TP` ends a paragraph."""
    return join("page", [
        (number, line.replace("\\-", "-")) for number, line in enumerate(text.split("\n"), 1)
        if line.strip() and not line.startswith(".")
    ])  # fmt: skip
