# SPDX-License-Identifier: MIT
"""Runs the tests of one build until a test fails, for scripts/mutate.py.

A failed test runs a second time, because some tests depend on time and the machine is busy. System
tests that fail without a mutation are reported and skipped. If a unit test fails without a
mutation, the script ends.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import tree_facts

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Number of parts (GoogleTest shards) into which the tests of a program are divided. After a failure
# no further part starts. With small parts, the run therefore ends soon after a failure.
SHARDS = 16
# A unit test program is killed if it runs this many times longer than without a mutation, plus
# TIMEOUT_EXTRA_S. Some mutations make a loop endless.
TIMEOUT_FACTOR = 8
TIMEOUT_EXTRA_S = 60
SIMULATION = "cluster_simulation"
SIMULATION_RUNS = "200"
SUITE = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+),", re.MULTILINE)
SUITE_MADE_BY = re.compile(r"^(?:INSTANTIATE_)?TYPED_TEST_SUITE(?:_P)?\((\w+),", re.MULTILINE)
# Tests that build or inspect packages and images instead of running the server.
SKIPPED_TESTS = ("hardening", "helm", "image", "package")

Done = collections.namedtuple("Done", "code output")


def programs_of(library):
    return f"{library}_tests", f"{library}_threads_tests"


def unit_programs():
    """Returns the names of all GoogleTest programs, those with threads last."""
    listed = (ROOT / "tests" / "threaded_tests.txt").read_text(encoding="utf-8").splitlines()
    threaded = {tree_facts.library_of(line) for line in listed if not line.startswith("#")}
    names = [programs_of(library) for library in tree_facts.LIBRARIES]
    return (
        *(name for name, _ in names),
        *(name for library, (_, name) in zip(tree_facts.LIBRARIES, names) if library in threaded),
    )


def run(command, *, cwd=None, env=None, timeout_s=None, stop=None):
    """Runs a command, and returns its exit code and output. The command runs in its own session.
    All processes of the session are killed after the timeout or when the event `stop` is set; the
    returned code is then None.
    """
    with subprocess.Popen(
        list(map(str, command)), cwd=cwd, env=env and {**os.environ, **env},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        deadline = time.monotonic() + timeout_s if timeout_s else float("inf")
        while True:
            try:
                output, _ = process.communicate(timeout=0.5 if stop or timeout_s else None)
                return Done(process.returncode, output)
            except subprocess.TimeoutExpired:
                if (stop and stop.is_set()) or time.monotonic() > deadline:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
                    return Done(None, "")


class Programs:
    """Runs the GoogleTest programs. Divides the tests of a program into parts, and runs `jobs`
    parts in parallel.
    """

    def __init__(self, folder, tree, jobs):
        self.folder = folder
        self.tree = tree
        self.jobs = jobs
        self.names = (*unit_programs(), SIMULATION)
        self.timeout_s = {}

    def in_order(self, library):
        """Returns the names of all programs, beginning with those that test the given library."""
        first = [name for name in self.names if name in programs_of(library)]
        return [*first, *(name for name in self.names if name not in first)]

    def mirror_filter(self, path):
        """Returns the GoogleTest filter that selects the tests of a source, which are in
        tests/SOURCE_test.cpp. Returns "" if the source has no such file.
        """
        test = self.tree / "tests" / pathlib.Path(path).with_suffix("")
        test = test.with_name(f"{test.name}_test.cpp")
        return suites_filter(test.read_text(encoding="utf-8")) if test.is_file() else ""

    def measure(self):
        """Runs all programs once without a mutation, to set their timeouts by the measured times.
        """
        for name in self.names:
            started = time.monotonic()
            self.timeout_s[name] = 3600
            if self.catches(name):
                sys.exit(f"{name} fails without a mutation")
            seconds = time.monotonic() - started
            self.timeout_s[name] = seconds * TIMEOUT_FACTOR + TIMEOUT_EXTRA_S
            print(f"{name}: {seconds:.0f} s without a mutation", flush=True)

    def catches(self, name, only=None):
        """Returns whether a test of the program fails. `only` is a GoogleTest filter; None runs all
        tests, and "" runs no test.
        """
        if only == "":
            return False
        shards = SHARDS if only is None else 1
        stop = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            parts = [
                pool.submit(self._part_fails, name, only or "*", shards, index, stop)
                for index in range(shards)
            ]
            for part in concurrent.futures.as_completed(parts):
                if part.result():
                    stop.set()
        return stop.is_set()

    def _part_fails(self, name, only, shards, index, stop):
        environment = {
            "GTEST_TOTAL_SHARDS": str(shards),
            "GTEST_SHARD_INDEX": str(index),
            "GTEST_FAIL_FAST": "1",
            "BLOOMERY_SIMULATION_RUNS": SIMULATION_RUNS,
        }
        for _ in range(2):
            if stop.is_set():
                return False
            done = run(
                [self.folder / name, f"--gtest_filter={only}"], env=environment,
                timeout_s=self.timeout_s[name], stop=stop,
            )  # fmt: skip
            if done.code == 0 or (done.code is None and stop.is_set()):
                return False
            if done.code is None:
                return True
        return True


def suites_filter(text):
    """Returns the GoogleTest filter that selects all test suites of a source file with the content
    `text`; "" if it has none.
    """
    suites = sorted(set(SUITE.findall(text)) | set(SUITE_MADE_BY.findall(text)))
    return ":".join(
        pattern for suite in suites for pattern in (f"{suite}.*", f"*/{suite}.*", f"{suite}/*")
    )


SystemTest = collections.namedtuple("SystemTest", "name command env folder timeout_s calm")


class SystemTests:
    """Runs the system tests that ctest lists. Tests whose names resemble the path of the mutated
    source run first; among equals, the fastest test runs first.
    """

    def __init__(self, build, jobs):
        self.jobs = jobs
        self.seconds = {}
        listed = run(["ctest", "--show-only=json-v1", "-L", "system"], cwd=build)
        self.tests = [
            test for test in map(read_test, json.loads(listed.output)["tests"])
            if test.name not in SKIPPED_TESTS
        ]  # fmt: skip

    def measure(self):
        """Runs all tests without a mutation, and measures their times. Later runs exclude the tests
        that fail here.
        """
        for test in self._failing(self.tests, stop_at_first=False):
            print(f"fails without a mutation, skipped: system.{test.name}", flush=True)
            self.tests.remove(test)
        print(f"system tests: {sum(self.seconds.values()):.0f} s without a mutation", flush=True)

    def catching(self, path):
        """Returns the name of a test that fails with the mutation in the source `path`; "" if all
        tests pass.
        """
        ordered = sorted(
            self.tests,
            key=lambda test: (-likeness(path, test.name), self.seconds.get(test.name, 0)),
        )
        failing = self._failing(ordered, stop_at_first=True)
        return failing[0].name if failing else ""

    def _failing(self, tests, *, stop_at_first):
        failing, stop = [], threading.Event()
        # Tests with the ctest label `calm` run one at a time, because they depend on timeouts
        # and fail on busy processors.
        for group, jobs in (
            ([test for test in tests if not test.calm], self.jobs),
            ([test for test in tests if test.calm], 1),
        ):
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                futures = {pool.submit(self._fails, test, stop): test for test in group}
                for future in concurrent.futures.as_completed(futures):
                    if future.result():
                        failing.append(futures[future])
                        if stop_at_first:
                            stop.set()
        return failing

    def _fails(self, test, stop):
        for _ in range(2):
            if stop.is_set():
                return False
            started = time.monotonic()
            done = run(
                test.command, cwd=test.folder, env=test.env, timeout_s=test.timeout_s, stop=stop
            )
            if done.code == 0:
                self.seconds.setdefault(test.name, time.monotonic() - started)
                return False
            if stop.is_set():
                return False
        return True


def read_test(row):
    """Makes a SystemTest from the JSON object by which ctest describes a test."""
    properties = {each["name"]: each["value"] for each in row["properties"]}
    return SystemTest(
        row["name"].removeprefix("system."),
        row["command"],
        dict(each.split("=", 1) for each in properties["ENVIRONMENT"]),
        properties["WORKING_DIRECTORY"],
        properties["TIMEOUT"],
        "calm" in properties["LABELS"],
    )


def likeness(path, test_name):
    """Counts the words of a test's name that occur in the path of a source. Two words are equal if
    their first five letters are.
    """
    words = re.findall(r"[a-z]+", str(pathlib.Path(path).with_suffix("")))
    return sum(
        any(word[:5] == part[:5] for part in words) for word in test_name.split("_")
    )
