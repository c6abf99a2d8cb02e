#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the house rules that a compiler does not check. Every message says how to fix the file.

Usage: check_tree.py [--root DIR] [--build DIR] [--numbers]
  --root     the tree to check (default: the tree of this script)
  --build    a configured build folder; with it, sources that no target builds are found too
  --numbers  print the sizes of the tree (scripts/tree_numbers.py) and check nothing

Rules: includes keep the order of folders (LAYERS, scripts/server_order.py), have paths relative to
the root, and form no cycle of files or of folders. The number of headers that a source includes
indirectly is limited. Files, functions, lines, folders and classes have maximum sizes. Each file
has its licence line, and no word that must not be committed. Commands read memory limits only
through Admission. Containers are not emptied by assigning an empty one, which would keep the memory
of the old elements. Each unit has a test file. No test sleeps, chooses a fixed port or repeats an
error text of the product. A file or a section of docs/ that a comment names must exist.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

import error_texts
import server_order
import tree_facts
import tree_numbers

SPDX = "SPDX-License-Identifier: MIT"
# Limit on the lines of a file. Do not split a class across two files to stay within the limit.
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
LINE_COLUMNS_MAX = 100
FOLDER_UNITS_MAX = 20
# Minimum number of units in a sub-folder of a library of server/. The library's own folder may have
# fewer units.
FOLDER_UNITS_MIN = 4
CLASS_MEMBERS_MAX = 50
CHAIN_FILES_MAX = 9
PULLED_HEADERS_MAX = 32
# The file that lists the units without a test. These units are older than the rule that requires
# tests. The list may only get shorter.
UNTESTED_UNITS = "scripts/untested_units.txt"
PRODUCT_FOLDERS = tree_facts.PRODUCT_FOLDERS
SOURCE_FOLDERS = (*PRODUCT_FOLDERS, "tests", "bench")

# Maps a folder to the headers that it may include: folders and headers of this tree, and prefixes
# of <...> headers. Headers of the standard library are always allowed.
BOOST_IN_CORE = ("boost/container/", "boost/unordered/", "boost/system/")
LAYERS = {
    "core": (("core",), ("xxhash.h", "fmt/", *BOOST_IN_CORE)),
    "protocol": (("protocol", "core/number.h", "core/memory/growing_block.h"), ("fmt/",)),
    "persistence": (
        ("persistence", "core", "protocol"),
        ("fmt/", "xxhash.h", "isa-l", "lzf.h", "liblzf/", *BOOST_IN_CORE),
    ),
    "server": (PRODUCT_FOLDERS, ("",)),
}
ASIO_ALLOWED = (
    "server/net/", "server/admin/", "server/cluster/etcd_", "server/cluster_node/",
    "server/cluster_tool/", "server/server.", "server/main.cpp",
)  # fmt: skip
ASIO = re.compile(r"boost/(asio|beast)\b")

# Matches headers of the C library and of Linux. A <...> header without a dot in its name belongs to
# the C++ standard library.
POSIX_HEADERS = re.compile(
    r"^(sys|netinet|arpa|linux|asm)/|^(unistd|fcntl|poll|signal|pthread|time|errno|string|stdio"
    r"|stdlib|stdint|stddef|limits|math|float|sched|netdb|dirent|malloc|[a-z0-9]*intrin|arm_neon)"
    r"\.h$"
)
POSIX_ALLOWED = {
    # core/ may use system calls for memory and threads, but not for files or sockets.
    "core": re.compile(
        r"^(sys/(mman|resource|stat)\.h|unistd\.h|pthread\.h|[a-z0-9]*intrin\.h|arm_neon\.h)$"
    ),
    "protocol": re.compile(r"^[a-z0-9]*intrin\.h$"),
    "persistence": POSIX_HEADERS,
    "server": POSIX_HEADERS,
}

BANNED = [
    # The banned words are written in pieces, so that this file does not contain them itself.
    (re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b(?!\s*\(?#\d+)"),
     "an unfinished mark needs an issue number, e.g. TO" "DO(#12); or finish it"),
    (re.compile(r"(?<![\w.])/(ho" r"me|Us" r"ers)/[A-Za-z]|(?<![\w.])/ro" r"ot/"),
     "a path of one machine: write it relative to the tree, or take it as an option"),
]  # fmt: skip
# Code that makes tests fail by chance: sleeping, and fixed ports. Maps the pattern of such code to
# (folders where it is forbidden, helper files that may use it, message).
LUCK = {
    re.compile(
        r"\btime\.sleep\(|\basyncio\.sleep\(|\bfrom time import .*\bsleep\b"
        r"|\b(?:sleep_for|sleep_until|usleep|nanosleep)\b|::sleep\("
    ): (
        ("tests",), ("tests/system/harness/waiting.py", "tests/support/waiting.h"),
        "a test that sleeps is slow, or fails on a busy machine: wait_until() waits for a "
        "condition; let_time_pass() and pace() are for tests whose subject is time",
    ),
    re.compile(
        r"\.bind\(\(\"|create_(?:server|connection)\(\(\"[^\"]*\", [1-9]|\bhtons\([1-9]"
        r"|start_(?:server|redis)\([^)]*\"--port\", \"?[1-9]"
    ): (
        ("tests", "bench"), ("tests/system/harness/ports.py",),
        "another process may have this port, or get it soon: harness.free_port() in Python, "
        "ReservedPort in C++",
    ),
}
# Matches an assignment of an empty container to an existing variable. After the assignment the
# variable keeps the memory of its old elements.
EMPTIED = re.compile(
    r"(?:(?<=[;{})])|\belse)\s*((?:\w+(?:\.|->|\[\w*\]\.?))*\w+)\s*="
    r"\s*(?:\{\}|std::(?:string|vector<[^;=]*>)(?:\(\)|\{\}));"
)
# Matches limits of the configuration and of memory, which apply only to commands of clients. In
# commands/ and dispatch/, only the file ADMISSION may read these limits.
ADMISSION = "server/dispatch/admission.h"
LIMITS = re.compile(
    r"\b(max_bulk_bytes|bloom_memory_limit_bytes|UnlimitedMemory|kProtoMaxBulkLen"
    r"|kBloomMemoryUsageLimit|memory_?\.(fits|available_bytes|measure_available|over_limit))\b"
)
# Matches the steps of Context::commit(). In commands/, only these files may call a single step.
COMMIT_STEPS = re.compile(r"\bctx\.(mark_changed|journal|journal_once|commits)\b")
COMMIT_HELPERS = (
    "server/commands/bloom/bloom_journal.cpp",
    "server/commands/bloom/bloom_journal.h",
    "server/commands/strings/multi_string_commands.cpp",
)
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
# Matches the start of the definition of a member function, and its class. Only definitions begin at
# the start of a line.
MEMBER_DEFINITION = re.compile(
    r"^(?:[\w:][^\n;{}()=#]*?[\s*&>])??((?:[A-Z]\w*::)+)~?\w+\(", re.MULTILINE
)
# Matches the code before a `{` if this brace does not open a function body.
NOT_A_FUNCTION = re.compile(
    r"\b(namespace|class|struct|union|enum|extern)\b[^()]*$|=\s*$|\b(return|do|else|try)\s*$"
)


class Tree:
    """Holds the files of the tree that git does not ignore, and the problems found in them. Outside
    a git repository it holds all files.
    """

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.problems = []
        self.files = self._list_files()
        self.sources = [
            path for path in self.files
            if path.suffix in (".h", ".cpp") and path.parts[0] in SOURCE_FOLDERS
        ]  # fmt: skip
        self.texts = {path: self._read(path) for path in self.files}
        self.includes = {
            path: [(match[1], match[2], self._line(path, match.start()))
                   for match in INCLUDE.finditer(self.texts[path])]
            for path in self.sources
        }  # fmt: skip

    def _list_files(self):
        done = subprocess.run(
            # Without safe.directory, git rejects a tree that another user owns, such as a folder
            # that is mounted into a container.
            ["git", "-c", "safe.directory=*", "-C", self.root,
             "ls-files", "-z", "-c", "-o", "--exclude-standard"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            names = [name for name in done.stdout.decode().split("\0") if name]
        else:
            names = [
                str(path.relative_to(self.root))
                for folder in self.root.iterdir() if folder.name not in (".git", "build")
                for path in (folder, *folder.rglob("*"))
            ]  # fmt: skip
        paths = map(pathlib.Path, sorted(names))
        return [path for path in paths if (self.root / path).is_file()]

    def _read(self, path):
        try:
            return (self.root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            # This is a binary file, which has no lines to check.
            return ""

    def _line(self, path, position):
        return self.texts[path].count("\n", 0, position) + 1

    def complain(self, path, line, message):
        self.problems.append(f"{path}:{line}: {message}")

    # Each of the check_ methods below checks a rule, or several rules about one subject.

    def check_opening(self):
        for path in self.files:
            if path.suffix in (".h", ".cpp", ".py", ".sh", ".mjs", ".cjs", ".rb", ".php"):
                head = "\n".join(self.texts[path].split("\n")[:4])
                if SPDX not in head:
                    self.complain(path, 1, f"no licence line: open the file with `{SPDX}`")
        for path in self.sources:
            if path.suffix == ".h":
                self._check_header_opening(path)

    def _check_header_opening(self, path):
        text = self.texts[path]
        if not re.search(r"^#pragma once$", text, re.MULTILINE):
            self.complain(path, 1, "no include guard: add `#pragma once` after the opening comment")
        opening = text.split("#pragma once")[0].split("\n")
        said = [line for line in opening if re.match(r"// *\S", line) and "SPDX" not in line]
        if not said:
            self.complain(path, 1, "no opening comment: say in a sentence what this header is for")

    def check_includes(self):
        for path in self.sources:
            for own, system, line in self.includes[path]:
                if own:
                    self._check_own_include(path, own, line)
                elif path.parts[0] in LAYERS:
                    self._check_system_include(path, system, line)

    def _check_own_include(self, path, include, line):
        if include.split("/")[0] not in SOURCE_FOLDERS or not (self.root / include).is_file():
            self.complain(
                path, line,
                f'"{include}" is not a path from the root: write e.g. "core/bloom/hash.h", and '
                "<...> for a library",
            )  # fmt: skip
            return
        folder, target = path.parts[0], include.split("/")[0]
        if folder not in LAYERS:
            return
        allowed = LAYERS[folder][0]
        if target not in allowed and include not in allowed:
            self.complain(
                path, line,
                f'{folder}/ may not include "{include}" (only {", ".join(allowed)}): move the '
                "shared part down or pass it in from above",
            )  # fmt: skip
        elif folder == target == "server":
            self._check_server_include(path, include, line)

    def _check_server_include(self, path, include, line):
        if wrong := server_order.fault(path, pathlib.Path(include)):
            self.complain(
                path, line, f'no "{include}" here, {wrong}: pass a callback or an interface down'
            )

    def _check_system_include(self, path, include, line):
        if ASIO.match(include):
            if not str(path).startswith(ASIO_ALLOWED):
                self.complain(
                    path, line,
                    f"<{include}>: Asio only in {', '.join(ASIO_ALLOWED)}, so that handlers cannot "
                    "suspend: hand the waiting to the connection",
                )  # fmt: skip
            return
        folder = path.parts[0]
        is_std = re.fullmatch(r"[a-z_0-9]+", include)
        is_posix = POSIX_HEADERS.match(include)
        if is_std:
            return
        if is_posix:
            if not POSIX_ALLOWED[folder].match(include):
                self.complain(
                    path, line, f"<{include}> in {folder}/: files and sockets belong higher up"
                )
        elif not include.startswith(LAYERS[folder][1]):
            self.complain(
                path, line,
                f"<{include}> is not on the list of {folder}/ in scripts/check_tree.py: remove "
                "it, or move the code to the folder that may use it",
            )  # fmt: skip

    def check_cycles(self):
        graph = {
            str(path): [own for own, _, _ in self.includes[path] if own] for path in self.sources
        }
        done, reported = set(), set()
        for start in sorted(graph):
            self._walk(graph, start, [], done, reported)

    def _walk(self, graph, node, trail, done, reported):
        if node in trail:
            cycle = trail[trail.index(node) :]
            if frozenset(cycle) not in reported:
                reported.add(frozenset(cycle))
                self.complain(
                    cycle[0], 1,
                    f"include cycle {' -> '.join([*cycle, node])}: declare forward, or move what "
                    "both need into a third header",
                )  # fmt: skip
            return
        if node in done or node not in graph:
            return
        for target in graph[node]:
            self._walk(graph, target, [*trail, node], done, reported)
        done.add(node)

    def check_folder_pairs(self):
        """Reports pairs of folders whose files include each other, because neither folder is lower
        than the other one.
        """
        first = {}  # maps (including folder, included folder) to the first such include
        for path in self._product_sources():
            for own, _, line in self.includes[path]:
                pair = path.parent, pathlib.Path(own or path).parent
                if pair[0] != pair[1] and str(pair[1]).startswith(PRODUCT_FOLDERS):
                    first.setdefault(pair, (path, line, own))
        for (folder, other), (path, line, own) in sorted(first.items()):
            if folder < other and (other, folder) in first:
                back, back_line, _ = first[other, folder]
                self.complain(
                    path, line,
                    f'"{own}": {folder}/ and {other}/ include each other ({back}:{back_line}): '
                    "decide which is higher, and move the shared part to the lower one",
                )  # fmt: skip

    def check_reach(self):
        """Checks the number of headers that a source includes, directly or through other headers,
        and the length of the longest chain of includes.
        """
        graph = {
            str(path): [own for own, _, _ in self.includes[path] if own]
            for path in self._product_sources()
        }
        chain = tree_facts.longest_chain(graph)
        if len(chain) > CHAIN_FILES_MAX:
            self.complain(
                chain[0], 1,
                f"a chain of {len(chain)} includes, {CHAIN_FILES_MAX} are allowed: "
                f"{' -> '.join(chain)}: declare forward where a reference or pointer suffices",
            )  # fmt: skip
        for source in graph:
            if not source.endswith(".cpp") or source in tree_facts.COMPOSERS:
                continue
            count = len(tree_facts.headers_of(graph, source))
            if count > PULLED_HEADERS_MAX:
                self.complain(
                    source, 1,
                    f"pulls in {count} headers that include others, {PULLED_HEADERS_MAX} are "
                    "allowed: declare forward in its headers where a reference or pointer "
                    "suffices, or split it",
                )  # fmt: skip

    def _product_sources(self):
        return [path for path in self.sources if path.parts[0] in PRODUCT_FOLDERS]

    def check_sizes(self):
        for path in self.sources:
            lines = self.texts[path].split("\n")
            if len(lines) - 1 > FILE_LINES_MAX:
                self.complain(
                    path, 1,
                    f"{len(lines) - 1} lines, {FILE_LINES_MAX} are allowed: split it by noun",
                )  # fmt: skip
            for name, start, length in functions(self.texts[path]):
                if length > FUNCTION_LINES_MAX:
                    self.complain(
                        path, start,
                        f"`{name}` has {length} lines, {FUNCTION_LINES_MAX} are allowed: give its "
                        "parts names of their own",
                    )  # fmt: skip
        for path in self.files:
            if path.suffix not in (".h", ".cpp", ".py", ".sh", ".cjs", ".mjs", ".rb", ".php"):
                continue
            for number, line in enumerate(self.texts[path].split("\n"), 1):
                # A URL does not count towards the length of a line, because it cannot be split.
                if len(re.sub(r"https?://\S+", "", line)) > LINE_COLUMNS_MAX:
                    self.complain(
                        path, number,
                        f"{len(line)} columns, {LINE_COLUMNS_MAX} are allowed: run clang-format or "
                        "break the line",
                    )  # fmt: skip

    def check_words(self):
        for path in self.files:
            for number, line in enumerate(self.texts[path].split("\n"), 1):
                for pattern, message in BANNED:
                    if found := pattern.search(line):
                        self.complain(path, number, f"`{found[0]}`: {message}")

    def check_luck(self):
        for path in self.files:
            if path.suffix not in (".py", ".h", ".cpp"):
                continue
            for pattern, (folders, helpers, cure) in LUCK.items():
                if path.parts[0] not in folders or str(path) in helpers:
                    continue
                for number, line in enumerate(self.texts[path].split("\n"), 1):
                    if found := pattern.search(line):
                        self.complain(path, number, f"`{found[0]}`: {cure}")

    def complain_of_matches(self, path, pattern, complaint, group=0):
        """Complains about each match of the pattern in the code of a file, in the line where the
        group begins.
        """
        code = strip_code(self.texts[path])
        for found in pattern.finditer(code):
            number = code.count("\n", 0, found.start(group)) + 1
            self.complain(path, number, f"`{found[0].strip()}`{complaint}")

    def check_emptied(self):
        complaint = (
            " keeps the capacity of a string or vector: core::release_storage() gives it back, "
            "clear() says that it is kept; for anything else name the type, as in `x = Type{};`"
        )
        for path in self.sources:
            if path.parts[0] in PRODUCT_FOLDERS:
                self.complain_of_matches(path, EMPTIED, complaint, group=1)

    def check_limits(self):
        complaint = (
            ": commands of a journal or a leader were admitted before; ask ctx.admission(), which "
            f"knows the origin ({ADMISSION})"
        )
        for path in self.sources:
            is_command = path.parts[0] == "server" and path.parts[1] in ("commands", "dispatch")
            if is_command and str(path.with_suffix(".h")) != ADMISSION:
                self.complain_of_matches(path, LIMITS, complaint)

    def check_commits(self):
        complaint = " is one step of a commit; ctx.commit(key, event, effect) does all of them"
        for path in self.sources:
            if path.parts[:2] == ("server", "commands") and str(path) not in COMMIT_HELPERS:
                self.complain_of_matches(path, COMMIT_STEPS, complaint)

    def check_error_texts(self):
        product = {path: self.texts[path] for path in self._product_sources()}
        tests = {path: self.texts[path] for path in self.sources if path.parts[0] == "tests"}
        for path, line, text, place in error_texts.repeated(product, tests):
            self.complain(
                path, line,
                f'"{text}" repeats the text at {place}: use its constant or function, or match the '
                "code and the noun (tests/support/error_matcher.h)",
            )  # fmt: skip

    def check_tests(self):
        """Reports units that have no test and are not in UNTESTED_UNITS, and entries of
        UNTESTED_UNITS that are out of date.
        """
        listed = self._listed(UNTESTED_UNITS)
        missing = set(tree_facts.units_without_test(self.files))
        for unit in sorted(missing - listed.keys()):
            self.complain(
                f"{unit}.cpp", 1, f"no test: write {tree_facts.test_of(unit)}; its name decides"
            )
        for unit in sorted(listed.keys() - missing):
            self.complain(
                UNTESTED_UNITS, listed[unit],
                f"{unit} has a test or no longer exists: delete the line (or, if only its name has "
                "changed, change it here too)",
            )  # fmt: skip

    def check_folders(self):
        for folder, units in tree_facts.units_of_folders(self.files).items():
            if len(units) > FOLDER_UNITS_MAX:
                self.complain(
                    folder, 1,
                    f"{len(units)} units, {FOLDER_UNITS_MAX} are allowed: give those that belong "
                    "together a folder named by a noun",
                )  # fmt: skip
            is_inside = folder.startswith("server/") and folder.count("/") > 1
            if is_inside and len(units) < FOLDER_UNITS_MIN:
                self.complain(
                    folder, 1,
                    f"{len(units)} units, {FOLDER_UNITS_MIN} are needed: move them to the folder "
                    "above",
                )  # fmt: skip

    def check_classes(self):
        places = {}
        for path in self._product_sources():
            if path.suffix != ".cpp":
                continue
            for found in MEMBER_DEFINITION.finditer(strip_code(self.texts[path])):
                places.setdefault((path.parts[0], found[1].removesuffix("::")), set()).add(path)
        for (_, name), paths in places.items():
            for path in sorted(paths)[1:]:
                self.complain(
                    path, 1,
                    f"defines functions of {name}, as {sorted(paths)[0]} does: define a class in "
                    "one file, or divide it by role",
                )  # fmt: skip
        for name, size in self.class_sizes().items():
            if size > CLASS_MEMBERS_MAX:
                path, _, class_name = name.partition(" ")
                self.complain(
                    path, 1,
                    f"`{class_name}` has {size} members, {CLASS_MEMBERS_MAX} are allowed: move "
                    "members that can be described and tested alone to a class of their own",
                )  # fmt: skip

    def class_sizes(self):
        """Returns {"file class": number of members} of all classes of the product."""
        return {
            f"{path} {name}": size
            for path in self.sources if path.parts[0] in PRODUCT_FOLDERS
            for name, size in tree_facts.members_of_classes(strip_code(self.texts[path])).items()
        }  # fmt: skip

    def _listed(self, name):
        """Returns {entry: line number} of a file that lists one entry per line."""
        lines = self.texts.get(pathlib.Path(name), "").split("\n")
        return {
            line: number for number, line in enumerate(lines, 1) if line and line[0] != "#"
        }  # fmt: skip

    def check_quotations(self):
        """Reports missing files and sections of docs/ that are named by a comment or a page."""
        known = {str(path) for path in self.files}
        names = {path.name for path in self.files}
        headings = {
            str(path): tree_facts.headings(self.texts[path])
            for path in self.files if path.parts[0] == "docs" and path.suffix == ".md"
        }  # fmt: skip
        for path in self.files:
            if path in self.includes:
                quoting = comments(self.texts[path])
            elif path.suffix == ".md":
                quoting = [(1, self.texts[path])]
            else:
                continue
            for line, text in quoting:
                for quoted in tree_facts.quoted_files(text):
                    if quoted not in (known if "/" in quoted else names):
                        self.complain(
                            path, line,
                            f"names {quoted}, which does not exist: name the file that replaced it",
                        )  # fmt: skip
                for page, section in tree_facts.quoted_sections(text):
                    if page in headings and section not in headings[page]:
                        self.complain(
                            path, line,
                            f'{page} has no section "{section}": name one of '
                            + ", ".join(f'"{heading}"' for heading in sorted(headings[page])),
                        )  # fmt: skip

    def check_all_built(self, build):
        database = pathlib.Path(build) / "compile_commands.json"
        if not database.is_file():
            self.complain(database, 1, "missing: configure first, e.g. cmake --preset release")
            return
        root = self.root.resolve()
        built = set()
        for entry in json.loads(database.read_text(encoding="utf-8")):
            built |= sources_of(pathlib.Path(build, entry["directory"], entry["file"]).resolve())
        for path in self.sources:
            # Sources of fuzzers are skipped, because only another preset builds them.
            if path.suffix == ".cpp" and path.parts[:2] != ("tests", "fuzz"):
                if root / path not in built:
                    self.complain(path, 1, "no target builds this: add it to one or delete it")


def sources_of(path):
    """Returns the sources that a unity file of CMake includes. Returns {path} for any other file.
    """
    if path.parent.name != "Unity" or not path.is_file():
        return {path}
    names = re.findall(r'^#include "(.*)"$', path.read_text(encoding="utf-8"), re.MULTILINE)
    return {pathlib.Path(path.parent, name).resolve() for name in names}


NO_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)\"|\"(?:\\.|[^\"\\\n])*\""
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^\s*#(?:[^\n\\]|\\.|\\\n)*",
    re.DOTALL | re.MULTILINE,
)


def strip_code(text):
    """Returns C++ code without comments, strings and preprocessor lines. The line breaks stay."""
    return NO_CODE.sub(lambda match: "\n" * match[0].count("\n"), text)


def comments(text):
    """Returns (first line, text) of each comment. Comments on adjacent lines are one comment."""
    found, end = [], 0
    for match in NO_CODE.finditer(text):
        if not match[0].startswith(("//", "/*")):
            continue
        words = match[0].strip("/* ")
        between = text[end : match.start()]
        if found and not between.strip() and between.count("\n") < 2:
            found[-1] = (found[-1][0], f"{found[-1][1]} {words}")
        else:
            found.append((text.count("\n", 0, match.start()) + 1, words))
        end = match.end()
    return found


def functions(text):
    """Returns (name, first line, number of lines) of each function definition, found by counting
    braces. A lambda belongs to the function that contains it.
    """
    found, depth_stack, code = [], [], strip_code(text)
    line, statement, statement_line, inside = 1, "", 1, None
    for char in code:
        if char == "\n":
            line += 1
        if char == "{":
            is_function = inside is None and is_function_head(statement)
            depth_stack.append(is_function)
            if is_function:
                inside = (function_name(statement), statement_line, len(depth_stack))
        elif char == "}" and depth_stack:
            depth_stack.pop()
            if inside and len(depth_stack) < inside[2]:
                found.append((inside[0], inside[1], line - inside[1] + 1))
                inside = None
        if char in "{};":
            statement = ""
            continue
        if not statement.strip():
            statement_line = line
        statement += char
    return found


def is_function_head(statement):
    return "(" in statement and not NOT_A_FUNCTION.search(statement.strip())


def function_name(statement):
    match = re.search(r"([~\w:]+)\s*\(", statement)
    return match[1] if match else statement.strip()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[1])
    parser.add_argument("--build")
    parser.add_argument("--numbers", action="store_true")
    options = parser.parse_args(arguments)
    tree = Tree(options.root)
    if options.numbers:
        tree_numbers.print_numbers(tree)
        return 0
    tree.check_opening()
    tree.check_includes()
    tree.check_cycles()
    tree.check_folder_pairs()
    tree.check_reach()
    tree.check_sizes()
    tree.check_words()
    tree.check_luck()
    tree.check_emptied()
    tree.check_limits()
    tree.check_commits()
    tree.check_error_texts()
    tree.check_tests()
    tree.check_folders()
    tree.check_classes()
    tree.check_quotations()
    if options.build:
        tree.check_all_built(options.build)
    for problem in tree.problems:
        print(problem)
    print(f"{len(tree.files)} files, {len(tree.problems)} problems")
    return 1 if tree.problems else 0


if __name__ == "__main__":
    sys.exit(main())
