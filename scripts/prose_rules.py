# SPDX-License-Identifier: MIT
"""The patterns by which scripts/check_prose.py finds English that is hard to read.

Each rule is (name, pattern, cure). A pattern that would often be right is left out: a finding must
be worth a change nearly every time.
"""

import re

SENTENCE_WORDS_MAX = 25
TEST_NAME_MAX = 45
PYTHON_TEST_NAME_MAX = 50
SUBJECT_MAX = 60


def phrase(text):
    return re.compile(rf"\b(?:{text})\b", re.IGNORECASE)


# Words and phrases, anywhere in a sentence.
PHRASES = [
    ("no more", phrase(r"(?:no|any) more(?=[.,;:)]|$)"),
     "write `no longer`"),
    ("in vain", phrase(r"in vain"), "say what fails or is missing"),
    ("anew", phrase(r"anew|afresh"), "write `again`, or name the action: rewrite, reload"),
    ("nobody", phrase(r"nobody|somebody"),
     "name the actor (client, replica, caller), or write `no one`"),
    ("besides", re.compile(r"(?:^|[.;:] )Besides,?|\bbesides(?=[.,;:)]|$)", re.IGNORECASE),
     "write `also`"),
    ("whoever", phrase(r"whoever|whomever|that which|those who|(?:he|him|one) who"),
     "name the actor or the thing"),
    ("tell", phrase(
        r"(?:is|are|was|were|be|been|being) told|told (?:of|about|first|apart)"
        r"|tell(?:s|ing)? (?:of|it|them|clients?|the (?:client|caller|journal|kernel|leader"
        r"|replica|server|user)s?)\b|(?:tells?|told) \w+ from\b"
     ), "use the field's verb: notify, log, report, publish, announce"),
    ("look again", phrase(r"look(?:s|ed|ing)? again"),
     "write `poll`, `retry` or `read again`"),
    ("stands", phrase(r"(?:what|where|that|which|it) stands?(?! (?:for|alone)\b)"
                      r"|as it stands"),
     "write `is`, or say what is where"),
    ("who", phrase(
        r"(?:for|to|by|from|of|and|but|or|only|if|than) who (?:has|have|is|are|was|can|may|does"
        r"|sends?|asks?|wants?|reads?|writes?|listens?|holds?|waits?|comes?|shows?)"
     ),
     "name the actor: client, replica, thread, caller"),
    ("of what", phrase(r"(?:of|for|by|from|than|behind|before|after|beyond) what "
                       r"(?:is|was|are|has|it|they|he|comes|follows|can|may|must)"),
     "name the noun: `of the …`"),
    ("so many", phrase(r"(?:of|for|after|at) so many"), "name the number"),
    ("goes by", phrase(r"what \w+ goes by|goes by it"), "write `uses` or `relies on`"),
    ("amid", phrase(r"amid|midst|hence|whence|thereof|therein|thereby|hitherto|lest|save for"),
     "use a common word"),
    ("ill", phrase(r"is ill|falls ill|disappoints?|forgives?|mends?"),
     "use the field's word: fails, accepts, fixes"),
]  # fmt: skip

# The beginning of a comment, or of a sentence in it.
OPENINGS = [
    ("opening", re.compile(r"^(?:What|Who|Whom|Whose)\b(?![^.?]*\?)"),
     "begin with the subject: name the thing, or a verb (`Returns …`, `Holds …`)"),
    ("fragment", re.compile(
        r"^(?:Of (?:the|this|that|each|all|those|it|them)\b|Behind\b"
        r"|For (?:what|who|whom|those)\b|By (?:what|whom|which)\b|To (?:what|whom)\b"
        r"|From (?:what|whom)\b|That (?:which|what)\b|But (?:for|what)\b|Than\b)"
     ), "write a sentence with subject and verb, or a noun that stands alone"),
]  # fmt: skip

IDENTIFIER = re.compile(
    r"(?<![\w\"'/-])(?:"
    r"(?:is_|was_|be_|must_)?told(?:_\w+)?|tells?_\w+|(?<!\.)(?<!\. )tell(?=\()|note_\w+"
    r"|judges?(?=\()|judge_\w+|looks?_again\w*|looks?_first\w*|(?:\w+_)?misused?(?:_\w+)?"
    r"|(?:\w+_)?anew"
    r"|nobody|somebody|who(?:ever)?_\w+|in_vain"
    r")(?![\w\"'])"
)
IDENTIFIER_CURE = "use the field's word: notify_, publish_, record_, validate_, retry_, check_"
TEST_NAME = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\s*\)")
PYTHON_TEST_NAME = re.compile(r"^\s*def (test_\w+)\(")
TEST_OPENING = re.compile(
    r"^(?:(?:Who|What|That|Whoever|Whatever)(?=[A-Z])|test_(?:who|what|that|whoever|whatever)_)"
)
TEST_WORDS = re.compile(
    r"(?:^|(?<=[a-z_]))(?:Told|Nobody|Somebody|Anew|InVain|NoMore|AnyMore|Whoever)(?=[A-Z_]|$)"
    r"|_(?:told|nobody|somebody|anew|in_vain|no_more|whoever)(?=_|$)"
)

SUBJECT = re.compile(r"^[a-z][a-z0-9_/.-]*: \S")
SUBJECT_PAST = re.compile(
    r"^(?:\w+ed|gave|forgave|made|took|did|was|were|wrote|told|kept|held|sent)\b"
    r"(?<!need)(?<!seed)(?<!feed)(?<!embed)(?<!shed)(?<!speed)(?<!ceed)"
)
