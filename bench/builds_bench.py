#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the server CPU per operation of two builds of bloomery-server.

Each server has a load that never ends. Signals suspend and continue the loads, so that the servers
take turns of a tenth of a second. So other processes slow both servers equally. One turn of each
server makes a pair; the server that begins alternates. The memory addresses of a process
change its speed by some percent, so both servers are restarted several times. The ratio of a pair
is the CPU time of this build's server divided by that of the server `--before`. The table shows the
mean over the starts of the median ratio of each start, and the standard error of this mean.
"""
import argparse
import math
import os
import signal
import statistics
import subprocess
import time

from figures import Figures
from server_bench import BATCH, CLIENTS, COMMANDS, Server

FILTER_ITEMS_MIN = 10_000_000
TURN_S = 0.1
# Pause after a load is suspended, in which the server replies to the load's pending requests.
DRAIN_S = 0.003


def cases(pipelines):
    """Yields the cases: name, words of the command, depth of the pipeline, operations per request.
    """
    for pipeline in pipelines:
        for name, words in {**COMMANDS, "BF.ADD": ["BF.ADD", "f", "item:__rand_int__"],
                            "BF.EXISTS": ["BF.EXISTS", "f", "other:__rand_int__"]}.items():
            yield name, words, pipeline, 1
    for command in ("BF.MADD", "BF.MEXISTS"):
        yield f"{command}, {BATCH} items", [command, "f"] + ["item:__rand_int__"] * BATCH, 16, BATCH


class Load:
    """Runs redis-benchmark against one server. The load is suspended except during turn()."""

    def __init__(self, server, words, pipeline, options):
        self.server = server
        self.process = subprocess.Popen(
            ["redis-benchmark", "-p", str(server.port), "-n", str(10**9), "-P", str(pipeline),
             "-c", str(options.clients), "-r", str(options.keyspace), "-q", *words],
            stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        self.process.send_signal(signal.SIGSTOP)

    def turn(self):
        """Continues the load for TURN_S. Returns the server's CPU time per request in ns."""
        done_before = self.requests()
        used_before = self.server.cpu_ns()
        self.process.send_signal(signal.SIGCONT)
        time.sleep(TURN_S)
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(DRAIN_S)
        used = self.server.cpu_ns() - used_before
        # Subtracts the bench's own INFO request, which the server has counted too.
        done = self.requests() - done_before - 1
        if self.process.poll() is not None or done < 1:
            raise SystemExit("the load has ended")
        return used / done

    def requests(self):
        return self.server.info("total_commands_processed", "stats")

    def end(self):
        self.process.kill()
        self.process.wait()


def order_of(turn):
    """Returns the order of the two servers in this turn. It alternates, because the server that
    begins may be faster.
    """
    return (0, 1) if turn % 2 == 0 else (1, 0)


def costs_in_turns(servers, case, options, first):
    """Returns a list for each server: the CPU time per operation in ns in each turn."""
    _, words, pipeline, operations = case
    loads = [None, None]
    costs = [[], []]
    try:
        for i in order_of(first):
            loads[i] = Load(servers[i], words, pipeline, options)
        for turn in range(options.rounds):
            for i in order_of(first + turn):
                costs[i].append(loads[i].turn() / operations)
    finally:
        for load in filter(None, loads):
            load.end()
    return costs


def start(binary, options):
    server = Server(binary, [binary, "--io-threads", "1", "--loglevel", "warning"], options.pin)
    server.load(COMMANDS["SET"], 500_000, 100, CLIENTS, options.keyspace)
    server.load(COMMANDS["SETBIT"], 500_000, 100, CLIENTS, options.keyspace)
    server.command("BF.RESERVE", "f", "0.01", max(FILTER_ITEMS_MIN, options.keyspace))
    return server


def print_row(case, costs):
    """Prints one row of the table. `costs` has one result of costs_in_turns() for each pair of
    server processes.
    """
    name, _, pipeline, _ = case
    before, after = (statistics.median(cost for turns in costs for cost in turns[i])
                     for i in (0, 1))
    ratios = [statistics.median(new / old for old, new in zip(*turns)) for turns in costs]
    error = statistics.stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else math.nan
    print(f"{name:<27} {pipeline:>4} {before:>9.1f} {after:>9.1f} {statistics.mean(ratios):>7.3f} "
          f"+-{error:.3f}", flush=True)
    return statistics.mean(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", required=True, help="the server to compare with")
    parser.add_argument("--starts", type=int, default=6, help="processes of each build")
    parser.add_argument("--rounds", type=int, default=20, help="pairs of turns of each start")
    parser.add_argument("--pipelines", type=int, nargs="+", default=[16, 350])
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--keyspace", type=int, default=100_000,
                        help="number of keys, and of items of the filter")
    parser.add_argument("--only", nargs="+", help="names of commands; all without")
    parser.add_argument("--pin", type=int, nargs="+", help="processors for the servers")
    Figures.add_option(parser)
    options = parser.parse_args()
    binaries = options.before, os.environ.get("BLOOMERY_SERVER", "build/release/bloomery-server")
    rows = [(case, []) for case in cases(options.pipelines)
            if options.only is None or case[0].split(",")[0] in options.only]
    if not rows:
        names = ", ".join(sorted({case[0].split(",")[0] for case in cases(options.pipelines)}))
        parser.error(f"--only names no command of the table, which has {names}")
    for turn in range(options.starts):
        servers = [None, None]
        try:
            for i in order_of(turn):
                servers[i] = start(binaries[i], options)
            for case, costs in rows:
                costs.append(costs_in_turns(servers, case, options, turn))
        finally:
            for server in filter(None, servers):
                server.stop()
    print(f"{'server CPU, ns an operation':<27} {'pipe':>4} {'before':>9} {'after':>9} "
          f"{'ratio':>7}")
    ratios = [print_row(case, costs) for case, costs in rows]
    print(f"mean of the ratios {statistics.geometric_mean(ratios):.3f}")
    figures = Figures({f"builds/{name}/{pipeline}/ratio": ratio
                       for ((name, _, pipeline, _), _), ratio in zip(rows, ratios)})
    figures.write(options.figures)


if __name__ == "__main__":
    main()
