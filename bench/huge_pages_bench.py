#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what huge pages do for big filters, in two sections.

The section `cost` measures the server's CPU time per item of BF.MADD and BF.MEXISTS, for filters
from 12 MB to 1 GB, with `filter-huge-pages no` and with `auto`. Each round measures every filter.
The cost of a filter is its lowest cost of all rounds, because other processes can only raise a
cost. The ratio of a filter is its cost divided by the cost of the filter of 12 MB.
In the mode `auto` it also measures the time from the fill to the first huge page. Then a client
looks up items of the filter of 1 GB until the server has moved the arrays into huge pages. The
longest PING in this time is printed. The longest PING in an equally long time afterwards is printed
for comparison, because a busy machine also delays PINGs.
The section `sparse` reserves 2,000,000,000 items and adds 2,000. It measures the resident bytes
of the filter arrays and of the heap four times. The first two times are after the adds, and after
two passes of the server over all arrays. The others are after BGSAVE and after a restart.
"""
import argparse
import multiprocessing
import os
import pathlib
import socket
import statistics
import subprocess
import time

from figures import Figures
from server_bench import BATCH, OurServer, batch_cost, encode

MB = 1_000_000
SMALL = "12MB"
BIG = "1GB"
# Items of each filter at an error rate of 1 %, which takes about 9.9 bits per item.
CAPACITIES = {SMALL: 10_000_000, "40MB": 32_000_000, "120MB": 100_000_000, "250MB": 200_000_000,
              BIG: 820_000_000}
COMMANDS = ("BF.MADD", "BF.MEXISTS")
SPARSE_CAPACITY = 2_000_000_000
SPARSE_ITEMS = 2_000
# The server's maximum pause between two passes over all arrays (PageCollapser::kPassPauseMax).
PASS_S = 30
COLLAPSE_DEADLINE_S = 300
SECTIONS = ("cost", "sparse")


class Pings(multiprocessing.Process):
    """Sends PING every millisecond, and records the longest time until a reply."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port = port
        self.longest_s = multiprocessing.Value("d", 0.0)
        self.start()

    def run(self):
        ping = encode("PING")
        with socket.create_connection(("127.0.0.1", self.port), 60) as connection:
            while True:
                start = time.monotonic()
                connection.sendall(ping)
                connection.recv(100)
                took_s = time.monotonic() - start
                self.longest_s.value = max(self.longest_s.value, took_s)
                time.sleep(0.001)

    def take_ms(self):
        """Returns the longest time until a reply since the last call, in ms."""
        longest_s, self.longest_s.value = self.longest_s.value, 0.0
        return longest_s * 1000


def lookups(server, key):
    """Starts a client that looks up items of the filter until the caller kills the client."""
    words = ["BF.MEXISTS", key] + ["item:__rand_int__"] * BATCH
    return subprocess.Popen(
        ["redis-benchmark", "-p", str(server.port), "-n", str(10**9), "-c", "1",
         "-r", "999999999", "-q", *words], stdout=subprocess.DEVNULL)


def huge_bytes(server):
    return server.info("mem_filter_arrays_huge_bytes", "memory")


def fill(server, capacities):
    """Adds items until practically all pages of each filter are touched."""
    for key, capacity in capacities.items():
        server.command("BF.RESERVE", key, "0.01", capacity, "NONSCALING")
        batch_cost(server, "BF.MADD", key, max(20_000, capacity // 10_000), "warm:", 1)


def await_collapse(server, capacities, figures):
    """Waits until the big arrays are in huge pages. Measures the longest PING of each second during
    this time. Then measures the same for an equally long time in which no array is moved.
    """
    filled_s = time.monotonic()
    # Smaller arrays stay in small pages, and so does the last part of each array.
    sizes = [server.filter_field(key, "SIZE") for key in capacities]
    wanted = sum(size - 4 * MB for size in sizes if size > 33 * MB)
    pings = Pings(server.port)
    load = lookups(server, BIG)
    moving_ms, calm_ms = [], []
    try:
        while huge_bytes(server) == 0 and time.monotonic() - filled_s < COLLAPSE_DEADLINE_S:
            time.sleep(0.05)
        begun_s = time.monotonic()
        pings.take_ms()
        while huge_bytes(server) < wanted and time.monotonic() - begun_s < COLLAPSE_DEADLINE_S:
            time.sleep(1)
            moving_ms.append(pings.take_ms())
        done_s = time.monotonic()
        for _ in moving_ms:
            time.sleep(1)
            calm_ms.append(pings.take_ms())
    finally:
        load.kill()
        load.wait()
        pings.kill()
        pings.join()
    figures.add("collapse/begin_s", begun_s - filled_s)
    figures.add("collapse/longest_ping_ms", max(moving_ms))
    print(f"auto: the first huge page came {begun_s - filled_s:.1f} s after the fill, and "
          f"{huge_bytes(server) / MB:,.0f} MB took {done_s - begun_s:.1f} s", flush=True)
    for name, longest in (("while pieces move", moving_ms), ("afterwards", calm_ms)):
        print(f"longest PING of {len(longest)} seconds {name}: {max(longest):.1f} ms, "
              f"median of the seconds {statistics.median(longest):.1f} ms", flush=True)


def measure_costs(server, capacities, mode, figures, options):
    requests = int(10_000 * options.scale)
    for command in COMMANDS:
        costs = {key: [] for key in capacities}
        for round_ in range(options.rounds):
            for key in capacities:
                # Every round has other items, so that MADD always adds.
                prefix = f"{command}:{round_}:"
                costs[key].append(batch_cost(server, command, key, requests, prefix, 1))
        small = min(costs[SMALL])
        for key in capacities:
            cost = min(costs[key])
            figures.add(f"{mode}/{command}/{key}/ratio", cost / small)
            print(f"{mode:<5} {command:<11} {key:>6}  {cost:6.1f} ns per item  "
                  f"{cost / small:.2f}x", flush=True)


def bench_cost(options, figures):
    print(f"\nServer CPU per item, {BATCH} items a command, pipeline 16")
    for mode in ("no", "auto"):
        server = OurServer(options, "--filter-huge-pages", mode)
        try:
            fill(server, CAPACITIES)
            if mode == "auto":
                await_collapse(server, CAPACITIES, figures)
            measure_costs(server, CAPACITIES, mode, figures, options)
        finally:
            server.stop()


def resident_bytes(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    heap = int(status.split("RssAnon:")[1].split()[0]) * 1024
    return server.info("mem_filter_arrays_resident", "memory") + heap


def bench_sparse(options, figures):
    print(f"\nA reservation of {SPARSE_CAPACITY:,} items with {SPARSE_ITEMS:,} added")
    server = OurServer(options, "--filter-huge-pages", "auto")
    try:
        server.command("BF.RESERVE", "sparse", "0.01", SPARSE_CAPACITY)
        server.replies([("BF.ADD", "sparse", item) for item in range(SPARSE_ITEMS)])

        def report(stage):
            figures.add(f"sparse/{stage}/resident_bytes", resident_bytes(server))
            print(f"{stage:<8} {resident_bytes(server) / MB:6.1f} MB resident of "
                  f"{server.info('mem_filter_arrays_reserved', 'memory') / MB:,.0f} MB, "
                  f"{huge_bytes(server) / MB:.0f} MB in huge pages", flush=True)

        report("added")
        time.sleep(2 * PASS_S)
        report("passed")
        server.command("BGSAVE")
        while server.info("rdb_bgsave_in_progress", "persistence") != 0:
            time.sleep(0.05)
        report("saved")
        server.process.terminate()
        server.process.wait()
        server.restart()
        time.sleep(PASS_S)
        report("loaded")
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the requests")
    parser.add_argument("--pin", type=int, nargs="+", help="processors for the server")
    parser.add_argument("--only", nargs="+", default=list(SECTIONS), choices=SECTIONS)
    Figures.add_option(parser)
    options = parser.parse_args()
    figures = Figures()
    if "cost" in options.only:
        bench_cost(options, figures)
    if "sparse" in options.only:
        bench_sparse(options, figures)
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    figures.write(options.figures)


if __name__ == "__main__":
    main()
