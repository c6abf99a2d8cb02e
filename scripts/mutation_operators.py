# SPDX-License-Identifier: MIT
"""Makes one-line mutations of C++ sources, for scripts/mutate.py.

candidates() lists all mutations of a source. Selection draws mutations of several sources at
random. Mutations change only lines in function bodies. In a body they do not change comments,
string literals, log statements, assertions, and declarations of types and constants.
"""

import collections
import random
import re

import check_tree

Mutation = collections.namedtuple("Mutation", "path line before after operator")

# Maps an operator to its replacement. An operator is replaced only between spaces. The `<` of a
# template and the `&` of a reference are not operators; clang-format puts no spaces around them.
SWAPPED_OPERATORS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "*": "/", "/": "*", "+=": "-=", "-=": "+=", "|": "&", "&": "|",
}  # fmt: skip
SWAPPED_WORDS = {"true": "false", "false": "true", "std::min": "std::max", "std::max": "std::min"}
OPERATOR = re.compile(r"(?<= )(<=?|>=?|==|!=|&&|\|\||[-+]=?|\*|/|\||&)(?= )")
WORD = re.compile(r"(?<![\w:])(true|false|std::min|std::max)(?![\w:])")
CONSTANT = re.compile(r"(?<![\w.'])(\d+)(?=[uUlL]{0,3}(?![\w.']))")
CONDITION = re.compile(r"(?<!\w)if \(")
EARLY_RETURN = re.compile(r"^(\s*)if \(.*\) (return\b.*|continue|break);$")
RETURN = re.compile(r"^(\s*)(return|continue|break);$")
CALL = re.compile(r"^(\s*)(?!return\b|co_return\b|throw\b|delete\b)[\w:.>\[\]-]+\([^{}]*\);$")
ASSIGNMENT = re.compile(r"^(\s*)[\w.>\[\]*-]+ [-+|&]?= [^{}]*;$")

# Matches lines that are not mutated. Such a line is not a statement, or no test can detect a change
# of the line.
LEFT_ALONE = re.compile(
    r"^\s*(#|//|\*|case\b|using\b|template\b|namespace\b|static_assert\b|friend\b|typedef\b"
    r"|(class|struct|enum)\b|public:|private:|protected:)"
    r"|\b(assert|spdlog|log|logger|log_\w+|\w+_log|debug|warn|info|reserve|shrink_to_fit"
    r"|prefetch\w*|__builtin_prefetch|operator|NOLINT)\b *[(.>:-]|\bconstexpr\b.*=|\[\["
)
ENDS_STATEMENT = re.compile(r"([;{}:]|^)\s*$")


def mask(text):
    """Returns C++ code in which spaces replace comments and preprocessor lines, and `_` replaces
    each character of a string literal. Line and column of all other code stay the same.
    """

    def hide(match):
        if match[0].startswith(("//", "/*", "#")) or match[0].lstrip().startswith("#"):
            return re.sub(r"[^\n]", " ", match[0])
        return match[0][0] + re.sub(r"[^\n]", "_", match[0][1:-1]) + match[0][-1]

    return check_tree.NO_CODE.sub(hide, text)


def closing(code, start):
    """Returns the position of the parenthesis that closes the one at `start`; -1 if the line `code`
    does not contain it.
    """
    depth = 0
    for position in range(start, len(code)):
        depth += (code[position] == "(") - (code[position] == ")")
        if depth == 0:
            return position
    return -1


def is_balanced(code):
    return code.count("(") == code.count(")") and code.count("[") == code.count("]")


def changes(code, line, starts_statement):
    """Yields (kind of mutation, changed line) of each mutation of a line. `code` is the line after
    mask().
    """
    for match in OPERATOR.finditer(code):
        operator = SWAPPED_OPERATORS[match[1]]
        yield "operator", line[: match.start()] + operator + line[match.end() :]
    for match in WORD.finditer(code):
        yield "word", line[: match.start()] + SWAPPED_WORDS[match[1]] + line[match.end() :]
    for match in CONSTANT.finditer(code):
        value = int(match[1], 8 if re.fullmatch(r"0\d+", match[1]) else 10)
        for other in (value + 1, value - 1):
            if other >= 0:
                yield "constant", f"{line[: match.start()]}{other}{line[match.end() :]}"
    for match in CONDITION.finditer(code):
        opening = match.end() - 1
        end = closing(code, opening)
        # An `if` whose parentheses declare a variable is skipped, because `!(...)` around a
        # declaration does not compile.
        if end > 0 and not re.search(r";|[^=!<>]=[^=]", code[opening:end]):
            inside = line[opening + 1 : end]
            yield "negation", f"{line[: opening + 1]}!({inside}){line[end:]}"
    yield from removals(code, starts_statement)


def removals(code, starts_statement):
    if not starts_statement or not is_balanced(code):
        return
    for pattern in (EARLY_RETURN, RETURN, CALL, ASSIGNMENT):
        if match := pattern.match(code.rstrip()):
            yield "removal", f"{match[1]};"
            return


def candidates(path, text):
    """Returns all mutations of the source `path`, whose content is `text`."""
    lines = text.split("\n")
    code = mask(text).split("\n")
    inside = set()
    for _, first, count in check_tree.functions(text):
        # The first line of a function is its declaration, which is not mutated. A function of one
        # line is mutated, because the line contains its body.
        inside.update(range(first if count == 1 else first + 1, first + count))
    found = []
    for number, line in enumerate(lines, 1):
        masked = code[number - 1]
        if number not in inside or not masked.strip() or LEFT_ALONE.search(masked):
            continue
        before = next((each for each in reversed(code[: number - 1]) if each.strip()), "")
        starts = bool(ENDS_STATEMENT.search(before)) or before.rstrip().endswith(")")
        for operator, after in changes(masked, line, starts):
            found.append(Mutation(path, number, line, after, operator))
    return found


class Selection:
    """Yields all mutations of several sources in a random order, each once. The same sources and
    seed give the same order.
    """

    def __init__(self, texts, seed):
        self.random = random.Random(seed)
        self.files = {
            path: (len(text), found)
            for path, text in sorted(texts.items())
            if (found := candidates(path, text))
        }

    def __iter__(self):
        drawn = set()
        total = sum(len(found) for _, found in self.files.values())
        paths = list(self.files)
        weights = [size for size, _ in self.files.values()]
        while len(drawn) < total:
            found = self.files[self.random.choices(paths, weights)[0]][1]
            # Draws a line first, and then one of its mutations. So a line with many operators is
            # not mutated more often than other lines.
            line = self.random.choice(sorted({mutation.line for mutation in found}))
            mutation = self.random.choice([each for each in found if each.line == line])
            if mutation not in drawn:
                drawn.add(mutation)
                yield mutation


def relocate(mutation, text):
    """Returns the mutation with the line number that its line has in `text`, a later version of the
    file. Returns None if the line no longer exists.
    """
    numbers = [
        number for number, line in enumerate(text.split("\n"), 1) if line == mutation.before
    ]
    if not numbers:
        return None
    nearest = min(numbers, key=lambda number: abs(number - mutation.line))
    return mutation._replace(line=nearest)


def apply(mutation, text):
    lines = text.split("\n")
    if lines[mutation.line - 1] != mutation.before:
        raise ValueError(f"{mutation.path}:{mutation.line} is not `{mutation.before.strip()}`")
    lines[mutation.line - 1] = mutation.after
    return "\n".join(lines)
