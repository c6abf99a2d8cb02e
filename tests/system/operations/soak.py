#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the soak for scripts/soak.sh, whose first comment describes it. Prints the measurements, and
a verdict in the last line.
"""

import argparse
import collections
import signal
import statistics
import sys
import time

from harness import SERVER, Process, free_port, let_time_pass, pace, soak_load, wait_until
from harness.info import info

GROWTH_MB_PER_MINUTE_MAX = 1.0
# Without a leak, the memory at two calm points (see CALM_EVERY_S) may differ by this many
# megabytes. So a whole run may grow by GROWTH_MB_PER_MINUTE_MAX in each minute, and by SWING_MB in
# addition. For a run of an hour this is 61.5 MB.
SWING_MB = 1.5
MEGABYTE = 1 << 20
# Duration of the warm-up, in which every event of the load happens at least once.
WARM_UP_S = 30
# A run shorter than this number of minutes detects errors, but no growth of memory.
JUDGED_FROM_MINUTES = 1
# Under load, memory goes up and down by megabytes because of child processes, full syncs and free
# pages of the allocator. So memory is compared at calm points, at which the load pauses. At a calm
# point no child process saves, the replica has all data, expired keys are deleted, and MEMORY PURGE
# has returned free pages.
CALM_EVERY_S = 10
KEYS_LIVE_S = 2.2
Sample = collections.namedtuple("Sample", "at_s rss anonymous shared used_memory")


def growth_per_minute(samples, field):
    """Returns the growth in megabytes a minute by the Theil-Sen estimator: the median of the slopes
    between any two samples. A few outliers hardly change this median. Returns NaN for fewer than
    three samples.
    """
    points = [(sample.at_s, getattr(sample, field)) for sample in samples]
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for i, earlier in enumerate(points) for later in points[i + 1 :]
    ]  # fmt: skip
    return statistics.median(slopes) * 60 / MEGABYTE if len(points) >= 3 else float("nan")


def growth_limit(samples):
    """Returns the allowed memory growth in megabytes a minute. REQUIRES: at least two samples."""
    minutes = (samples[-1].at_s - samples[0].at_s) / 60
    return GROWTH_MB_PER_MINUTE_MAX + SWING_MB / minutes


def evaluate(samples_by_server, faults):
    """Returns the problems, one sentence each. Memory growth is checked only after a run without
    errors, because a run that an error stopped has too few samples.
    """
    problems = list(faults)
    if problems:
        return problems
    for name, samples in samples_by_server.items():
        growth = growth_per_minute(samples, "rss")
        # The condition is negated, so that a growth of NaN (not measured) is a problem too.
        if not (len(samples) >= 3 and growth <= growth_limit(samples)):
            problems.append(f"{name} grows by {growth:.2f} MB a minute")
    return problems


class SoakServer(Process):
    def __init__(self, *options):
        self.http_port = free_port()
        super().__init__(SERVER, ["--http-port", self.http_port, "--hz", 50, *options])
        self.samples = []  # the server's memory, measured once a second under load
        self.calm_samples = []

    def sample(self, client, at_s):
        """Returns a Sample of the server's current memory usage."""
        status = {}
        with open(f"/proc/{self.pid}/status", encoding="ascii") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if value.endswith(" kB\n"):
                    status[name] = int(value.split()[0]) << 10
        used = int(info(client, "memory")["used_memory"])
        return Sample(at_s, status["VmRSS"], status["RssAnon"], status["RssShmem"], used)


def machine_shared_bytes():
    """Returns Shmem of the whole machine, which includes shared memory that no process maps."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Shmem:"))


class Soak:
    def __init__(self, minutes):
        self.judges_memory = minutes >= JUDGED_FROM_MINUTES
        self.warm_up_s = WARM_UP_S if self.judges_memory else 0
        self.seconds = self.warm_up_s + minutes * 60
        self.leader = SoakServer("--repl-diskless-sync-delay", 0)
        self.leader.wait_until_ready()
        self.replica = SoakServer("--replicaof", f"127.0.0.1 {self.leader.port}")
        self.replica.wait_until_ready()
        self.servers = {"server": self.leader, "replica": self.replica}
        self.faults = []
        self.loads = []

    def run(self):
        try:
            self.watch()
        finally:
            for load in self.loads:
                load.stopping.set()
            for load in self.loads:
                load.join(60)
                if load.is_alive():
                    self.faults.append(f"{load.name}: got no reply for a minute")
        self.faults += [load.fault for load in self.loads if load.fault]

    def watch(self):
        self.clients = {name: server.connect() for name, server in self.servers.items()}
        gate = soak_load.Gate()
        self.upkeep = soak_load.BackgroundTasks(self.leader, gate, self.replica)
        busy = [kind(self.leader, gate) for kind in soak_load.KINDS] + [self.upkeep]
        # A watcher polls the dashboard of a server. It never pauses, because it has a Gate of its
        # own, which is never closed.
        watchers = [soak_load.Watcher(server, soak_load.Gate()) for server in self.servers.values()]
        self.loads = busy + watchers
        started = time.monotonic()
        for load in self.loads:
            load.start()
        next_calm_s = self.warm_up_s
        while (at_s := time.monotonic() - started) < self.seconds:
            pace(1 - at_s % 1)
            if any(load.fault for load in self.loads):
                return
            for name, server in self.servers.items():
                server.samples.append(server.sample(self.clients[name], at_s))
            if at_s >= next_calm_s:
                self.calm_down(gate, busy, at_s)
                next_calm_s = at_s + max(CALM_EVERY_S, self.seconds / 60)

    def calm_down(self, gate, busy, at_s):
        gate.close(busy)
        let_time_pass(KEYS_LIVE_S, why="the keys with a time to live expire")
        self.upkeep.children_are_gone()
        self.wait_for_replica()
        self.wait_for_expiry()
        for name, server in self.servers.items():
            self.clients[name].call("MEMORY", "PURGE")
            server.calm_samples.append(server.sample(self.clients[name], at_s))
        self.print_figures(at_s)
        gate.open.set()

    def print_figures(self, at_s):
        line = f"{at_s:6.0f} s"
        for name, server in self.servers.items():
            last = server.calm_samples[-1]
            rss, shared, used = (
                f"{size / MEGABYTE:.1f}" for size in (last.rss, last.shared, last.used_memory)
            )
            line += f"  {name}: rss {rss} MB (shared {shared}), used_memory {used} MB;"
        print(f"{line}  Shmem {machine_shared_bytes() / MEGABYTE:.0f} MB", flush=True)

    def wait_for_expiry(self):
        """Waits until the leader has deleted all expired keys; until then the replica keeps them.
        """
        sizes = []

        def is_settled():
            sizes.append([client.call("DBSIZE") for client in self.clients.values()])
            return len(sizes) > 5 and all(size == sizes[-1] for size in sizes[-5:])

        wait_until(is_settled, "the number of keys stays the same", poll_every_s=0.1)

    def wait_for_replica(self):
        def caught_up():
            states = [info(self.clients[name]) for name in self.servers]
            return states[0]["master_repl_offset"] == states[1]["master_repl_offset"]

        wait_until(caught_up, "the replica has all of the stream")

    def end(self):
        for server in (self.replica, self.leader):
            self.faults += server.stop()

    def write_samples(self, path):
        with open(path, "w", encoding="ascii") as csv:
            print("server", *Sample._fields, sep=",", file=csv)
            for name, server in self.servers.items():
                for sample in server.samples:
                    print(name, *sample, sep=",", file=csv)

    def report(self):
        measured = {name: server.calm_samples for name, server in self.servers.items()}
        print(f"replies by kind, in {self.seconds:.0f} s:")
        for load in self.loads:
            if load.replies:
                print(f"  {load.name:14} {load.replies:>12,}")
        print("done:", ", ".join(f"{name} {count}" for name, count in self.upkeep.done.items()))
        if not self.judges_memory:
            return self.faults
        print(f"growth after {WARM_UP_S:.0f} s, in MB a minute:")
        for name, samples in measured.items():
            rates = {
                field: growth_per_minute(samples, field)
                for field in ("rss", "anonymous", "shared", "used_memory")
            }
            print(f"  {name:8}", ", ".join(f"{field} {rate:+.2f}" for field, rate in rates.items()))
        return evaluate(measured, self.faults)


def main():
    parser = argparse.ArgumentParser(prog="scripts/soak.sh")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--csv", help="a file for all samples, one a second and server")
    options = parser.parse_args()
    minutes = options.minutes
    if not minutes > 0:
        parser.error("--minutes: more than 0; memory is checked from 1")
    # SIGTERM raises an exception, so that the program stops its servers before it ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    soak = Soak(minutes)
    try:
        soak.run()
    finally:
        soak.end()
    problems = soak.report()
    if options.csv:
        soak.write_samples(options.csv)
    for problem in problems:
        print("problem:", problem)
    verdict = f"FAILED, {len(problems)} problems" if problems else "ok"
    print(f"soak of {minutes:g} minutes: {verdict}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
