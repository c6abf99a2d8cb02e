# SPDX-License-Identifier: MIT
"""Counts units, chains of includes, members of classes and test cases in the tree.

A unit is a .h file, a .cpp file, or a pair of them with the same name. The functions parse the text
of the files and use no compiler, so code that macros generate is not counted.
"""

import re

import server_order

# Sources that assemble the server from its parts, so they may include everything.
COMPOSERS = ("server/server.cpp", "server/main.cpp")
PRODUCT_FOLDERS = ("core", "protocol", "persistence", "server")
# Maps each library to its folder. The names of a library's test programs begin with its name.
LIBRARIES = {
    "core": "core/", "protocol": "protocol/", "persistence": "persistence/",
    **{f"server_{name}": f"server/{name}/" for name in server_order.LIBRARIES},
    "server": "server/",
}  # fmt: skip
TEST_CASE = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(", re.MULTILINE)
# Matches a class of system tests that derives directly from unittest.TestCase. Its tests start no
# server; tests of other classes start one.
SCRIPT_CLASS = re.compile(r"^class ", re.MULTILINE)
PLAIN_SCRIPT_CLASS = re.compile(r"\w+\((?:\w+, )*unittest\.TestCase\)")
SCRIPT_CASE = re.compile(r"^\s*(?:async )?def test_", re.MULTILINE)
CLASS_HEAD = re.compile(
    r"\b(?:class|struct|union)\b(?:\s*alignas\s*\([^)]*\)|\s*\[\[.*?\]\])*\s*([\w:]*)"
    r"(?:\s*<[^{}]*>)?(?:\s+final)?\s*(?::(?!:)[^()]*)?$"
)
ACCESS = re.compile(r"^\s*(?:(?:public|private|protected)\s*:(?!:)\s*)+")
NO_MEMBER = re.compile(
    r"^(?:template\s*<[^;]*>\s*)?(?:using|friend|typedef|static_assert|enum|class|struct|union)\b"
    r"|\bstatic constexpr\b[^(]*=|=\s*(?:delete|default)$"
)
QUOTED_FILE = re.compile(
    r"(?<![\w/.<-])((?:core|protocol|persistence|server|tests|bench|docs|scripts)/[\w/.-]*\w"
    r"\.(?:h|cpp|py|sh|md|txt)|[a-z]\w*\.cpp)\b(?![\w/*])"
)
QUOTED_SECTION = re.compile(r'(docs/\w+\.md),((?:(?: and)? "[^"]+")+)')


def units(paths):
    """Returns {path of a unit without suffix: files of the unit} for the product's code."""
    found = {}
    for path in paths:
        if path.parts[0] in PRODUCT_FOLDERS and path.suffix in (".h", ".cpp"):
            found.setdefault(str(path.with_suffix("")), []).append(path)
    return found


def units_of_folders(paths):
    """Returns {folder: its units}, without the units of subfolders. A unit is a header and the .cpp
    file of the same name.
    """
    found = {}
    for unit in units(paths):
        found.setdefault(unit.rpartition("/")[0], []).append(unit)
    return found


def library_of(path):
    """Returns the library of a product file or of its test, such as "server_net"; None if the path
    is no such file.
    """
    path = path.removeprefix("tests/")
    return next((name for name, folder in LIBRARIES.items() if path.startswith(folder)), None)


def test_of(unit):
    return f"tests/{unit}_test.cpp"


def units_without_test(paths):
    """Returns the units that have a .cpp file but no test file. A header without a .cpp file needs
    no test file, because the tests of other units use it.
    """
    known = {str(path) for path in paths}
    return sorted(
        unit for unit, files in units(paths).items()
        if any(path.suffix == ".cpp" for path in files) and test_of(unit) not in known
    )  # fmt: skip


def headers_of(graph, start):
    """Returns the headers of this project that the file `start` includes, directly or through other
    headers. Headers that include no header of this project are left out. `graph` maps a file to its
    includes of this project.
    """
    found, waiting = set(), list(graph[start])
    while waiting:
        header = waiting.pop()
        if header not in found and header in graph:
            found.add(header)
            waiting += graph[header]
    return {header for header in found if graph[header]}


def longest_chain(graph):
    """Returns the longest chain of files of which each includes the next one."""
    known = {}

    def chain(node, trail):
        if node not in known:
            # Files that are already in the chain are skipped, so that the search ends if includes
            # form a cycle. Another rule of check_tree.py reports cycles.
            below = [
                chain(target, {*trail, node}) for target in graph[node]
                if target in graph and target not in trail
            ]  # fmt: skip
            known[node] = [node, *max(below, key=len, default=[])]
        return known[node]

    return max((chain(node, set()) for node in sorted(graph)), key=len, default=[])


def members_of_classes(code):
    """Returns {class: number of declared members} for C++ code without comments and strings.
    Members of a nested class count for the nested class only.
    """
    found = {}
    # One entry for each open brace: the name of its class, "" for a namespace, None for other
    # braces.
    stack = []
    statement = ""
    for at, char in enumerate(code):
        in_class = bool(stack) and bool(stack[-1])
        if char == "{":
            owner = owner_of(statement, stack)
            stack.append(owner)
            if owner is not None:
                if owner:
                    found.setdefault(owner, 0)
                statement = ""
        elif char == "}" and stack:
            closed = stack.pop()
            in_class = bool(stack) and bool(stack[-1])
            if closed is not None:
                statement = ""
            elif in_class and code[at + 1 :].lstrip()[:1] not in (",", "{", ";", ")"):
                found[stack[-1]] += count_members(statement)  # this brace ends a function body
                statement = ""
            elif not stack or stack[-1] == "":
                statement = ""
        elif char == ";" and (not stack or stack[-1] is not None):
            if in_class:
                found[stack[-1]] += count_members(statement)
            statement = ""
        elif not stack or stack[-1] is not None:
            statement += char
    return found


def owner_of(statement, stack):
    """Returns the entry of `stack` for a brace that follows `statement`: the name of a class, ""
    for a namespace, None for other braces.
    """
    if stack and stack[-1] is None:
        return None
    head = ACCESS.sub("", statement).strip()
    if re.search(r"\bnamespace\b[^()]*$|^extern\s*$", head):
        return ""
    if not re.search(r"\benum\b", head):
        if match := CLASS_HEAD.search(head):
            outer = f"{stack[-1]}::" if stack and stack[-1] else ""
            return outer + (match[1] or "(unnamed)")
    return None


def count_members(statement):
    text = " ".join(ACCESS.sub("", statement).split())
    if not text or NO_MEMBER.search(text):
        return 0
    if "(" in text:
        return 1
    # A declaration may declare several names, separated by commas. Commas between template
    # arguments and in brackets are removed first.
    while (shorter := re.sub(r"<[^<>]*>|\[[^\[\]]*\]", "", text)) != text:
        text = shorter
    return 1 + text.count(",")


def test_cases(texts):
    """Returns the number of all test cases in {path: text}, and the number of those that start a
    server.
    """
    in_units = sum(
        len(TEST_CASE.findall(text))
        for path, text in texts.items() if path.parts[0] == "tests" and path.suffix == ".cpp"
    )  # fmt: skip
    in_scripts = with_server = 0
    for path, text in texts.items():
        if path.parts[0] != "tests" or path.suffix != ".py":
            continue
        for part in SCRIPT_CLASS.split(text):
            count = len(SCRIPT_CASE.findall(part))
            in_scripts += count
            if path.parts[1] == "system" and not PLAIN_SCRIPT_CLASS.match(part):
                with_server += count
    return in_units + in_scripts, with_server


def quoted_files(text):
    return QUOTED_FILE.findall(text)


def headings(page):
    """Returns the headings of a Markdown page, and the bold text at the start of its paragraphs."""
    return set(re.findall(r"^(?:#+ |\*\*)(.*?)(?:\*\*.*)?$", page, re.MULTILINE))


def quoted_sections(text):
    """Yields (page, section) for each reference in the text of the form `docs/page.md, "Section"`
    or `docs/page.md, "Section" and "Section"`.
    """
    for page, sections in QUOTED_SECTION.findall(" ".join(text.split())):
        for section in re.findall(r'"([^"]+)"', sections):
            yield page, section
