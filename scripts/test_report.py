# SPDX-License-Identifier: MIT
"""Reads the test results from the JUnit files that ctest writes.

Each case of a GoogleTest program counts as a test, with its own time. A Python file of system tests
counts as one test. A test that could not run, for example because its program is missing, counts as
failed. A skipped test counts neither as passed nor as failed. GoogleTest reports skipped cases, and
a file of system tests prints a line for each skipped test (ServerTest.skipTest). A file with
skipped tests passes if at least one of its tests ran.
"""

import dataclasses
import re
import xml.etree.ElementTree

OUTPUT_LINES_MAX = 60
SKIPPED_LINE = re.compile(r"^SKIPPED (\S+): .*$", re.MULTILINE)
RAN_LINE = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
PROGRAM_LINE = re.compile(r"^\[==========\] Running \d+ tests? from \d+ test", re.MULTILINE)
CASE_BEGINS = re.compile(r"\[ RUN      \] ([\w/.]+)$")
# Matches the result of a case anywhere in a line, because a case may print text without a newline
# before it.
CASE_ENDS = re.compile(
    r"\[(       OK|  FAILED |  SKIPPED) \] ([\w/.]+)(?:, where .*)? \((\d+) ms\)$"
)


@dataclasses.dataclass
class Failure:
    name: str
    reason: str
    output: str
    repeat: str = ""  # command that runs this test alone

    def __str__(self):
        lines = [f"== {self.name}: {self.reason}", *self.output.splitlines()[-OUTPUT_LINES_MAX:]]
        return "\n".join([*lines, f"to repeat it: {self.repeat}"] if self.repeat else lines)


@dataclasses.dataclass
class Report:
    passed: int = 0
    failures: list = dataclasses.field(default_factory=list)
    skipped: list = dataclasses.field(default_factory=list)
    times: list = dataclasses.field(default_factory=list)  # pairs (seconds, name) of all tests

    @property
    def failed(self):
        return len(self.failures)

    def add(self, other):
        self.passed += other.passed
        self.failures += other.failures
        self.skipped += other.skipped
        self.times += other.times


class _Program:
    """Parses the output of one GoogleTest program, case by case."""

    def __init__(self, preset, test, status, output):
        self.report = Report()
        self._preset = preset
        self._binary = test.rpartition(".")[0] or test
        self._case, self._lines = None, []
        for line in output.splitlines():
            self._read(line)
        if self._case:
            self._fail(self._case, f"{status} during this case")
        elif status != "run" and not self.report.failures:
            name = f"{preset}: {test}"
            self.report.failures.append(Failure(name, f"{status} after its last case", output))

    def _read(self, line):
        self._lines.append(line)
        if begins := CASE_BEGINS.search(line):
            self._case, self._lines = begins[1], [line]
        elif (ends := CASE_ENDS.search(line)) and ends[2] == self._case:
            self._end(ends[1].strip(), int(ends[3]) / 1000)

    def _end(self, result, seconds):
        name = f"{self._preset}: {self._case}"
        self.report.times.append((seconds, name))
        if result == "OK":
            self.report.passed += 1
        elif result == "SKIPPED":
            self.report.skipped.append(name)
        else:
            self._fail(self._case, "failed")
        self._case = None

    def _fail(self, case, reason):
        repeat = f"build/{self._preset}/tests/{self._binary} --gtest_filter='{case}'"
        name = f"{self._preset}: {case}"
        self.report.failures.append(Failure(name, reason, "\n".join(self._lines), repeat))


def _is_skipped(case):
    mark = case.find("skipped")
    return mark is not None and mark.get("message", "").startswith("SKIP_")


def _read_script(preset, case, status, output):
    """Returns the report of a ctest test that is not a GoogleTest program. Such a program counts as
    one test.
    """
    test = case.get("name")
    name = f"{preset}: {test}"
    report = Report(times=[(float(case.get("time") or 0), name)])
    skipped = SKIPPED_LINE.findall(output)
    ran = RAN_LINE.search(output)
    if _is_skipped(case):
        report.skipped.append(name)
    elif status != "run":
        repeat = f"ctest --preset {preset} --tests-regex '^{re.escape(test)}$'"
        report.failures.append(Failure(name, status, output, repeat))
    else:
        report.skipped += [f"{name} {one}" for one in skipped]
        report.passed += not skipped or not ran or int(ran[1]) > len(skipped)
    return report


def read(preset, path):
    """Reads the JUnit file `path`, which ctest wrote for the build `preset`. Errors: OSError,
    ParseError, and ValueError if no test ran.
    """
    cases = xml.etree.ElementTree.parse(path).getroot().findall("testcase")
    if not cases:
        raise ValueError("no test ran")
    report = Report()
    for case in cases:
        status, output = case.get("status"), case.findtext("system-out") or ""
        if PROGRAM_LINE.search(output):
            report.add(_Program(preset, case.get("name"), status, output).report)
        else:
            report.add(_read_script(preset, case, status, output))
    return report
