#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the cost of durability: the modes of the append log, and saving a big filter under load.

The first part measures the throughput of SET at pipeline 16, with `appendfsync everysec` and with
`appendonly no`, for this server and for redis-server. Then it compares both servers with
`appendfsync always`, 50 clients and one SET at a time.

The second part runs BGSAVE and BGREWRITEAOF of a filter of 1 GB under a load of BF.MADD of 100
items. It measures the pause of the fork, and the throughput (median, and the slowest 100 ms) before
and during the save. It also measures the memory that the save adds to the server and to its child
process. A restart must restore the number of items.
"""
import argparse
import os
import statistics
import subprocess
import time

from server_bench import CLIENTS, KEYSPACE, Server

BINARY = os.environ.get("BLOOMERY_SERVER", "build/release/bloomery-server")
LOAD = os.path.join(os.path.dirname(BINARY), "bench", "hot_filter_load")
SET = ["SET", "key:__rand_int__", "xxx"]
MODES = {
    "no log": ["--appendonly", "no"],
    "everysec": ["--appendonly", "yes", "--appendfsync", "everysec"],
    "always": ["--appendonly", "yes", "--appendfsync", "always"],
}


def start(ours, mode):
    command = [BINARY, "--io-threads", "2", "--loglevel", "warning"] if ours else ["redis-server"]
    return Server("bloomery" if ours else "redis-server", command, None, MODES[mode])


def rate_of(ours, mode, requests, pipeline):
    server = start(ours, mode)
    try:
        rate, cpu_ns = server.load(SET, requests, pipeline, CLIENTS, KEYSPACE)
    finally:
        server.stop()
    return rate, cpu_ns


def bench_modes(options):
    print("\nThe append log: SET, 50 clients")
    cases = [(True, "no log", 16), (True, "everysec", 16), (False, "no log", 16),
             (False, "everysec", 16), (True, "always", 1), (False, "always", 1)]
    figures = {case: [] for case in cases}
    for _ in range(options.rounds):
        for case in cases:
            requests = int((1_000_000 if case[2] == 16 else 40_000) * options.scale)
            figures[case].append(rate_of(case[0], case[1], requests, case[2]))
    medians = {case: [statistics.median(run[i] for run in runs) for i in (0, 1)]
               for case, runs in figures.items()}
    for (ours, mode, pipeline), (rate, cpu_ns) in medians.items():
        print(f"{'bloomery' if ours else 'redis-server':<14} {mode:<10} pipeline {pipeline:>2} "
              f"{rate:>12,.0f} ops/s {cpu_ns:>8.0f} ns of server CPU")
    for ours, name in ((True, "bloomery"), (False, "redis-server")):
        ratio = medians[ours, "everysec", 16][0] / medians[ours, "no log", 16][0]
        print(f"{name}: everysec has {ratio:.2f} of the throughput without a log")
    ratio = medians[True, "always", 1][0] / medians[False, "always", 1][0]
    print(f"always: bloomery has {ratio:.2f} of redis-server's throughput", flush=True)


def memory_kib(pid, field):
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith(field))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def forked_by(server):
    """Returns the ids of the server's child processes. Linux lists them for each thread, and any
    I/O thread may fork.
    """
    tasks = f"/proc/{server.process.pid}/task"
    found = []
    for task in os.listdir(tasks):
        try:
            with open(f"{tasks}/{task}/children", encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
        except FileNotFoundError:
            pass
    return found


class Sampler:
    """Samples the throughput of the load: how fast the item count that BF.CARD returns grows."""

    def __init__(self, server):
        self.server = server
        self.samples = [(time.monotonic(), self.count())]

    def count(self):
        return int(self.server.command("BF.CARD", "big")[1:])

    def watch(self, seconds=None, until=None):
        """Returns the items added per second in each interval of 100 ms, and the maximum of the
        child process's private memory in KiB.
        """
        rates, begin = [], time.monotonic()
        extra_kib = 0
        while (until is None or not until()) and (seconds is None or
                                                  time.monotonic() - begin < seconds):
            last_time, last_count = self.samples[-1]
            time.sleep(max(0.0, last_time + 0.1 - time.monotonic()))
            self.samples.append((time.monotonic(), self.count()))
            rates.append((self.samples[-1][1] - last_count) / (self.samples[-1][0] - last_time))
            extra_kib = max([extra_kib] + [memory_kib(child, "Private_Dirty")
                                           for child in forked_by(self.server)])
        return rates, extra_kib


def info(server, field):
    for line in server.bulk("INFO", "everything").splitlines():
        if line.startswith(field + ":"):
            return line.split(":")[1].strip()
    raise SystemExit(f"INFO has no {field}")


def save(server, command, running):
    """Runs one BGSAVE or BGREWRITEAOF, and returns its figures. Throughputs are divided by the
    median throughput before the command.
    """
    sampler = Sampler(server)
    before, _ = sampler.watch(seconds=3)
    before_kib = memory_kib(server.process.pid, "Private_Dirty")
    server.command(command)
    fork_us = int(info(server, "latest_fork_usec"))
    during, child_kib = sampler.watch(until=lambda: info(server, running) == "0")
    grown_kib = memory_kib(server.process.pid, "Private_Dirty") - before_kib
    usual = statistics.median(before)
    return {"fork": fork_us / 1000, "seconds": len(during) / 10,
            "median": statistics.median(during) / usual, "slowest": min(during) / usual,
            "slowest before": min(before) / usual, "child": child_kib // 1024,
            "parent": grown_kib // 1024}


def describe(command, runs):
    """Formats the figures of several runs of a command: the worst memory and fork pause, and the
    median throughput and duration.
    """
    worst = {name: max(run[name] for run in runs) for name in runs[0]}
    usual = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    return (f"{command:<13} fork {worst['fork']:.2f} ms, {usual['seconds']:.1f} s, throughput "
            f"{usual['median']:.2f} of before (median), {usual['slowest']:.2f} (slowest 100 ms; "
            f"{usual['slowest before']:.2f} without a save), child's own memory "
            f"{worst['child']} MB, parent's grew {worst['parent']} MB")


def bench_saves(options):
    print("\nSaving a filter of 1 GB under BF.MADD x100, four connections")
    server = start(True, "everysec")
    try:
        server.command("CONFIG", "SET", "auto-aof-rewrite-percentage", "0")
        capacity = int(790_000_000 * options.scale)
        server.command("BF.RESERVE", "big", "0.01", capacity)
        # The load generator has a time limit, so it ends even if this program is killed.
        load = subprocess.Popen([LOAD, str(server.port), "madd", "big", "4", "600"],
                                stdout=subprocess.DEVNULL)
        try:
            time.sleep(2)
            for command, running in (("BGSAVE", "rdb_bgsave_in_progress"),
                                     ("BGREWRITEAOF", "aof_rewrite_in_progress")):
                runs = [save(server, command, running) for _ in range(options.rounds)]
                print(describe(command, runs), flush=True)
        finally:
            load.terminate()
            load.wait()
        check_reload(server)
    finally:
        server.stop()


def check_reload(server):
    """Checks that a restart restores the same BF.CARD from the append log."""
    count = None
    while count != (count := server.command("BF.CARD", "big")):
        time.sleep(0.3)  # the server still executes commands that the load generator has sent
    server.process.terminate()
    server.process.wait()
    server.restart()
    again = server.command("BF.CARD", "big")
    print(f"after a restart BF.CARD is {again[1:]}, before it was {count[1:]}")
    if again != count:
        raise SystemExit("the counts differ")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", nargs="+", default=["modes", "saves"], choices=["modes", "saves"])
    options = parser.parse_args()
    if "modes" in options.only:
        bench_modes(options)
    if "saves" in options.only:
        bench_saves(options)


if __name__ == "__main__":
    main()
