# SPDX-License-Identifier: MIT
"""Finds tests that repeat an error text of the product.

An error text begins with one of the codes of Redis, as in "ERR no such key". In the product, `{}`
stands for any words. A text without a code counts if it has at least four words. It must be a
constant of the product, or an argument of Error, Refusal or fail(). Adjacent string literals are
one text.
"""

import re

TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|^\s*#[^\n]*|R\"(?P<tag>[^(\s]*)\((?P<raw>.*?)\)(?P=tag)\""
    r"|\"(?P<text>(?:\\.|[^\"\\\n])*)\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.DOTALL | re.MULTILINE,
)
CODES = (
    "ASK|BUSY|BUSYKEY|CLUSTERDOWN|CROSSSLOT|DENIED|ERR|EXECABORT|IOERR|LOADING|MASTERDOWN|MISCONF"
    "|MOVED|NOAUTH|NOMASTERLINK|NOPERM|NOPROTO|NOREPLICAS|NOTBUSY|OOM|READONLY|UNBLOCKED|WRONGPASS"
    "|WRONGTYPE"
)
# Matches a whole error text. A literal that ends with a blank, quote, colon or parenthesis is only
# the beginning of an error text, and does not match.
ERROR = re.compile(rf"(?:{CODES}) [^ ]+ .*[^ ':(]", re.DOTALL)
PLAIN_WORDS_MIN = 3
# Matches the code in front of a string literal if this code shows that the literal is an error
# text. Such a literal need not begin with an error code such as ERR.
DEFINITION = re.compile(r"(?:\b(?:Error|Refusal)\{|\bfail\(|\bk\w+ =)\s*")
MESSAGE_WORDS_MIN = 4


def literals(source):
    """Returns (line, text, is_defined) of each string literal. `is_defined` is true if DEFINITION
    matches the code before the literal.
    """
    found, end = [], 0
    definition_ends = {match.end() for match in DEFINITION.finditer(source)}
    for match in TOKEN.finditer(source):
        text = match["text"] if match["raw"] is None else match["raw"]
        if text is None:
            continue
        if found and not source[end : match.start()].strip():
            found[-1] = (found[-1][0], found[-1][1] + text, found[-1][2])
        else:
            line = source.count("\n", 0, match.start()) + 1
            found.append((line, text, match.start() in definition_ends))
        end = match.end()
    return found


def repeated(product, tests):
    """Yields (test, line, text, place) of each text in a test that repeats an error text of the
    product. `place` is the path and line of the error text in the product. Both arguments are
    {path: source}.
    """
    plain, messages, patterns = {}, {}, []
    for path, source in product.items():
        for line, text, is_defined in literals(source):
            if not ERROR.fullmatch(text):
                if is_defined and len(text.split()) >= MESSAGE_WORDS_MIN:
                    messages.setdefault(text, f"{path}:{line}")
                continue
            pieces = re.split(r"\{[^}]*\}", text)
            if len(pieces) == 1:
                plain.setdefault(text, f"{path}:{line}")
            elif len(re.findall(r"[A-Za-z]{2,}", " ".join(pieces))) >= PLAIN_WORDS_MIN:
                pattern = ".+".join(map(re.escape, pieces))
                patterns.append((re.compile(pattern, re.DOTALL), f"{path}:{line}"))
    for path, source in tests.items():
        for line, text, _ in literals(source):
            text = text.removeprefix("-").removesuffix("\\r\\n")
            place = messages.get(text)
            if ERROR.fullmatch(text):
                place = plain.get(text) or next(
                    (place for pattern, place in patterns if pattern.fullmatch(text)), None
                )
            if place:
                yield path, line, text, place
