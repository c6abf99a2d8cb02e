#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts what a run of ctest reports; prints `PASSED FAILED`.

Usage: count_tests.py PRESET REPORT FAILURES SKIPPED
  REPORT    the JUnit file of the run
  FAILURES  a file that failed tests are appended to, with the end of their output
  SKIPPED   a file that the names of skipped tests are appended to, one a line

A test that was not run (its binary is missing) has failed. A skipped one has neither passed nor
failed: ctest tells it of a GoogleTest; a file of system tests prints a line for each of its own
(ServerTest.skipTest), and has passed when it has run others besides. Where one process runs many
cases of GoogleTest, each of them counts.
"""

import re
import sys
import xml.etree.ElementTree

OUTPUT_LINES_MAX = 60
SKIPPED_LINE = re.compile(r"^SKIPPED (\S+): .*$", re.MULTILINE)
RAN_LINE = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
# What a GoogleTest program says that runs every n-th case; one that crashed has no sums.
PART_LINE = re.compile(r"^Note: This is test shard \d+ of \d+\.$", re.MULTILINE)
CASES_PASSED = re.compile(r"^\[  PASSED  \] (\d+) tests?\.$", re.MULTILINE)
CASE_SKIPPED = re.compile(r"^\[  SKIPPED \] ([\w/.]+)$", re.MULTILINE)
CASE_FAILED = re.compile(r"^\[  FAILED  \] ([\w/.]+)(?:, where .*)?$", re.MULTILINE)


def is_skipped(case):
    mark = case.find("skipped")
    return mark is not None and mark.get("message", "").startswith("SKIP_")


def write_end(title, output, file):
    print(title, *output.splitlines()[-OUTPUT_LINES_MAX:], sep="\n", file=file)


def count_program(preset, status, output, failures, skipped):
    """(passed, failed) cases of a program that ran several and came to its end."""
    failed = set(CASE_FAILED.findall(output))
    for case in sorted(failed):
        start = output.rfind(f"[ RUN      ] {case}\n")
        end = output.find(f"[  FAILED  ] {case}", start)
        write_end(f"== {preset}: {case}:", output[max(start, 0) : end], failures)
    if status != "run" and not failed:
        write_end(f"== {preset}: {status} after its last case", output, failures)
    for case in CASE_SKIPPED.findall(output):
        print(f"{preset}: {case}", file=skipped)
    good = int(CASES_PASSED.search(output)[1])
    return good, len(failed) or int(status != "run")


def count(preset, cases, failures, skipped):
    good = bad = 0
    for case in cases:
        name, status = case.get("name"), case.get("status")
        output = case.findtext("system-out") or ""
        if PART_LINE.search(output) and CASES_PASSED.search(output):
            passed, failed = count_program(preset, status, output, failures, skipped)
            good += passed
            bad += failed
            continue
        left_out = SKIPPED_LINE.findall(output)
        ran = RAN_LINE.search(output)
        if is_skipped(case):
            print(f"{preset}: {name}", file=skipped)
        elif status != "run":
            bad += 1
            write_end(f"== {preset}: {name}: {status}", output, failures)
        else:
            for test in left_out:
                print(f"{preset}: {name} {test}", file=skipped)
            good += not left_out or not ran or int(ran[1]) > len(left_out)
    return good, bad


def main():
    preset, report, failures_path, skipped_path = sys.argv[1:]
    cases = xml.etree.ElementTree.parse(report).getroot().findall("testcase")
    if not cases:
        sys.exit("no test ran")
    with (
        open(failures_path, "a", encoding="utf-8") as failures,
        open(skipped_path, "a", encoding="utf-8") as skipped,
    ):
        print(*count(preset, cases, failures, skipped))


if __name__ == "__main__":
    main()
