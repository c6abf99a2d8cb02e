#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what polls of the admin port cost clients: server CPU per operation, with one poll each
second and without polls. A poll sends the requests of an open dashboard, or requests /metrics.

The load never stops. Windows of two seconds with and without polls alternate. Two windows form a
pair, and the order within the pairs alternates too. The column `ratio` is the CPU time per
operation with polls, divided by that without polls. It is the median over the pairs, and the next
column is its standard error. CPU is the time of all threads of the server. The last column is the
share of this time that the admin port's thread used in the windows with polls.
"""
import argparse
import http.client
import os
import statistics
import subprocess
import time

from server_bench import Server, encode, fill_keys, free_port

# Pages that the dashboard requests each second, by view. The dashboard requests the pages in SELDOM
# only every ten seconds.
VIEWS = {
    "metrics": ("/metrics",),
    "filters": ("/api/overview", "/api/filters?cursor=0"),
    "operations": ("/api/overview", "/api/history?after={now_ms}"),
}
SELDOM = ("/api/slowlog", "/api/commands", "/api/clients", "/api/log")
SELDOM_S = 10
# Loads, one for each row of the table: name, words of the command, depth of the pipeline.
LOADS = [
    ("GET, one at a time", ["GET", "key:__rand_int__"], 1),
    ("GET, pipelines of 16", ["GET", "key:__rand_int__"], 16),
    ("BF.EXISTS, pipelines of 16", ["BF.EXISTS", "filter:7", "item:__rand_int__"], 16),
]
WINDOW_S = 2
KEYS = 200_000
FILTERS = 2_000


class AdminServer(Server):
    """Runs a server with an admin port, and measures the CPU time of its threads."""

    def __init__(self, io_threads):
        binary = os.environ.get("BLOOMERY_SERVER", "build/release/bloomery-server")
        self.http_port = free_port()
        super().__init__("bloomery", [binary, "--loglevel", "warning", "--io-threads",
                                      str(io_threads), "--http-port", str(self.http_port)], None)
        self.polls = 0
        self.http = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=60)

    def poll(self, view):
        pages = [page.format(now_ms=int(1000 * time.time()) - 1500) for page in VIEWS[view]]
        self.polls += 1
        if view != "metrics" and self.polls % SELDOM_S == 0:
            pages += SELDOM
        for page in pages:
            self.http.request("GET", page)
            answer = self.http.getresponse()
            if answer.status != 200 or not answer.read():
                raise SystemExit(f"{page} answered {answer.status}")

    def admin_ns(self):
        tasks = f"/proc/{self.process.pid}/task"
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/comm", encoding="ascii") as file:
                if file.read().strip() != "admin":
                    continue
            with open(f"{tasks}/{task}/schedstat", encoding="ascii") as file:
                return int(file.read().split()[0])
        raise SystemExit("there is no admin thread")

    def operations(self):
        return self.info("total_commands_processed", "stats")


def window(server, view, is_polled):
    """Returns the CPU time per operation in ns: of all threads, and of the admin thread alone."""
    before = server.cpu_ns(), server.admin_ns(), server.operations()
    begun = time.monotonic()
    for second in range(WINDOW_S):
        if is_polled:
            server.poll(view)
        time.sleep(max(0.0, begun + second + 1 - time.monotonic()))
    after = server.cpu_ns(), server.admin_ns(), server.operations()
    operations = after[2] - before[2]
    return (after[0] - before[0]) / operations, (after[1] - before[1]) / operations


def print_row(server, name, words, pipeline, options):
    load = subprocess.Popen(
        ["redis-benchmark", "-p", str(server.port), "-n", str(10**9), "-P", str(pipeline),
         "-c", "50", "-r", str(options.keys), "-q", *words], stdout=subprocess.DEVNULL)
    try:
        time.sleep(2)
        turns = []
        for turn in range(options.rounds):
            order = (True, False) if turn % 2 == 0 else (False, True)
            turns.append({polled: window(server, options.view, polled) for polled in order})
    finally:
        load.kill()
        load.wait()
    alone = statistics.median(turn[False][0] for turn in turns)
    polled = statistics.median(turn[True][0] for turn in turns)
    ratios = [turn[True][0] / turn[False][0] for turn in turns]
    ratio = statistics.median(ratios)
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0
    own = statistics.median(turn[True][1] / turn[True][0] for turn in turns)
    print(f"{name:<28} {alone:8.0f} {polled:8.0f} {ratio:7.3f} {error:7.3f} {own:8.2%}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="pairs of windows")
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--filters", type=int, default=FILTERS)
    parser.add_argument("--view", choices=VIEWS, default="filters", help="the view that is polled")
    parser.add_argument("--io-threads", type=int, default=1)
    options = parser.parse_args()
    server = AdminServer(options.io_threads)
    try:
        fill_keys(server, options.keys, lambda i: encode("SET", f"key:{i:012}", "value"))
        fill_keys(server, options.filters,
                  lambda i: encode("BF.RESERVE", f"filter:{i}", "0.01", 10_000))
        print(f"{options.keys:,} keys, {options.filters:,} filters; each second "
              f"what '{options.view}' asks\n{'server CPU, ns an operation':<28} {'alone':>8} "
              f"{'polled':>8} {'ratio':>7} {'±':>7} {'admin':>8}")
        for name, words, pipeline in LOADS:
            print_row(server, name, words, pipeline, options)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
