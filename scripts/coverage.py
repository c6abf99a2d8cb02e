#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the line and branch coverage of the product's folders, measured by gcov.

Usage: coverage.py [unit|all] [--json OUT] [--compare OLD] [--jobs N] [--sum-only]
  unit, all   run the unit tests only, or the unit tests and the system tests (default: all)
  --json      write the covered and missed lines of each file to OUT, for a later --compare
  --compare   print the lines that the run with `--json OLD` covered and this run does not
  --jobs      number of tests and compilers that run at once (default: one per processor)
  --sum-only  report the coverage of the last run, without a build and without tests

With --compare, the exit status is 1 if the line coverage of a folder is lower than in OLD by more
than 0.1 percentage points.

The build folder is build/coverage. A failed test is reported, but does not stop the measurement.
The time limits of some system tests are too strict for an instrumented server. If a test kills a
server with SIGKILL, the lines that this server has executed are not counted.
"""

import argparse
import difflib
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys

import tree_facts

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "coverage"
# Tests that build or inspect packages and images. They add nothing to the coverage.
SKIPPED_TESTS = r"^system\.(hardening|helm|image|package)$"
# Decrease of a folder's line coverage that is tolerated. Races in the system tests decide whether a
# few rare lines are executed, so that runs differ a little.
SLACK = 0.001


class Lines:
    """Counts how often each line and branch of a source file was executed. The counts are sums over
    all programs that contain the file.
    """

    def __init__(self):
        self.counts = {}  # Maps a line number to how often the line was executed.
        self.branches = {}  # Maps (line number, branch index) to how often the branch was taken.

    def add(self, lines):
        """Adds the counts of `lines`, a list in gcov's JSON format. Branches that only an exception
        takes do not count.
        """
        for line in lines:
            number = line["line_number"]
            self.counts[number] = self.counts.get(number, 0) + line["count"]
            branches = [branch for branch in line.get("branches", ()) if not branch["throw"]]
            for index, branch in enumerate(branches):
                key = number, index
                self.branches[key] = self.branches.get(key, 0) + branch["count"]

    def merge(self, other):
        for own, more in ((self.counts, other.counts), (self.branches, other.branches)):
            for key, count in more.items():
                own[key] = own.get(key, 0) + count

    def covered(self):
        return sorted(number for number, count in self.counts.items() if count)

    def missed(self):
        return sorted(number for number, count in self.counts.items() if not count)


def product_path(name, folder, root):
    """Converts the name of a source in a gcov report to the path relative to `root`. Returns None
    if the source is not part of the product.
    """
    path = pathlib.Path(os.path.normpath(pathlib.Path(folder, name)))
    if not path.is_relative_to(root):
        return None
    path = path.relative_to(root)
    is_product = path.parts[0] in tree_facts.PRODUCT_FOLDERS
    return str(path) if is_product and path.suffix in (".h", ".cpp") else None


def merge_report(report, files, root):
    """Adds the counts of a gcov report in JSON to `files`, which maps a path to its Lines."""
    for file in report["files"]:
        path = product_path(file["file"], report["current_working_directory"], root)
        if path:
            files.setdefault(path, Lines()).add(file["lines"])


def read_object(notes):
    """Runs gcov on a .gcno file, even if its program never ran. Returns the .gcno file, {path:
    Lines} or None on an error, and the error text.
    """
    done = subprocess.run(
        ["gcov", "--json-format", "--stdout", "--branch-probabilities", notes],
        cwd=notes.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        return notes, None, done.stderr
    files = {}
    for document in done.stdout.splitlines():
        if document.startswith("{"):
            merge_report(json.loads(document), files, ROOT)
    return notes, files, ""


def read_counters(build, jobs):
    objects = [path for path in sorted(build.rglob("*.gcno")) if "cmake_pch" not in path.name]
    total = {}
    with multiprocessing.Pool(jobs) as pool:
        for notes, files, error in pool.imap_unordered(read_object, objects):
            if files is None:
                sys.exit(f"gcov failed on {notes}: {error}")
            for path, lines in files.items():
                total.setdefault(path, Lines()).merge(lines)
    if not any(lines.covered() for lines in total.values()):
        sys.exit(f"no counters below {build}: no test has run")
    return total


def summarize(files):
    """Returns {folder: {lines, covered, branches, taken}}. The folder `all` has the sums."""
    sums = {}
    for path, lines in files.items():
        for name in (path.split("/")[0], "all"):
            row = sums.setdefault(name, {"lines": 0, "covered": 0, "branches": 0, "taken": 0})
            row["lines"] += len(lines.counts)
            row["covered"] += len(lines.covered())
            row["branches"] += len(lines.branches)
            row["taken"] += sum(1 for count in lines.branches.values() if count)
    return {name: sums[name] for name in (*tree_facts.PRODUCT_FOLDERS, "all") if name in sums}


def ratio(part, whole):
    return part / whole if whole else 1.0


def print_table(sums):
    print(f"{'folder':<12} {'lines':>7} {'covered':>8} {'':>7}  {'branches':>8} {'taken':>7}")
    for name, row in sums.items():
        print(
            f"{name:<12} {row['lines']:>7} {row['covered']:>8} "
            f"{ratio(row['covered'], row['lines']):>7.2%}  {row['branches']:>8} {row['taken']:>7} "
            f"{ratio(row['taken'], row['branches']):>7.2%}"
        )


def to_document(files, sums, root):
    """Returns the document that --json writes. It includes the text of each file, so that
    a later run with --compare finds lines that have moved.
    """
    document = {"folders": sums, "files": {}}
    for path in sorted(files):
        document["files"][path] = {
            "covered": files[path].covered(),
            "missed": files[path].missed(),
            "text": (root / path).read_text(encoding="utf-8").splitlines(),
        }
    return document


def moved_lines(old_text, new_text):
    """Returns {old line number: new line number} of the lines that both versions of a file have."""
    moved = {}
    matcher = difflib.SequenceMatcher(None, old_text, new_text, autojunk=False)
    for old, new, size in matcher.get_matching_blocks():
        for offset in range(size):
            moved[old + offset + 1] = new + offset + 1
    return moved


def lost_lines(old, new):
    """Returns the lines that `old` covered and `new` does not, as {path: line numbers in `new`}."""
    lost = {}
    for path, file in new["files"].items():
        before = old["files"].get(path)
        if before is None:
            continue
        missed = set(file["missed"])
        moved = moved_lines(before["text"], file["text"])
        numbers = [moved[number] for number in before["covered"] if moved.get(number) in missed]
        if numbers:
            lost[path] = numbers
    return lost


def format_ranges(numbers):
    """Formats [1, 2, 3, 7] as `1-3, 7`."""
    ranges = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(f"{low}-{high}" if high > low else str(low) for low, high in ranges)


def lower_folders(old, new):
    """Returns (folder, old coverage, new coverage) of each folder whose line coverage has fallen by
    more than SLACK.
    """
    lower = []
    for name, row in new["folders"].items():
        before = old["folders"].get(name)
        if before is None:
            continue
        was, now = (ratio(sums["covered"], sums["lines"]) for sums in (before, row))
        if now < was - SLACK:
            lower.append((name, was, now))
    return lower


def compare(old, new):
    """Prints the lines that only `old` covers, and the folders whose line coverage is lower in
    `new`. Returns False if there is such a folder, else True.
    """
    for path, numbers in lost_lines(old, new).items():
        print(f"no longer covered: {path}: {format_ranges(numbers)}")
    lower = lower_folders(old, new)
    for name, was, now in lower:
        print(f"lower line coverage: {name}: {was:.2%} before, {now:.2%} now")
    return not lower


def run_tests(suite, jobs):
    """Runs ctest and returns the names of the tests that failed."""
    for counters in BUILD.rglob("*.gcda"):
        counters.unlink()
    runs = [["--label-exclude", "system|scripts"]]
    if suite == "all":
        # Tests with the ctest label `calm` depend on timeouts, so ctest runs them separately.
        runs.append(["--label-regex", "calm"])
        runs.append(["--label-regex", "system", "--label-exclude", "calm"])
    failed = []
    for options in runs:
        done = subprocess.run(
            ["ctest", "--preset", "coverage", "--parallel", str(jobs), "--output-on-failure",
             "--exclude-regex", SKIPPED_TESTS, *options],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            errors="replace",
        )  # fmt: skip
        with (BUILD / "coverage_tests.log").open("a", encoding="utf-8") as log:
            log.write(done.stdout)
        if "tests passed" not in done.stdout:
            sys.exit(done.stdout[-2000:])
        failed += re.findall(
            r"^\s*\d+ - (\S+) \((?!Skipped|Disabled)[\w ]+\)$", done.stdout, re.MULTILINE
        )
    return failed


def build(jobs):
    for command in (["--preset", "coverage"],
                    ["--build", "--preset", "coverage", "--parallel", str(jobs)]):  # fmt: skip
        done = subprocess.run(
            ["cmake", *command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            sys.exit(done.stdout[-8000:])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", nargs="?", choices=("unit", "all"), default="all")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--compare", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--sum-only", action="store_true")
    options = parser.parse_args()
    old = json.loads(options.compare.read_text(encoding="utf-8")) if options.compare else None
    if not options.sum_only:
        # Runs are comparable only if their random tests use the same seed.
        os.environ.setdefault("BLOOMERY_SEED", "1")
        build(options.jobs)
        (BUILD / "coverage_tests.log").unlink(missing_ok=True)
        for name in run_tests(options.suite, options.jobs):
            print(f"failed, see build/coverage/coverage_tests.log: {name}")
    files = read_counters(BUILD, options.jobs)
    sums = summarize(files)
    print_table(sums)
    document = to_document(files, sums, ROOT)
    if options.json:
        options.json.write_text(json.dumps(document) + "\n", encoding="utf-8")
    if old and not compare(old, document):
        sys.exit(1)


if __name__ == "__main__":
    main()
