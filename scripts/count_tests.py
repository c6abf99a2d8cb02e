#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts what a run of ctest reports; prints `PASSED FAILED`.

Usage: count_tests.py PRESET REPORT FAILURES SKIPPED
  REPORT    the JUnit file of the run
  FAILURES  a file that failed tests are appended to, with the end of their output
  SKIPPED   a file that the names of skipped tests are appended to, one a line

A test that was not run (its binary is missing) has failed. A skipped one has neither passed nor
failed: ctest tells it of a GoogleTest; a file of system tests prints a line for each of its own
(ServerTest.skipTest), and has passed when it has run others besides.
"""

import re
import sys
import xml.etree.ElementTree

OUTPUT_LINES_MAX = 60
SKIPPED_LINE = re.compile(r"^SKIPPED (\S+): .*$", re.MULTILINE)
RAN_LINE = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)


def is_skipped(case):
    mark = case.find("skipped")
    return mark is not None and mark.get("message", "").startswith("SKIP_")


def count(preset, cases, failures, skipped):
    good = bad = 0
    for case in cases:
        name, status = case.get("name"), case.get("status")
        output = case.findtext("system-out") or ""
        left_out = SKIPPED_LINE.findall(output)
        ran = RAN_LINE.search(output)
        if is_skipped(case):
            print(f"{preset}: {name}", file=skipped)
        elif status != "run":
            bad += 1
            print(f"== {preset}: {name}: {status}", file=failures)
            print(*output.splitlines()[-OUTPUT_LINES_MAX:], sep="\n", file=failures)
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
