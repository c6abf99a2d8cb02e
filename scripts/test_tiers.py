#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the tests of one tier. scripts/test.sh installs the needed packages and calls this script.

Usage: scripts/test.sh [TIER]
  (none)           the tests that the CI runs
  quick [LIBRARY…] run after an edit: checks of changed files, and the fastest unit tests
  unit             run before a commit: all unit tests of the release build
  long             run before a release: all tests with more rounds; takes hours
  stress [N]       the system tests N times (default 5), each time with another seed

Without a tier, all tests run in release. The unit tests also run under ASan and UBSan, and the
tests with threads under TSan. Each fuzzer runs over its corpus and for 5 s.

The tier `quick` checks the format of changed files, and the prose and house rules. Then it runs the
unit tests of the changed libraries, or of each LIBRARY (core, persistence, server_net and others).
Tests that use threads or sockets do not run.

The tier `long` runs all tests in release with more rounds, and each fuzzer for 60 s. Under ASan and
TSan it runs the unit tests, and the system tests labelled `sanitized` or `threads`. It also runs a
soak of ten minutes, and tests the platforms of scripts/try_platform.sh.

In the tier `stress`, four busy loops run during the tests, so that the tests get less processor
time.

The last line is `N passed, N failed`. Before it, the script prints the seconds of each part of the
tier, and the slowest tests. Each failure is printed with the command that repeats the test.

Environment:
  BLOOMERY_SEED  the seed of the random tests (default 1)
  BLOOMERY_SLOW  factor by which all deadlines are multiplied

With the default seed, a change is tested with the same random cases as the previous commit.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree

import check_prose
import test_report
import tree_facts

ROOT = pathlib.Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "logs"
LIBRARIES = tree_facts.LIBRARIES
JOBS = len(os.sched_getaffinity(0))
# Number of parallel jobs for system tests and tests with threads. It exceeds the number of cores,
# because these tests wait much of the time.
WAITING_JOBS = JOBS + 2
SLOWEST_SHOWN = 10
STRESS_ROUNDS = 5
BUSY_LOOPS = 4
UNIT = ("--label-regex", "^unit$")
# Program of a busy loop. It ends after two hours, even if this script was killed.
BUSY_LOOP = "import time\nend = time.monotonic() + 7200\nwhile time.monotonic() < end: pass"


class Run:
    """Runs the parts of a tier (builds, commands, tests), and collects their results."""

    def __init__(self):
        self.report = test_report.Report()
        self.parts = []  # triples (seconds, name, result)
        self._started = time.monotonic()
        LOGS.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def part(self, name):
        """Context manager that measures the time of a part of the tier. The part has failed if
        fail() was called within the context.
        """
        print(f"== {name}", flush=True)
        started, failed = time.monotonic(), self.report.failed
        yield
        result = "ok" if self.report.failed == failed else "FAILED"
        self._end_part(name, time.monotonic() - started, result)

    def _end_part(self, name, seconds, result):
        self.parts.append((seconds, name, result))
        print(f"== {name}: {result}, {seconds:.0f} s", flush=True)

    def fail(self, name, reason, output="", repeat=""):
        failure = test_report.Failure(name, reason, output, repeat)
        self.report.failures.append(failure)
        print(failure, flush=True)

    def command(self, name, *command, environment=None):
        """Runs a command as a part of the tier. Returns whether the exit status is 0."""
        with self.part(name):
            code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
            if code != 0:
                self.fail(name, f"exit status {code}", repeat=" ".join(map(str, command)))
        return code == 0

    def build(self, preset, *targets):
        started = Build(preset, targets)
        return self.finish(started)

    def finish(self, build):
        """Waits until a started build has ended, and reports the wait as a part of the tier.
        Returns whether the build succeeded."""
        with self.part(f"build {build.preset}"):
            output = build.wait()
            if output is not None:
                self.fail(f"build {build.preset}", "failed", output)
        return output is None

    def ctest(self, preset, name, *options, jobs=JOBS, environment=None):
        """Runs the tests of the build `preset` that the ctest options select, and counts them."""
        return self.finish_tests(Tests(preset, name, *options, jobs=jobs, environment=environment))

    def finish_tests(self, tests):
        """Waits until a started run of ctest has ended, and returns the report of its tests.
        Adds the number of tests to the tier's total. The wait is a part of the tier."""
        with self.part(tests.name):
            try:
                report = tests.wait()
            except (OSError, ValueError, xml.etree.ElementTree.ParseError) as error:
                self.fail(tests.name, f"no report of its tests: {error}")
                return test_report.Report()
            self.report.add(report)
            for failure in report.failures:
                print(failure, flush=True)
        return report

    def end(self):
        """Prints the times, failures and counts of the tier. Returns its exit status."""
        print("\nseconds  part")
        for seconds, name, result in self.parts:
            print(f"{seconds:7.0f}  {name}{'' if result == 'ok' else ': ' + result}")
        print(f"{time.monotonic() - self._started:7.0f}  all\n")
        if self.report.times:
            print("seconds  slowest tests")
            for seconds, name in sorted(self.report.times, reverse=True)[:SLOWEST_SHOWN]:
                print(f"{seconds:7.1f}  {name}")
            print()
        if self.report.failures:
            print("failures")
            for failure in self.report.failures:
                print(failure)
        if self.report.skipped:
            print(f"{len(self.report.skipped)} skipped: {', '.join(self.report.skipped)}")
        print(f"{self.report.passed} passed, {self.report.failed} failed", flush=True)
        return 1 if self.report.failures else 0


class Build:
    """A build that runs in a separate process, so that it can run in parallel with tests.

    With `idle`, the build gets only processor time that no other process needs (SCHED_IDLE).
    """

    def __init__(self, preset, targets=(), idle=False):
        self.preset = preset
        self._log = LOGS / f"build-{preset}.log"
        LOGS.mkdir(parents=True, exist_ok=True)
        words = ["--target", *targets] if targets else []
        script = (
            f"cmake --preset {preset} && "
            f"cmake --build --preset {preset} --parallel {JOBS} {' '.join(words)}"
        )
        with open(self._log, "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", script], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT,
                preexec_fn=_become_idle if idle else None,
            )  # fmt: skip

    def wait(self):
        """Waits for the end of the build. Returns None if it succeeded, else its last 60 lines."""
        if self._process.wait() == 0:
            return None
        return "\n".join(self._log.read_text("utf-8", errors="replace").splitlines()[-60:])


class Tests:
    """A run of ctest in a process of its own, which may run in parallel with other tests. With
    `idle`, it gets only processor time that no other process needs (SCHED_IDLE).
    """

    def __init__(self, preset, name, *options, jobs=JOBS, environment=None, idle=False):
        self.name = name
        self._preset = preset
        self._report = LOGS / f"{name.replace(': ', '-').replace(' ', '-')}.xml"
        self._report.unlink(missing_ok=True)
        limits = ["--test-output-size-passed", "4000000", "--test-output-size-failed", "4000000"]
        self._process = subprocess.Popen(
            ["ctest", "--test-dir", f"build/{preset}", "--parallel", str(jobs), "--no-tests=error",
             "--output-junit", self._report, *limits, *options],
            cwd=ROOT, env={**os.environ, **(environment or {})},
            preexec_fn=_become_idle if idle else None,
        )  # fmt: skip

    def wait(self):
        """Waits for the end of ctest, and returns the report of the tests."""
        self._process.wait()
        return test_report.read(self._preset, self._report)


def _become_idle():
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


class NodePackages:
    """Installs the Node packages of the system tests, while the server is built."""

    def __init__(self):
        self._process = subprocess.Popen(["scripts/install_node_packages.sh"], cwd=ROOT)

    def wait(self, run):
        """Waits until the installation ends. The tier counts the wait as one of its parts.
        Returns whether the installation succeeded.
        """
        with run.part("Node packages"):
            code = self._process.wait()
            if code != 0:
                run.fail("Node packages", f"exit status {code}",
                         repeat="scripts/install_node_packages.sh")  # fmt: skip
        return code == 0


class BusyLoops:
    """Context manager that runs processes with busy loops, so that tests get less processor time.
    """

    def __enter__(self):
        self._processes = [
            subprocess.Popen([sys.executable, "-c", BUSY_LOOP]) for _ in range(BUSY_LOOPS)
        ]
        return self

    def __exit__(self, *_):
        for process in self._processes:
            process.kill()
            process.wait()


def run_fuzzers(run, seconds):
    """Runs each fuzzer for `seconds`, on its corpus and on new inputs. The fuzzers run in parallel.
    An input that crashes a fuzzer is written to build/fuzz-findings; add it to the corpus.
    """
    folder = ROOT / "build/asan/tests/fuzz"
    fuzzers = sorted(path for path in folder.glob("*_fuzzer") if os.access(path, os.X_OK))
    (ROOT / "build/fuzz-findings").mkdir(exist_ok=True)
    with run.part(f"fuzzers, {seconds} s each"):
        if not fuzzers:
            run.fail("fuzzers", "none was built")
        running = collections.deque()
        for fuzzer in fuzzers:
            if len(running) == JOBS:
                _finish_fuzzer(run, *running.popleft())
            running.append((fuzzer, _start_fuzzer(fuzzer, seconds)))
        for one in running:
            _finish_fuzzer(run, *one)


def _start_fuzzer(fuzzer, seconds):
    corpus = ROOT / "build/fuzz-corpus" / fuzzer.name
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = ROOT / "tests/fuzz/corpus" / fuzzer.name.removesuffix("_fuzzer")
    with open(LOGS / f"{fuzzer.name}.log", "w", encoding="utf-8") as log:
        return subprocess.Popen(
            [fuzzer, f"-max_total_time={seconds}", "-timeout=10", "-verbosity=0",
             "-malloc_limit_mb=64", f"-artifact_prefix=build/fuzz-findings/{fuzzer.name}-", corpus,
             *([seeds] if seeds.is_dir() else [])],
            cwd=ROOT, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip


def _finish_fuzzer(run, fuzzer, process):
    if process.wait() == 0:
        run.report.passed += 1
        return
    output = (LOGS / f"{fuzzer.name}.log").read_text("utf-8", errors="replace")
    repeat = f"build/asan/tests/fuzz/{fuzzer.name} build/fuzz-findings/FILE"
    run.fail(f"fuzz: {fuzzer.name}", f"exit status {process.returncode}", output, repeat)


# Each of the run_ functions below runs a tier, or a part that several tiers share.


def run_quick(run, options):
    preset = newest_build()
    repository = check_prose.Repository(ROOT)
    base = repository.base()
    changed = sorted(path for path in repository.added_lines(base) if (ROOT / path).is_file())
    sources = [path for path in changed if path.endswith((".h", ".cpp"))]
    if sources:
        run.command("format", "clang-format-14", "--dry-run", "-Werror", *sources)
    run.command("house rules", sys.executable, "scripts/check_tree.py")
    run.command("prose", sys.executable, "scripts/check_prose.py")
    libraries = options.arguments or changed_libraries(preset, changed)
    print(f"changed libraries: {' '.join(libraries) or 'none'} (base {base[:12]})")
    if libraries and run.build(preset, *[f"{library}_tests" for library in libraries]):
        pattern = f"^({'|'.join(libraries)})_tests\\."
        run.ctest(preset, "unit tests", "--tests-regex", pattern)


def newest_build():
    """Returns the preset, debug or release, that was built last; release if neither was."""

    def built(preset):
        log = ROOT / "build" / preset / ".ninja_log"
        return log.stat().st_mtime if log.exists() else 0

    return max(("release", "debug"), key=built)


def changed_libraries(preset, changed):
    """Returns the libraries that have one of the changed files, or a source that is newer than the
    test program of the library.
    """
    found = {tree_facts.library_of(path) for path in changed}
    for folder in tree_facts.PRODUCT_FOLDERS:
        for path in [*(ROOT / folder).rglob("*"), *(ROOT / "tests" / folder).rglob("*")]:
            library = tree_facts.library_of(str(path.relative_to(ROOT)))
            binary = ROOT / "build" / preset / "tests" / f"{library}_tests"
            tested = binary.stat().st_mtime if binary.exists() else 0
            if path.suffix in (".h", ".cpp") and path.stat().st_mtime > tested:
                found.add(library)
    return [library for library in LIBRARIES if library in found]


def run_unit(run, _):
    if run.build("release", "unit_tests"):
        run.ctest("release", "release: unit tests", *UNIT)


def run_everything(run, _):
    if not build_for_system(run):
        return
    # System tests often wait and leave processors idle. The ASan build uses the idle processors.
    asan = Build("asan", ("unit_tests", "fuzzers"), idle=True)
    run_system(run, "release")
    is_built = run.finish(asan)
    tsan = Build("tsan", ("threads_tests", "bloomery-server"), idle=True)
    if is_built:
        run.ctest("asan", "asan: unit tests", *UNIT)
        run_fuzzers(run, 5)
    run.ctest("release", "release: unit tests with threads", *UNIT, "--label-regex", "^threads$")
    is_built = run.finish(tsan)
    # Unit tests without threads run during the TSan tests, which leave some processor time idle.
    others = Tests("release", "release: other unit tests", "--label-regex", "^(unit|scripts)$",
                   "--label-exclude", "^threads$", idle=True)  # fmt: skip
    if is_built:
        run.ctest("tsan", "tsan: tests with threads", "--label-regex", "^threads$",
                  jobs=WAITING_JOBS)  # fmt: skip
    run.finish_tests(others)


def build_for_system(run):
    """Prepares what the system tests need. Returns whether that succeeded."""
    packages = NodePackages()
    is_built = run.build("release")
    return packages.wait(run) and is_built


def run_system(run, preset, environment=None):
    """Runs all system tests. Tests with the ctest label `calm`, which depend on leases or
    sentinels, run first and with fewer tests in parallel.
    """
    every = ("--label-regex", "^system$")
    calm = "^calm$"
    run.ctest(preset, f"{preset}: calm system tests", "--label-regex", calm,
              jobs=WAITING_JOBS, environment=environment)  # fmt: skip
    return run.ctest(preset, f"{preset}: system tests", *every, "--label-exclude", calm,
                     jobs=WAITING_JOBS, environment=environment)  # fmt: skip


def run_long(run, _):
    print(
        "runs, in release, all tests with the long counts of tests/system/harness/counts.py and a "
        "soak of ten minutes; under ASan and TSan, all unit tests and the system tests with the "
        "labels `sanitized` and `threads`; each fuzzer for 60 s; builds for other platforms",
        flush=True,
    )
    counts = {"BLOOMERY_SIMULATION_RUNS": "10000", "BLOOMERY_MODEL_RUNS": "10000"}
    os.environ.update(counts, BLOOMERY_TIER="long")
    if build_for_system(run):
        run.ctest("release", "release: unit tests", "--label-regex", "^(unit|scripts)$")
        run_system(run, "release")
        run.command("soak", "scripts/soak.sh", "--minutes", "10")
    try_platforms(run)
    # A server under a sanitizer is many times slower, so these tests run their default numbers of
    # rounds instead of the higher numbers above.
    for name in counts:
        del os.environ[name]
    os.environ.update(BLOOMERY_TIER="", BLOOMERY_SLOW="5")
    for preset in ("asan", "tsan"):
        if run.build(preset):
            run.ctest(preset, f"{preset}: unit tests", *UNIT)
            run.ctest(preset, f"{preset}: system tests", "--label-regex", "^(sanitized|threads)$",
                      "--label-exclude", "^unit$")  # fmt: skip
    run_fuzzers(run, 60)


def try_platforms(run):
    """Builds the server for each other platform, and starts the built server. A platform counts as
    skipped if this machine lacks a tool that the build needs.
    """
    if run.build("portable"):
        run.command("pack portable", "cpack", "--config", "build/portable/CPackConfig.cmake", "-B",
                    "build/portable")  # fmt: skip
    for platform in ("portable", "debian13", "clang16", "clang19", "arm64"):
        with run.part(platform):
            done = subprocess.run(
                ["scripts/try_platform.sh", platform], cwd=ROOT, check=False, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            last = (done.stdout.splitlines() or [""])[-1]
            if done.returncode == 0 and last.startswith(f"{platform}: skipped: "):
                run.report.skipped.append(last)
            elif done.returncode == 0 and last == f"{platform}: passed":
                run.report.passed += 1
            else:
                run.fail(platform, f"exit status {done.returncode}", done.stdout,
                         f"scripts/try_platform.sh {platform}")  # fmt: skip


def run_stress(run, options):
    rounds = int(options.arguments[0]) if options.arguments else STRESS_ROUNDS
    if not build_for_system(run):
        return
    failures = collections.Counter()
    os.environ["BLOOMERY_SLOW"] = os.environ.get("BLOOMERY_SLOW", "4")
    with BusyLoops():
        for number in range(1, rounds + 1):
            before = run.report.failed
            seed = str(int(os.environ["BLOOMERY_SEED"]) * 1000 + number)
            print(f"== round {number} of {rounds}, BLOOMERY_SEED={seed}", flush=True)
            run_system(run, "release", {"BLOOMERY_SEED": seed})
            failures.update(failure.name for failure in run.report.failures[before:])
    for name, count in failures.most_common():
        print(f"failed {count} of {rounds} rounds: {name}")


TIERS = {
    "": run_everything,
    "quick": run_quick,
    "unit": run_unit,
    "long": run_long,
    "stress": run_stress,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="scripts/test.sh [quick [LIBRARY…] | unit | long | stress [N]]",
    )  # fmt: skip
    parser.add_argument("tier", nargs="?", default="", choices=TIERS, help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    check_arguments(parser, options)
    os.environ.setdefault("BLOOMERY_SEED", "1")
    os.environ.update(GTEST_COLOR="no", CTEST_OUTPUT_ON_FAILURE="1")
    run = Run()
    TIERS[options.tier](run, options)
    sys.exit(run.end())


def check_arguments(parser, options):
    given = options.arguments
    if options.tier == "quick":
        unknown = set(given) - set(LIBRARIES)
        if unknown:
            parser.error(f"not a library: {' '.join(unknown)}; choose from {' '.join(LIBRARIES)}")
    elif options.tier == "stress":
        if len(given) > 1 or not all(word.isdecimal() and int(word) > 0 for word in given):
            parser.error("stress takes one number of rounds, at least 1")
    elif given:
        parser.error(f"this tier takes no arguments: {' '.join(given)}")


if __name__ == "__main__":
    main()
