#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how many small faults in the product's code the tests detect (mutation testing).

Usage: mutate.py [--seed SEED] [-n COUNT] [--system] [--only NUMBERS] [--json OUT] [--compare OLD]
                 [--jobs N] [--list]
  --seed     seed of the selection (default: the time); the same tree and seed give the same list
  -n         number of mutations to test; one that does not compile does not count (default 50)
  --system   also run the system tests if the unit tests do not catch a mutation
  --only     numbers of the mutations to test, e.g. 3,9,12; the others are skipped
  --json     write the results to OUT after each mutation
  --compare  test again the mutations in OLD, an earlier output of --json
  --jobs     number of compilers and tests that run at once (default: one per processor)
  --list     print the first COUNT mutations and run nothing

With --system, each mutation takes minutes. With --compare, the script prints the mutations that
were caught in OLD and are not caught now. It exits with 1 if there are any.

scripts/mutation_operators.py defines the mutations. Each mutation changes a line in a copy of the
tree (build/mutate/tree). The script rebuilds the programs that depend on the line, and runs tests
until one fails. The order is: the test file of the changed source, the unit tests of its library,
all other unit tests, the system tests. A mutation that does not compile is replaced by the next
mutation. A crash or a timeout of a test counts as a failure. A failed test runs a second time, and
must fail again to count.
"""

import argparse
import json
import os
import pathlib
import shutil
import sys
import time

import mutation_operators
import tree_facts
from mutation_operators import Mutation
from mutation_tests import Programs, SystemTests, run

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "mutate"
TREE = FOLDER / "tree"
BUILD = FOLDER / "build"
# Files that are not mutated. docs_main.cpp only prints documentation, and no unit or system test
# runs it.
NOT_MUTATED = ("server/docs_main.cpp",)
SYSTEM_TARGETS = (
    "bloomery-server", "bloomery-cluster", "snapshot_tool", "etcd_probe", "simulated_clock",
    "process_faults",
)  # fmt: skip


def copy_tree():
    """Updates build/mutate/tree, the copy of the tree. Unchanged files keep their modification
    times, so that they are not compiled again.
    """
    listed = run(["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"], cwd=ROOT).output
    names = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for old in [path for path in TREE.rglob("*") if path.is_file() or path.is_symlink()]:
        if str(old.relative_to(TREE)) not in names:
            old.unlink()
    for name in names:
        source, target = ROOT / name, TREE / name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    # Makes symbolic links to the folders with the Node clients that system tests run.
    (TREE / "build").mkdir(parents=True, exist_ok=True)
    for modules in (ROOT / "build").glob("node_modules_*"):
        (TREE / "build" / modules.name).symlink_to(modules)


def product_texts(root):
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for folder in tree_facts.PRODUCT_FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in (".h", ".cpp") and str(path.relative_to(root)) not in NOT_MUTATED
    }


def linker():
    """Returns the compiler option for the fastest installed linker, because most of a rebuild is
    the linking of the test programs of server/. Returns "" if only the default linker is installed.
    """
    for name in ("lld", "gold"):
        if shutil.which(f"ld.{name}"):
            return f"-fuse-ld={name}"
    return ""


def configure():
    done = run(
        ["cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
         "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG", "-DBLOOMERY_GROUP_SOURCES=ON",
         "-DBLOOMERY_HARDEN=OFF", f"-DCMAKE_EXE_LINKER_FLAGS={linker()}"],
    )  # fmt: skip
    if done.code:
        sys.exit(done.output)


def build(targets, jobs):
    """Builds the targets. Returns whether the build succeeded, and its output."""
    done = run(["cmake", "--build", BUILD, "--parallel", str(jobs), "--target", *targets])
    return done.code == 0, done.output


def must_build(targets, jobs):
    good, output = build(targets, jobs)
    if not good:
        sys.exit(f"the tree without a mutation does not build:\n{output[-8000:]}")


class Trial:
    """Tests one mutation at a time in the copy of the tree, and restores the changed file."""

    def __init__(self, programs, system, jobs):
        self.programs = programs
        self.system = system
        self.jobs = jobs

    def run(self, mutation):
        """Returns the test that detected the mutation, e.g. `unit core_tests`, or "" if none did.
        Returns None if the mutation does not compile.
        """
        path = TREE / mutation.path
        text = path.read_text(encoding="utf-8")
        path.write_text(mutation_operators.apply(mutation, text), encoding="utf-8")
        try:
            return self._test(mutation.path)
        finally:
            # Writing the old text changes the modification time, so Ninja compiles the file again.
            path.write_text(text, encoding="utf-8")

    def _test(self, path):
        first, *others = self.programs.in_order(tree_facts.library_of(path))
        if not build([first], self.jobs)[0]:
            return None
        if self.programs.catches(first, self.programs.mirror_filter(path)):
            return f"unit {first} of the file"
        if self.programs.catches(first):
            return f"unit {first}"
        if not build(others, self.jobs)[0]:
            return None
        for name in others:
            if self.programs.catches(name):
                return f"unit {name}"
        if self.system:
            if not build(SYSTEM_TARGETS, self.jobs)[0]:
                return None
            if name := self.system.catching(path):
                return f"system {name}"
        return ""


def describe(mutation):
    return (
        f"{mutation.path}:{mutation.line}: {mutation.before.strip()} -> {mutation.after.strip()}"
    )


def from_old(old, texts):
    """Yields (number, mutation) of each result in `old`. The mutation is None if its line no longer
    exists. If the file has moved, the mutation has the new path.
    """
    for row in old["mutations"]:
        mutation = Mutation(*(row[field] for field in Mutation._fields))
        yield row["number"], find_again(mutation, texts)


def find_again(mutation, texts):
    """Returns the mutation with the path and line number that its line has in `texts`, or None. If
    the file no longer exists, a file of the same name in another folder may contain the line.
    """
    name = pathlib.Path(mutation.path).name
    paths = [mutation.path] if mutation.path in texts else sorted(texts)
    for path in paths:
        if pathlib.Path(path).name == name:
            found = mutation_operators.relocate(mutation._replace(path=path), texts[path])
            if found:
                return found
    return None


def lost(old, rows):
    """Returns the results in `rows` whose mutation survived now, but was caught in `old`."""
    caught = {row["number"] for row in old["mutations"] if row["caught_by"]}
    return [row for row in rows if row["number"] in caught and not row["caught_by"]]


def summarize(rows):
    by = [row["caught_by"].split(" ")[0] for row in rows if row["caught_by"]]
    return (
        f"caught {len(by)} of {len(rows)} (unit {by.count('unit')}, system {by.count('system')})"
    )


def run_all(numbered, trial, options, header):
    """Tests mutations until `options.count` of them have compiled, or until all mutations of --only
    are done. Returns the results.
    """
    rows = []
    for number, mutation in numbered:
        if options.only and number not in options.only:
            continue
        if mutation is None:
            print(f"#{number}: the line no longer exists", flush=True)
            continue
        started = time.monotonic()
        caught_by = trial.run(mutation)
        seconds = round(time.monotonic() - started)
        if caught_by is None:
            print(f"#{number}: does not compile: {describe(mutation)}", flush=True)
            continue
        outcome = caught_by or "SURVIVED"
        print(f"#{number}: {outcome}, {seconds} s: {describe(mutation)}", flush=True)
        rows.append(
            {"number": number, **mutation._asdict(), "caught_by": caught_by, "seconds": seconds}
        )
        if options.json:
            document = {**header, "mutations": rows}
            options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        if not options.only and len(rows) == options.count:
            break
        if options.only and number == max(options.only):
            break
    return rows


def print_report(rows, header):
    print(f"\nseed {header['seed']}")
    print(f"{'#':>4} {'caught by':<34} {'seconds':>7}  place")
    for row in rows:
        print(
            f"{row['number']:>4} {row['caught_by'] or 'SURVIVED':<34} {row['seconds']:>7}  "
            f"{row['path']}:{row['line']} ({row['operator']})"
        )
    for row in rows:
        if not row["caught_by"]:
            mutation = Mutation(*(row[field] for field in Mutation._fields))
            print(f"survivor #{row['number']} {describe(mutation)}")
    print(summarize(rows))


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("-n", dest="count", type=int, default=50)
    parser.add_argument("--system", action="store_true")
    parser.add_argument("--only", type=lambda text: {int(each) for each in text.split(",")})
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--compare", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def main():
    options = arguments()
    old = json.loads(options.compare.read_text(encoding="utf-8")) if options.compare else None
    texts = product_texts(ROOT)
    if old:
        numbered = list(from_old(old, texts))
        options.count = len(numbered)
    else:
        numbered = enumerate(mutation_operators.Selection(texts, options.seed), 1)
    header = {"seed": old["seed"] if old else options.seed, "system": options.system}
    print(f"seed {header['seed']}", flush=True)
    if options.list:
        for (number, mutation), _ in zip(numbered, range(options.count)):
            print(f"#{number}: {describe(mutation) if mutation else 'the line no longer exists'}")
        return
    os.environ.setdefault("BLOOMERY_SEED", "1")  # seed of the tests that use random inputs
    copy_tree()
    configure()
    programs = Programs(BUILD / "tests", TREE, options.jobs)
    must_build([*programs.names, *(SYSTEM_TARGETS if options.system else ())], options.jobs)
    programs.measure()
    system = SystemTests(BUILD, options.jobs) if options.system else None
    if system:
        system.measure()
    rows = run_all(numbered, Trial(programs, system, options.jobs), options, header)
    print_report(rows, header)
    missed = lost(old, rows) if old else []
    for row in missed:
        print(f"caught before and not now: #{row['number']} {row['path']}:{row['line']}")
    if missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
