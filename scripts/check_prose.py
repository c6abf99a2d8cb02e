#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Searches the whole tree for English that is hard to read, and says how to rewrite it.

Usage: check_prose.py [BASE] [--update | --all] [--root DIR]
  BASE      the commit before the change
  --update  lower the counts in scripts/prose_exceptions.txt to the numbers of findings
  --all     print every finding, also those that scripts/prose_exceptions.txt allows; exit with 0
  --root    the tree to check (default: the tree of this script)

The default of BASE is the commit where this branch left main. If HEAD is a commit of main, the
default is the commit before HEAD. If the rules have changed since BASE, --update also raises
counts.

The rules are in scripts/prose_rules.py. They apply to comments, string literals, documentation
pages, manual pages, sample configurations, names in code, names of tests, and subjects of commits
since BASE. Text in quotes or backticks is a quotation, which is not checked.

scripts/prose_exceptions.txt counts, for each file, the findings that are older than their rule. The
check fails if the number of findings in a file differs from its count, or if a count has grown
since BASE. A line changed since BASE must have no finding, unless prose_exceptions.txt gives a
reason for the file of this line.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tokenize

import mutation_operators
import prose_blocks
import prose_rules as rules

EXCEPTIONS = "scripts/prose_exceptions.txt"
RULES = "scripts/prose_rules.py"
# Files that are not checked, because they quote what the rules forbid.
EXCLUDED = (
    "scripts/check_prose.py", RULES, EXCEPTIONS, "tests/scripts/check_prose_test.py",
)  # fmt: skip
SUFFIXES = (
    ".h", ".cpp", ".py", ".sh", ".cmake", ".md", ".1", ".conf", ".yml", ".service",
)  # fmt: skip
NAMES = ("CMakeLists.txt", "Dockerfile", "run", "preinst", "postinst", "postrm", "prerm")
QUOTATION = re.compile(r"`[^`]*`|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)|https?://\S+")
SENTENCE_END = re.compile(r"(?<=[.?!:])[)\]]?\s+(?=[A-Z`\"(])|(?<=[.?!]) +(?=[a-z_]+[(_])")
CODE = re.compile(r"[;{}]\s*$|^\W*[\w.]+ ?=|-->|\w\(\)? \{")
DEFAULT_HEADER = "# Findings of scripts/check_prose.py that are older than their rule.\n"

Finding = collections.namedtuple("Finding", "path first last message name")


def blocks_of(path, text, tokens):
    if path.endswith((".h", ".cpp")):
        return prose_blocks.cpp_blocks(text)
    if path.endswith(".py"):
        return prose_blocks.python_blocks(tokens)
    if path.endswith(".md"):
        return prose_blocks.page_blocks(text)
    if path.endswith(".1"):
        return prose_blocks.manual_blocks(text)
    return prose_blocks.shell_blocks(text)


def sentences(text):
    """Yields (position, sentence) of each sentence in the text."""
    start = 0
    for match in SENTENCE_END.finditer(text):
        yield start, text[start : match.start()]
        start = match.end()
    yield start, text[start:]


def count_words(sentence):
    return sum(1 for word in sentence.split() if re.search(r"[A-Za-z]", word))


def check_block(block):
    """Yields (first line, last line, message) of each finding in the block."""
    # Each character of a quotation is replaced by a letter, so that positions stay the same.
    text = QUOTATION.sub(lambda match: "Q" * len(match[0]), block.text)
    if rules.ANY_PHRASE.search(text):
        for name, pattern, cure in rules.PHRASES:
            for match in pattern.finditer(text):
                lines = block.line_at(match.start()), block.line_at(match.end() - 1)
                yield *lines, f"`{match[0].strip(' .;:')}` ({name}): {cure}"
    if block.kind == "text":
        return
    for start, sentence in sentences(text):
        first = block.line_at(start)
        for name, pattern, cure in rules.OPENINGS:
            if match := pattern.search(sentence):
                yield first, first, f"`{match[0]} …` ({name}): {cure}"
        words = count_words(sentence)
        if words <= rules.VERBLESS_WORDS_MAX or block.kind == "row" or CODE.search(sentence):
            continue
        last = block.line_at(start + max(0, len(sentence) - 1))
        quoted = block.text[start : start + 40]
        if words > rules.SENTENCE_WORDS_MAX:
            yield first, last, (
                f"a sentence of {words} words, {rules.SENTENCE_WORDS_MAX} are allowed: "
                f"split it (`{quoted}…`)"
            )
        elif rules.VERBLESS_OPENING.match(sentence) and not rules.VERB.search(sentence):
            yield first, last, f"no verb (`{quoted}…`): write a sentence with an actor and a verb"


def code_lines(path, text, tokens):
    """Returns the lines of the file without comments and string literals."""
    if path.endswith((".h", ".cpp")):
        return mutation_operators.mask(text).split("\n")
    lines = [[] for _ in range(text.count("\n") + 2)]
    for token in tokens or ():
        if token.type in (tokenize.NAME, tokenize.OP):
            lines[token.start[0] - 1].append(token.string)
    return [re.sub(r" (?=\()", "", " ".join(words)) for words in lines]


def check_names(path, text, tokens):
    """Yields (line, message, name) of each identifier that rules.IDENTIFIER forbids."""
    if not rules.IDENTIFIER.search(text):
        return
    for number, line in enumerate(code_lines(path, text, tokens), 1):
        for match in rules.IDENTIFIER.finditer(line):
            yield number, f"the name `{match[0]}`: {rules.IDENTIFIER_CURE}", match[0]


def check_test_names(text):
    """Yields (line, message) of each finding in a name of a test."""
    for pattern, length in (
        (rules.TEST_NAME, rules.TEST_NAME_MAX),
        (rules.PYTHON_TEST_NAME, rules.PYTHON_TEST_NAME_MAX),
    ):
        for match in pattern.finditer(text):
            for message in check_test_name(match[1], length):
                yield text.count("\n", 0, match.start(1)) + 1, message


def check_test_name(name, length):
    if rules.TEST_OPENING.match(name):
        yield f"the test `{name}`: begin with the subject, e.g. `HalfClosedClientGetsReplies`"
    elif match := rules.TEST_WORDS.search(name):
        yield f"the test `{name}`: `{match[0].strip('_')}` is none of the field's words"
    if len(name) > length:
        yield f"the test `{name}`: {len(name)} characters, {length} are allowed: name the behaviour"


def check_file(path, text):
    """Returns the findings of the file, sorted by line."""
    tokens = prose_blocks.python_tokens(text) if path.endswith(".py") else None
    found = [
        Finding(path, *each, None)
        for block in blocks_of(path, text, tokens) for each in check_block(block)
    ]  # fmt: skip
    if path.endswith((".h", ".cpp", ".py")):
        for line, message, name in check_names(path, text, tokens):
            found.append(Finding(path, line, line, message, name))
        for line, message in check_test_names(text):
            found.append(Finding(path, line, line, message, None))
    return sorted(found, key=lambda each: each[:4])


def is_checked(path):
    name = pathlib.PurePath(path).name
    return path not in EXCLUDED and (path.endswith(SUFFIXES) or name in NAMES)


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
        """Returns the commit where this branch left main. If HEAD is a commit of main, returns the
        commit before HEAD."""
        base = self.git("merge-base", "HEAD", "main", check=False).strip()
        head = self.git("rev-parse", "HEAD").strip()
        if base and base != head:
            return base
        return self.git("rev-parse", "--verify", "--quiet", "HEAD~1", check=False).strip() or head

    def files(self):
        return self.git("ls-files", "-c", "-o", "--exclude-standard").splitlines()

    def read(self, path):
        file = self.root / path
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    def added_lines(self, base):
        """Returns {path: numbers of the lines that were added since the commit `base`}. The value
        is None for a file that git does not track.
        """
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

    def renamed_files(self, base):
        """Returns {new path: old path} of the files renamed since the commit `base`."""
        lines = self.git("diff", "-M", "--name-status", "--diff-filter=R", base).splitlines()
        return {new: old for _, old, new in (line.split("\t") for line in lines)}

    def subjects(self, base):
        for line in self.git("log", "--no-merges", "--format=%h %s", f"{base}..HEAD").splitlines():
            yield line.partition(" ")[::2]


class Exceptions:
    """Holds the content of scripts/prose_exceptions.txt: a number of allowed findings for each
    file, and the allowed identifiers.
    """

    def __init__(self, text):
        self.counts, self.names, self.reasons = {}, set(), {}
        self.header = "".join(
            line for line in text.splitlines(True) if line.startswith("#")
        ) or DEFAULT_HEADER  # fmt: skip
        for line in text.splitlines():
            entry, _, reason = line.partition("#")
            if not entry.strip():
                continue
            count, subject = entry.split()
            if count == "name":
                self.names.add(subject)
            else:
                self.counts[subject] = int(count)
            if reason:
                self.reasons[subject] = reason.strip()

    def replace(self, counts, names):
        self.counts, self.names = counts, names

    def text(self):
        lines = [f"{self.counts[path]} {path}" for path in sorted(self.counts)]
        lines += [f"name {name}" for name in sorted(self.names)]
        for number, line in enumerate(lines):
            if reason := self.reasons.get(line.split()[1]):
                lines[number] += f"  # {reason}"
        return self.header + "".join(f"{line}\n" for line in lines)


class Check:
    """Compares the findings in the tree with the exceptions, and the exceptions with those of the
    commit `base`.
    """

    def __init__(self, repository, base):
        self.repository = repository
        self.base = base
        self.listed = Exceptions(repository.read(EXCEPTIONS))
        found = []
        for path in sorted(filter(is_checked, repository.files())):
            found += check_file(path, repository.read(path))
        self.findings = found
        self.names = {each.name for each in found if each.name}
        self.counts = collections.Counter(each.path for each in found if not each.name)

    def problems(self):
        yield from self.problems_of_files()
        yield from self.problems_of_names()
        yield from self.problems_of_list()
        for commit, subject in self.repository.subjects(self.base):
            for message in check_subject(subject):
                yield f"commit {commit}: `{subject}`: {message}"

    def problems_of_files(self):
        added = self.repository.added_lines(self.base)
        for path in sorted({*self.counts, *self.listed.counts}):
            found = [each for each in self.findings if each.path == path and not each.name]
            listed = self.listed.counts.get(path, 0)
            lines = added.get(path, set())
            is_excused = path in self.listed.reasons
            changed = [each for each in found if not is_excused and is_added(each, lines)]
            more = len(found) > listed
            for each in changed or (found if more else ()):
                yield f"{path}:{each.first}: {each.message}"
            if more and listed:
                yield f"{path}: {len(found)} findings, {listed} are listed in {EXCEPTIONS}"
            elif len(found) < listed:
                yield (f"{path}: {len(found)} findings, {listed} are listed in {EXCEPTIONS}: "
                       "shorten the list by scripts/check_prose.py --update")  # fmt: skip

    def problems_of_names(self):
        for each in self.findings:
            if each.name and each.name not in self.listed.names:
                yield f"{each.path}:{each.first}: {each.message}"
        for name in sorted(self.listed.names - self.names):
            yield (f"{EXCEPTIONS}: no code has the name `{name}`: "
                   "shorten the list by scripts/check_prose.py --update")  # fmt: skip

    def problems_of_list(self):
        """Yields an error for each exception that was added or raised since the commit `base`.
        Yields nothing if the rules have changed since `base`: new rules need new exceptions.
        """
        if self.rules_have_changed():
            return
        before = Exceptions(self.repository.git("show", f"{self.base}:{EXCEPTIONS}", check=False))
        renamed = self.repository.renamed_files(self.base)
        for path, count in sorted(self.listed.counts.items()):
            if count > before.counts.get(renamed.get(path, path), 0):
                yield f"{EXCEPTIONS}: the count of {path} may only fall: rewrite what is new"
        for name in sorted(self.listed.names - before.names):
            yield f"{EXCEPTIONS}: the name `{name}` is new: {rules.IDENTIFIER_CURE}"

    def rules_have_changed(self):
        return bool(self.repository.git("diff", "--name-only", self.base, "--", RULES).strip())

    def update(self):
        """Rewrites the exceptions. Lowers each count to the number of findings. Raises counts only
        if the rules have changed since the commit `base`.
        """
        counts, names = dict(self.counts), self.names
        if not self.rules_have_changed():
            renamed = self.repository.renamed_files(self.base)
            before = self.listed.counts
            counts = {
                path: min(count, max(before.get(path, 0), before.get(renamed.get(path), 0)))
                for path, count in counts.items()
            }  # fmt: skip
            names = names & self.listed.names
        self.listed.replace({path: count for path, count in counts.items() if count}, names)
        (self.repository.root / EXCEPTIONS).write_text(self.listed.text(), encoding="utf-8")


def is_added(finding, lines):
    """Returns whether the finding is on one of the lines. If `lines` is None, all lines count."""
    return lines is None or not lines.isdisjoint(range(finding.first, finding.last + 1))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", nargs="?")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[1])
    options = parser.parse_args()
    repository = Repository(options.root)
    base = options.base or repository.base()
    check = Check(repository, base)
    if options.all:
        for each in check.findings:
            print(f"{each.path}:{each.first}: {each.message}")
        print(f"prose: {len(check.findings)} findings in the tree")
        return 0
    if options.update:
        check.update()
    problems = list(check.problems())
    for problem in problems:
        print(problem)
    listed = check.listed
    print(
        f"prose: {len(problems)} problems; listed are {sum(listed.counts.values())} findings in "
        f"{len(listed.counts)} files, and {len(listed.names)} names"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
