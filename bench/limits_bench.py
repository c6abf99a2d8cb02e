#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures writes at the memory limit of this server and of redis-server: throughput, the peak of
used memory, and refused writes.

There is a row for each combination of eviction policy, value size (100 bytes to 1 MB) and pipeline
depth (1 and 20). The servers take turns, and the server that begins changes from round to round.
With one thread, redis-benchmark limits the rate at pipeline 1. With `--load-threads 4 --clients 48`
on a machine with enough cores, the servers limit it.
Rates are medians of the rounds, and the ratio is the median of the rounds' ratios. The column `cpu`
is redis-server's CPU time per request, divided by that of this server. Where the load generator
limits the rate, only this column compares the servers. A peak is `used_memory_peak` of INFO minus
maxmemory.

Further rows measure only this server, with filters at the memory limit. Some filters grow, some are
windows that rotate, and some are made and deleted while a child process saves. Each row ends
with `ok` or the goals that it missed. The exit status is 1 if a goal was missed.
"""
import argparse
import dataclasses
import glob
import os
import signal
import statistics
import subprocess
import sys
import time
import typing

from figures import Figures
from server_bench import OurServer, Server, encode, fill_keys

KB, MB = 1000, 1 << 20
POLICIES = ("allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu",
            "volatile-random", "volatile-ttl", "noeviction")
# Each row: bytes of a value, requests of a round at pipeline 1, requests of a round at pipeline 20,
# and maxmemory in bytes.
SIZES = ((100, 40_000, 300_000, 8 * MB), (5 * KB, 40_000, 150_000, 8 * MB),
         (50 * KB, 25_000, 40_000, 8 * MB), (1000 * KB, 2_500, 700, 20 * MB))
PIPELINES = (1, 20)
PEAK_MAX = MB


class Verdicts:
    """Counts the missed goals of all rows, and holds the figures for bench/goals.py."""

    def __init__(self):
        self.missed = 0
        self.figures = Figures()

    def of(self, *goals):
        missed = [name for name, is_met in goals if not is_met]
        self.missed += len(missed)
        return "ok" if not missed else "MISSED: " + ", ".join(missed)


class Round(typing.NamedTuple):
    """Result of one run of redis-benchmark. Both fields are 0 if the server replied to a request
    with an error.
    """

    rate: float  # requests per second
    cpu_ns: float  # CPU time of the server per request, in ns


def run_round(server, value_bytes, requests, pipeline, keys, options):
    """Runs redis-benchmark, which sends SETEX and ends at the first error reply."""
    value = b"v" * value_bytes
    words = ["redis-benchmark", "-p", str(server.port), "-n", str(requests), "-P", str(pipeline),
             "-c", str(options.clients), "-r", str(keys), "--csv"]
    if options.load_threads > 1:
        words += ["--threads", str(options.load_threads)]
    words += ["-x", "SETEX", "key:__rand_int__", "1000"]
    cpu_before = server.cpu_ns()
    run = subprocess.run(words, input=value, capture_output=True, timeout=600, check=False)
    rows = [line for line in run.stdout.decode().splitlines() if line.startswith('"')]
    if run.returncode != 0 or len(rows) < 2:
        return Round(0.0, 0.0)
    return Round(float(rows[-1].split('","')[1].strip('"')),
                 (server.cpu_ns() - cpu_before) / requests)


def ratios(ours, theirs):
    """Returns the median ratio of the rates, and the median ratio of the CPU times. Both are above
    1 if this server is better than redis-server.
    """
    of_rates = statistics.median(a.rate / max(b.rate, 1) for a, b in zip(ours, theirs))
    of_cpu = statistics.median(b.cpu_ns / max(a.cpu_ns, 1) for a, b in zip(ours, theirs))
    return of_rates, of_cpu


def start_both(options, limit, policy):
    threads = ("--io-threads", str(options.io_threads))
    log = ("--appendonly", options.appendonly)
    ours = OurServer(options, *threads, persistence=log)
    theirs = Server("redis", ["redis-server", "--loglevel", "warning", *threads], options.pin,
                    persistence=log)
    for server in (ours, theirs):
        server.command("CONFIG", "SET", "maxmemory-policy", policy)
        server.command("CONFIG", "SET", "maxmemory", limit)
    return ours, theirs


def refusals(server):
    text = server.bulk("INFO", "errorstats")
    return sum(int(line.split("count=")[1]) for line in text.splitlines() if "OOM" in line)


def peak_excess(server, limit):
    return server.info("used_memory_peak", "memory") - limit


def bench_writes(options, verdicts):
    print("\nSETEX at the limit: requests per second, the peak above maxmemory in kB, refusals")
    print(f"{'policy':<16} {'bytes':>8} {'pipe':>4} {'ours':>9} {'redis':>9} {'ratio':>6} "
          f"{'cpu':>6} {'peak':>7} {'redis':>7} {'refused':>7}")
    for policy in options.policies:
        for value_bytes, single, piped, limit in SIZES:
            if value_bytes not in options.sizes:
                continue
            for pipeline in options.pipelines:
                requests = max(200, int((single if pipeline == 1 else piped) * options.scale))
                # With the policy `noeviction` all keys must fit below the limit, so that the server
                # refuses no write.
                keys = 1_000_000
                if policy == "noeviction":
                    keys = max(1, limit // 4 // (value_bytes + 200))
                ours, theirs = start_both(options, limit, policy)
                try:
                    row(ours, theirs, (policy, value_bytes, pipeline, requests, keys, limit),
                        options, verdicts)
                finally:
                    ours.stop()
                    theirs.stop()


def row(ours, theirs, case, options, verdicts):
    policy, value_bytes, pipeline, requests, keys, limit = case
    rounds = {ours: [], theirs: []}
    for server in rounds:  # fills each server until its memory limit is reached
        run_round(server, value_bytes, limit // value_bytes + 100, PIPELINES[-1], keys, options)
    for turn in range(options.rounds):
        for server in (ours, theirs) if turn % 2 == 0 else (theirs, ours):
            rounds[server].append(run_round(server, value_bytes, requests, pipeline, keys, options))
    our, their = (statistics.median(turn.rate for turn in rounds[server])
                  for server in (ours, theirs))
    ratio, of_cpu = ratios(rounds[ours], rounds[theirs])
    peaks = [peak_excess(server, limit) for server in (ours, theirs)]
    refused = refusals(ours)
    case = f"writes/{policy}/{value_bytes}/{pipeline}"
    verdicts.figures.add(f"{case}/ratio", ratio)
    verdicts.figures.add(f"{case}/peak_bytes", peaks[0])
    verdicts.figures.add(f"{case}/refused", refused)
    verdict = verdicts.of(("rate", ratio >= 1 - options.noise),
                          ("peak", peaks[0] <= PEAK_MAX), ("refusals", refused == 0))
    print(f"{policy:<16} {value_bytes:>8,} {pipeline:>4} {our:>9,.0f} {their:>9,.0f} "
          f"{ratio:>6.2f} {of_cpu:>6.2f} {peaks[0] / KB:>7,.0f} {peaks[1] / KB:>7,.0f} "
          f"{refused:>7} {verdict}", flush=True)


def send_lines(server, requests, batch=100):
    """Sends the requests, each with a one-line reply. Returns the number of error replies."""
    return sum(line.startswith("-") for line in server.replies(requests, batch))


def filter_row(name, server, limit, errors, verdicts):
    excess = peak_excess(server, limit)
    verdicts.figures.add(f"filters/{name}/peak_bytes", excess)
    verdicts.figures.add(f"filters/{name}/refused", errors)
    verdict = verdicts.of(("peak", excess <= PEAK_MAX), ("refusals", errors == 0))
    print(f"{name:<44} peak {excess / KB:>7,.0f} kB above, refused {errors}, evicted "
          f"{server.info('evicted_keys', 'stats'):,} {verdict}", flush=True)


def limited(options, limit, policy="allkeys-lru"):
    server = OurServer(options)
    server.command("CONFIG", "SET", "maxmemory-policy", policy)
    server.command("CONFIG", "SET", "maxmemory", limit)
    return server


def bench_growing(options, verdicts):
    limit = 24 * MB
    server = limited(options, limit)
    try:
        count = int(40_000 * options.scale)
        fill_keys(server, 40_000, lambda i: encode("SET", f"k:{i}", "v" * 1000))
        errors = send_lines(server, [("BF.ADD", f"f:{i % 8}", f"item:{i}")
                                     for i in range(8 * count)])
        filter_row("eight filters grow among strings", server, limit, errors, verdicts)
    finally:
        server.stop()


@dataclasses.dataclass(frozen=True)
class Windows:
    """Windows of items that rotate among strings of 1,000 bytes."""

    name: str
    limit: int  # maxmemory in bytes
    strings: int
    count: int
    capacity: int
    length: int
    adds: int


ROTATING = (
    Windows("eight windows of items rotate", 24 * MB, 40_000, 8, 100_000, 100_000, 400_000),
    # Each generation takes 1.9 MB, and all windows begin one at about the same time.
    Windows("four windows with big generations rotate", 64 * MB, 80_000, 4, 6_000_000, 400_000,
            3_000_000),
)  # fmt: skip


def bench_rotating(options, verdicts, windows):
    server = limited(options, windows.limit)
    try:
        fill_keys(server, windows.strings, lambda i: encode("SET", f"k:{i}", "v" * 1000))
        for i in range(windows.count):
            server.command("BF.RESERVE", f"w:{i}", "0.01", windows.capacity,
                           "WINDOW", windows.length, "ITEMS")  # fmt: skip
        adds = int(windows.adds * options.scale)
        errors = send_lines(server, [("BF.ADD", f"w:{i % windows.count}", f"item:{i}")
                                     for i in range(adds)])  # fmt: skip
        filter_row(windows.name, server, windows.limit, errors, verdicts)
    finally:
        server.stop()


def await_child(server):
    """Finds the child process that saves, and suspends it, so that the save does not end. Returns
    the id of the process.
    """
    while True:
        for task in glob.glob(f"/proc/{server.process.pid}/task/*/children"):
            with open(task, encoding="ascii") as file:
                children = file.read().split()
            if children:
                os.kill(int(children[0]), signal.SIGSTOP)
                return int(children[0])
        if server.info("rdb_bgsave_in_progress", "persistence") == 0:
            raise SystemExit("the child ended before it was suspended")


def bench_child(options, verdicts):
    limit = 100 * MB
    server = limited(options, limit, "noeviction")
    try:
        fill_keys(server, 40_000, lambda i: encode("SET", f"k:{i}", "v" * 1000))
        server.command("BGSAVE")
        child = await_child(server)
        errors = 0
        for i in range(40):
            errors += send_lines(server, [("BF.RESERVE", f"f:{i}", "0.001", 10_000_000),
                                          ("DEL", f"f:{i}")])
            time.sleep(0.01)
        is_saving = server.info("rdb_bgsave_in_progress", "persistence")
        filter_row(f"40 filters made and deleted, child alive: {'yes' if is_saving else 'no'}",
                   server, limit, errors, verdicts)
        resident = server.info("used_memory_rss", "memory")
        print(f"{'':<44} resident {resident / MB:,.0f} MiB of {limit / MB:,.0f}", flush=True)
        os.kill(child, signal.SIGCONT)
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4, help="turns per server and figure")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the requests")
    parser.add_argument("--policies", nargs="+", default=list(POLICIES), choices=POLICIES)
    parser.add_argument("--sizes", type=int, nargs="+", default=[size for size, *_ in SIZES],
                        help="bytes of a value")
    parser.add_argument("--pipelines", type=int, nargs="+", default=list(PIPELINES),
                        choices=PIPELINES, help="pipeline depths")
    parser.add_argument("--clients", type=int, default=5, help="connections of redis-benchmark")
    parser.add_argument("--load-threads", type=int, default=1, help="threads of redis-benchmark")
    parser.add_argument("--io-threads", type=int, default=1, help="I/O threads of both servers")
    parser.add_argument("--appendonly", default="no", choices=("no", "yes"),
                        help="whether both servers write an append log")
    parser.add_argument("--writes-only", action="store_true", help="leave out the rows of filters")
    parser.add_argument("--noise", type=float, default=0.03,
                        help="share by which a rate may be below redis-server's")
    parser.add_argument("--pin", type=int, nargs="+", help="processors for the servers")
    Figures.add_option(parser)
    options = parser.parse_args()
    verdicts = Verdicts()
    bench_writes(options, verdicts)
    if not options.writes_only:
        print("\nFilters under a limit")
        bench_growing(options, verdicts)
        for windows in ROTATING:
            bench_rotating(options, verdicts, windows)
        bench_child(options, verdicts)
    verdicts.figures.write(options.figures)
    print(f"\n{verdicts.missed} goals missed")
    sys.exit(1 if verdicts.missed else 0)


if __name__ == "__main__":
    main()
