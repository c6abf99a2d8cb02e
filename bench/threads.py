#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures throughput and server CPU per operation for several numbers of I/O threads.

bench/hot_filter_load.cpp generates the loads. `single` alternates BF.EXISTS and BF.ADD on one
filter. `keys` alternates SET and GET over a million keys. `madd` sends BF.MADD of 100 items to one
filter. The pipeline depth is 16 for `single` and `keys`, and 8 for `madd`. An operation is a
command, or an item of BF.MADD. Machines are noisy, so the servers for all numbers of threads run at
the same time, and the load alternates between them. Figures are medians of the rounds. At the end,
BF.CARD of each filter must equal the number of items that the server reported as new: no add may be
lost.

On a machine with four cores or more, server and load generator run on different cores if enough
cores remain for the load generator. Otherwise they share all cores. The last column names the limit
of the throughput:
  server        the cores of the server are busy
  load          the cores of the load generator are busy: the server could serve more requests
  shared cores  server and load generator share all cores, and together keep them busy
  neither       server and load generator wait for each other, or other processes use the cores

The script needs the server program, and bench/hot_filter_load in the folder of that program.
"""
import argparse
import hashlib
import itertools
import os
import pathlib
import statistics
import subprocess
import sys

import report
from server_bench import Server, encode, fill_keys

LOADS = {"single": "one filter, BF.EXISTS and BF.ADD", "keys": "a million keys, SET and GET",
         "madd": "one filter, BF.MADD of 100"}
FILTER_CAPACITY = 100_000_000
KEY_LETTERS = "abcdefghijklmnop"  # letters of the random keys, as in bench/hot_filter_load.cpp
CONNECTIONS_PER_THREAD = 4
SHARED_BELOW_CORES = 4
BUSY = 0.9  # minimum utilization of its cores at which a process counts as busy


def physical_cores():
    """Returns the logical cores that this process may use, as one list for each physical core."""
    usable, groups = os.sched_getaffinity(0), {}
    for core in sorted(usable):
        path = pathlib.Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
        siblings = path.read_text(encoding="ascii").strip() if path.exists() else str(core)
        groups.setdefault(siblings, []).append(core)
    return list(groups.values())


def split_cores(threads, groups):
    """Returns the cores of the server and the cores of the load generator; (None, None) if both
    share all cores.

    Each I/O thread gets a physical core of its own if that needs at most half of the physical
    cores. Then the load generator gets all other physical cores. Otherwise each I/O thread gets a
    logical core, and the load generator gets all other logical cores.

    The server and the load generator share all cores if fewer than a quarter of the logical cores
    would remain for the load generator. They also share all cores if the process may use fewer than
    four logical cores.
    """
    usable = [core for group in groups for core in group]
    if len(usable) < SHARED_BELOW_CORES:
        return None, None
    if threads * 2 <= len(groups):
        rest = [core for group in groups[threads:] for core in group]
        return [group[0] for group in groups[:threads]], rest
    rest = usable[threads:]
    return (usable[:threads], rest) if len(rest) * 4 >= len(usable) else (None, None)


def default_threads(count):
    """Returns the numbers of threads to measure: 1, 2, 4 … and `count` itself."""
    doubled = itertools.takewhile(lambda n: n < count, (2 ** i for i in itertools.count()))
    return [*doubled, count]


def describe_split(threads, groups):
    """Formats the cores for a number of threads, e.g. `4: 0 1 2 3 + 4 5 6 7`. The cores of the
    server come before the `+`, those of the load generator after it.
    """
    server, load = split_cores(threads, groups)
    if not server:
        return f"{threads}: shared"
    return f"{threads}: {' '.join(map(str, server))} + {' '.join(map(str, load))}"


def list_of_numbers(text):
    return [int(word) for word in text.split(",")]


def mset_request(number):
    """Returns an MSET that creates 256 of the keys that hot_filter_load uses in its load `keys`.
    The requests for `number` from 0 to 16^3 - 1 create all 16^5 keys.
    """
    head = [KEY_LETTERS[number >> shift & 15] for shift in (0, 4, 8)]
    words = []
    for tail in itertools.product(KEY_LETTERS, repeat=2):
        words += ["key:" + "".join([*head, *tail]), "xxx"]
    return encode("MSET", *words)


class Subject:
    """Runs a server with `threads` I/O threads, and holds the results of its rounds."""

    def __init__(self, options, threads, connections):
        self.options = options
        self.threads = threads
        self.connections = connections
        groups = physical_cores()
        self.all_cores = sum(map(len, groups))
        self.cores, self.load_cores = split_cores(threads, groups)
        self.runs = {load: [] for load in options.loads}
        self.new_items = dict.fromkeys(LOADS, 0)
        program = pathlib.Path(options.server).absolute()
        self.load_program = program.parent / "bench" / "hot_filter_load"
        log = ["--appendonly", "yes" if options.append_log else "no"]
        command = [str(program), "--io-threads", str(threads), "--loglevel", "warning"]
        self.server = Server("bloomery", command, self.cores, log)

    def fill(self, requests):
        for load in ("single", "madd"):
            self.server.command("BF.RESERVE", load, "0.01", FILTER_CAPACITY)
        fill_keys(self.server, len(requests), requests.__getitem__)

    @property
    def server_core_count(self):
        return len(self.cores) if self.cores else min(self.threads, self.all_cores)

    def measure(self, load):
        """Runs the load `load` for one round, and appends the results to `runs`."""
        before = self.server.cpu_ns()
        operations, seconds, new_items, load_cpu_s = self.run_load(load)
        used_ns = self.server.cpu_ns() - before
        self.new_items[load] += int(new_items)
        load_core_count = len(self.load_cores) if self.load_cores else self.all_cores
        self.runs[load].append({
            "rate": operations / seconds, "cpu_ns": used_ns / operations,
            "server_share": used_ns / 1e9 / seconds / self.server_core_count,
            "load_share": load_cpu_s / seconds / load_core_count,
        })  # fmt: skip

    def run_load(self, load):
        """Runs hot_filter_load. Returns the number of operations, the duration in seconds, the
        number of new items, and the CPU seconds of hot_filter_load.
        """
        seconds = self.options.seconds
        key = "key" if load == "keys" else load
        try:
            done = subprocess.run(
                [self.load_program, str(self.server.port), load, key, str(self.connections),
                 str(seconds)],
                check=True, capture_output=True, text=True, timeout=seconds + 120,
                preexec_fn=lambda: self.load_cores and os.sched_setaffinity(0, self.load_cores))
        except subprocess.CalledProcessError as fault:
            raise SystemExit(fault.stderr.strip() or str(fault)) from None
        return map(float, done.stdout.split())

    def check_items(self, load):
        if load == "keys":
            return
        card = int(self.server.command("BF.CARD", load)[1:])
        if card != self.new_items[load]:
            raise SystemExit(f"lost updates: BF.CARD is {card}, replies of 1: "
                             f"{self.new_items[load]}")

    def median(self, load, name):
        """Returns the median of the figure `name` over all rounds except the first. The first round
        only warms up the server.
        """
        return statistics.median(run[name] for run in self.runs[load][1:])

    def ratio(self, load, name, other):
        """Divides the figure `name` of this server by that of `other` in each round, and returns
        the median of the ratios.
        """
        pairs = zip(self.runs[load][1:], other.runs[load][1:])
        return statistics.median(run[name] / beside[name] for run, beside in pairs)

    def limit(self, load):
        """Returns the name of the resource that limits the throughput."""
        server, generator = self.median(load, "server_share"), self.median(load, "load_share")
        if server >= BUSY:
            return "server"
        if not self.cores:
            both = server * self.server_core_count / self.all_cores + generator
            return "shared cores" if both >= BUSY else "neither"
        return "load" if generator >= BUSY else "neither"

    def row(self, load, first):
        cores = f"{len(self.cores)} + {len(self.load_cores)}" if self.cores else "shared"
        return [
            LOADS[load], str(self.threads), f"{self.median(load, 'rate'):,.0f}",
            f"{self.ratio(load, 'rate', first):.2f}", f"{self.median(load, 'cpu_ns'):,.0f}",
            f"{self.ratio(load, 'cpu_ns', first):.2f}", cores,
            f"{self.median(load, 'server_share'):.0%}", f"{self.median(load, 'load_share'):.0%}",
            self.limit(load),
        ]  # fmt: skip


def measure_all(options, connections):
    """Measures a server for each number of threads. Returns a Subject with the results of each
    server; the servers have been stopped.
    """
    requests = [mset_request(i) for i in range(16 ** 3)]
    subjects = []
    try:
        for threads in options.threads:
            subjects.append(Subject(options, threads, connections))
            subjects[-1].fill(requests)
        for load in options.loads:
            for _ in range(options.rounds + 1):
                for subject in subjects:
                    subject.measure(load)
            for subject in subjects:
                subject.check_items(load)
            print(f"{LOADS[load]}: measured", file=sys.stderr, flush=True)
    finally:
        for subject in subjects:
            subject.server.stop()
    return subjects


def head_of(options, connections):
    """Describes the machine, the server and the parameters of the measurement."""
    groups = physical_cores()
    digest = hashlib.sha256(pathlib.Path(options.server).read_bytes()).hexdigest()
    facts = report.machine_facts() + [
        ("cores of this run", f"{sum(map(len, groups))} logical, {len(groups)} physical"),
        ("server", f"{report.first_line([options.server, '--version'])}, SHA-256 {digest[:12]}"),
        ("commit of the tree", report.first_line(["git", "describe", "--always", "--dirty"])),
        ("append log", "yes" if options.append_log else "no"),
        ("load", f"{connections} connections, {options.rounds} rounds of {options.seconds:g} s"),
        ("I/O threads: cores of server + load",
         "; ".join(describe_split(threads, groups) for threads in options.threads)),
    ]  # fmt: skip
    return report.table(["", ""], [list(fact) for fact in facts])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each round of each cell")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=list_of_numbers, metavar="N,N...",
                        default=default_threads(len(os.sched_getaffinity(0))),
                        help="numbers of I/O threads (default: 1, 2, 4 to the number of cores)")
    parser.add_argument("--loads", nargs="+", default=list(LOADS), choices=list(LOADS))
    parser.add_argument("--append-log", action="store_true", help="with the append log on")
    parser.add_argument("--server", default=os.environ.get(
        "BLOOMERY_SERVER", "build/release/bloomery-server"))
    parser.add_argument("--output", type=pathlib.Path, help="a file for the page (Markdown)")
    options = parser.parse_args()
    # All servers get the same number of connections, so that only their I/O threads differ.
    connections = CONNECTIONS_PER_THREAD * max(2, *options.threads)
    page = head_of(options, connections)
    subjects = measure_all(options, connections)
    first = subjects[0]
    columns = ["load", "I/O threads", "operations/s", f"times {first.threads}", "server CPU ns",
               f"times {first.threads}", "cores", "server busy", "load busy", "limit"]
    rows = [subject.row(load, first) for load in options.loads for subject in subjects]
    page += "\n" + report.table(columns, rows)
    print(page)
    if options.output:
        options.output.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
