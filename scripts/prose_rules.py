# SPDX-License-Identifier: MIT
"""Defines the rules of scripts/check_prose.py: patterns of English that is hard to read.

Each rule is (name, pattern, cure). A pattern belongs here only if nearly every match should be
rewritten.
"""

import re

SENTENCE_WORDS_MAX = 25
# A sentence of at most this many words may have no verb.
VERBLESS_WORDS_MAX = 6
TEST_NAME_MAX = 45
PYTHON_TEST_NAME_MAX = 50
SUBJECT_MAX = 60


def phrase(text):
    return re.compile(rf"\b(?:{text})\b", re.IGNORECASE)


# Forbidden words and phrases, anywhere in a comment or other text.
PHRASES = [
    ("no more", phrase(r"(?:no|any) more(?=[.,;:)]|$)"),
     "write `no longer`"),
    ("in vain", phrase(r"in vain"), "say what fails or is missing"),
    ("anew", phrase(r"anew|afresh"), "write `again`, or name the action: rewrite, reload"),
    ("nobody", phrase(r"nobody|somebody|everybody|anybody"),
     "name the actor (client, replica, caller), or write `no one`, `everyone`"),
    ("for ever", phrase(r"for ever(?=[.,;:)]|$| (?:and|or|but|if|when|while|on|in|by|at|with|as"
                        r"|where|until|because|from|after)\b)"),
     "write `forever`, or the condition that never comes"),
    ("besides", phrase(r"besides"), "write `also`, `as well` or `in addition to`"),
    ("whoever", phrase(r"whoever|whomever|that which|those who|(?:he|him|one) who"),
     "name the actor or the thing"),
    ("tell", phrase(r"told|tells?|telling"),
     "use the field's verb: notify, log, report, publish, announce, separate"),
    ("judge", phrase(r"judge[sd]?|judging"), "write `validate`, `check` or `decide`"),
    ("note", phrase(r"notes (?:that|the|it|what|when|how|down)|noted"),
     "write `record` or `mark`"),
    ("look again", phrase(r"look(?:s|ed|ing)? again"),
     "write `poll`, `retry` or `read again`"),
    ("stands", phrase(r"stands(?! (?:for|alone|by)\b)|as it stands"
                      r"|(?:can|could|may|must|to|they|that|which|what|where) stand"
                      r"(?! (?:for|alone|by)\b)(?!-)"),
     "write `is`, or say what is where"),
    ("what is", phrase(r"what (?:is|was|are|were)(?! (?:the|an?|this)\b)(?![^.]*\?)"),
     "name the noun: `the missing keys`, not `what is missing`"),
    ("who", phrase(
        r"(?:for|to|by|from|of|and|but|or|only|if|than) who (?:has|have|is|are|was|can|may|does"
        r"|sends?|asks?|wants?|reads?|writes?|listens?|holds?|waits?|comes?|shows?)"
     ),
     "name the actor: client, replica, thread, caller"),
    ("of what", phrase(r"(?:of|for|by|from|than|behind|before|after|beyond) what "
                       r"(?:has|it|they|he|comes|follows|can|may|must)"),
     "name the noun: `of the …`"),
    ("so many", phrase(r"(?:of|for|after|at) so many|so (?:many|much)(?=[.,;:)]|$"
                       r"| (?:are|is|of|were|was|have|may|at|in|for|to|by|it|they)\b)"),
     "name the number"),
    ("goes by", phrase(r"what \w+ goes by|goes by it"), "write `uses` or `relies on`"),
    ("amid", phrase(r"amid|midst|hence|whence|thereof|therein|thereby|hitherto|lest|save for"),
     "use a common word"),
    ("ill", phrase(r"is ill|falls ill|disappoints?|forgives?|mend(?:s|ed|ing)?|hinders?"),
     "use the field's word: fails, accepts, fixes, prevents"),
    ("had", phrase(r"(?:can|cannot|could|to|not) be had"),
     "use the field's verb: cannot be allocated, is not available"),
]  # fmt: skip

ANY_PHRASE = re.compile("|".join(pattern.pattern for _, pattern, _ in PHRASES), re.IGNORECASE)

# Forbidden beginnings of a sentence.
OPENINGS = [
    ("opening", re.compile(r"^(?:What|Who|Whom|Whose)\b(?![^.?]*\?)"),
     "begin with the subject: name the thing, or a verb (`Returns …`, `Holds …`)"),
    ("fragment", re.compile(
        r"^(?:Of\b|Behind\b|By\b(?! (?:default|then|contrast)\b)|(?:With|To|From) whom\b"
        r"|For (?:what|who|whom|those)\b|(?:To|From) what\b|That (?:which|what)\b"
        r"|But (?:for|what)\b|Than\b)"
     ), "write a sentence with subject and verb, or a noun that stands alone"),
]  # fmt: skip

# Matches the first word of a sentence that must have a verb. Other sentences may be noun phrases,
# such as "The canonical text of the row".
VERBLESS_OPENING = re.compile(
    r"(?:About|Above|After|Again|Also|Always|Among|And|As|At|Before|Below|Beside|Between|But"
    r"|Beyond|Each|Either|Else|Even|Every|For|From|In|Inside|Instead|Just|Less|More|Most|Near"
    r"|Neither|Never|Not|On|Once|Only|Or|Otherwise|Out|Over|Per|Room|Since|Small|So|Still|Such"
    r"|Than|Then|There|Through|To|Together|Too|Under|Unlike|Until|Up|Upon|Very|When|Where|While"
    r"|With|Within|Without|Worth|Yet)\b",
    re.IGNORECASE,
)
# Matches a word that may be a verb, which includes nearly every word that ends in -s or -ed.
VERB = re.compile(
    r"\b(?!(?:always|as|its|perhaps|this|unless)\b)(?:am|are|be|been|being|began|begun|bound"
    r"|brought|built|came|can|cannot|caught|chosen|come"
    r"|cost|could|cut|dealt|did|do|done|drawn|fallen|fed|fell|felt|forgotten|found|gave|get|give"
    r"|given|go|gone|got|grew|grown|had|have|held|hit|keep|kept|knew|know|known|laid|left|let|lost"
    r"|made|make|may|meant|met|might|must|need|paid|put|ran|read|run|said|sat|say|seen|sent|set"
    r"|shall|should|shut|sought|spent|split|take|taken|taught|thought|thrown|told|took|use|want"
    r"|went|will|won|would|write|written|wrote|\w+ed|\w*[a-rtv-z]s|\w+n't)\b",
    re.IGNORECASE,
)

IDENTIFIER = re.compile(
    r"(?<![\w\"'/-])(?:"
    r"(?!test_)(?:\w+_)?told(?:_\w*)?|tells?_\w+|(?<!\.)(?<!\. )tell(?=\()|note_\w+"
    r"|judges?(?=\()|judge_\w+|looks?_again\w*|looks?_first\w*|(?:\w+_)?misused?(?:_\w+)?"
    r"|(?:\w+_)?anew"
    r"|nobody|somebody|who(?:ever)?_\w+|in_vain|Sight|Terms|\w*Turner|shown_\w*"
    r")(?![\w\"'])"
)
IDENTIFIER_CURE = "use the field's word: notify_, publish_, record_, validate_, retry_, check_"
TEST_NAME = re.compile(
    r"^[ \t]*(?:TYPED_)?TEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\s*\)", re.MULTILINE
)
PYTHON_TEST_NAME = re.compile(r"^[ \t]*def (test_\w+)\(", re.MULTILINE)
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
