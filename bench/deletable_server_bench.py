#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures adds, lookups and deletions through a server. Deletable filters are compared with a
plain native one and, if RedisBloom's module is found, with its cuckoo filter (CF.*).

The first tables are for commands with one item, in pipelines, with one I/O thread. They show the
median over the rounds of the server's CPU time per command; each round measures every filter. The
last table is for batches on large filters. It shows the CPU time per item of BF.MEXISTS and BF.DEL
on a fingerprint filter. It also shows the ratio of this time to the time of a lookup in a plain
filter. The path of the module is given by --module or $REDISBLOOM_MODULE; the default is where
packages install the module.
"""
import argparse
import os
import socket
import statistics

from server_bench import OurServer, Server, encode, redisbloom_module
from window_server_bench import BATCH, batches, send_all

PIPELINE = 100
BATCH_RATES = (0.01, 0.001, 0.0001, 0.000001)


class Subject:
    """One kind of filter on a server, with the commands that make it, query it and delete from it.
    """

    def __init__(self, name, server, reserve, words):
        self.name = name
        self.server = server
        self.reserve = reserve
        self.add, self.look, self.delete = words
        self.figures = {}

    def record(self, what, value):
        self.figures.setdefault(what, []).append(value)

    def median(self, what):
        return statistics.median(self.figures[what]) if what in self.figures else None


def cost(server, commands):
    """Returns the server CPU time per command in ns, and for each command whether it replied 1."""
    ones = []
    parts = [commands[start : start + PIPELINE] for start in range(0, len(commands), PIPELINE)]
    requests = [b"".join(encode(*command) for command in part) for part in parts]
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        stream = connection.makefile("rb")
        before = server.cpu_ns()
        for part, request in zip(parts, requests):
            connection.sendall(request)
            for _ in part:
                reply = stream.readline()
                if reply[:1] == b"*":  # BF.DEL replies with an array, one answer per item
                    reply = stream.readline()
                if reply[:1] == b"-":
                    raise SystemExit(f"{server.name}: {reply.decode()}")
                ones.append(reply == b":1\r\n")
        return (server.cpu_ns() - before) / len(commands), ones


def measure(subject, count, turn):
    """Fills a new filter, looks up its items, deletes every other item, and looks up all items
    again.
    """
    server, key = subject.server, f"filter:{turn}"
    reply = server.command(*[word.replace("KEY", key) for word in subject.reserve])
    if reply.startswith("-"):
        raise SystemExit(f"{subject.name}: {reply}")
    items = [f"item:{number}" for number in range(count)]
    absent = [f"absent:{number}" for number in range(count)]
    used, was_new = cost(server, [(subject.add, key, item) for item in items])
    subject.record("add", used)
    used, found = cost(server, [(subject.look, key, item) for item in items])
    subject.record("present", used)
    if not all(found):
        raise SystemExit(f"{subject.name}: items are lost")
    used, found = cost(server, [(subject.look, key, item) for item in absent])
    subject.record("absent", used)
    subject.record("error", sum(found) / count)
    subject.record("bits", int(server.command("MEMORY", "USAGE", key)[1:]) * 8 / count)
    if subject.delete:
        # If an add replied 0, the filter did not store the item, so the item must not be deleted.
        items = [item for item, is_new in zip(items, was_new) if is_new]
        used, gone = cost(server, [(subject.delete, key, item) for item in items[::2]])
        subject.record("delete", used)
        found = cost(server, [(subject.look, key, item) for item in items[::2]])[1]
        subject.record("residue", sum(found) / len(found))
        kept = cost(server, [(subject.look, key, item) for item in items[1::2]])[1]
        subject.record("lost", len(kept) - sum(kept))
        subject.record("gone", sum(gone) / len(gone))
    server.command("DEL", key)


def print_subjects(subjects, rate):
    print(f"{'error ' + format(rate, 'g'):<28} {'bits/item':>9} {'add':>6} {'present':>8} "
          f"{'absent':>7} {'delete':>7} {'error':>9} {'residue':>8} {'lost':>5}")
    for subject in subjects:
        delete = f"{subject.median('delete'):7.0f}" if subject.delete else f"{'-':>7}"
        residue = f"{subject.median('residue'):8.2%}" if subject.delete else f"{'-':>8}"
        lost = f"{max(subject.figures['lost']):5.0f}" if subject.delete else f"{'-':>5}"
        print(f"{subject.name:<28} {subject.median('bits'):9.2f} {subject.median('add'):6.0f} "
              f"{subject.median('present'):8.0f} {subject.median('absent'):7.0f} {delete} "
              f"{subject.median('error'):9.4%} {residue} {lost}", flush=True)


def subjects_for(ours, theirs, rate, count):
    plain = ["BF.RESERVE", "KEY", str(rate), str(count)]
    words = ("BF.ADD", "BF.EXISTS", "BF.DEL")
    subjects = [
        Subject("native", ours, plain, ("BF.ADD", "BF.EXISTS", None)),
        Subject("deletable", ours, [*plain, "DELETABLE"], words),
        Subject("deletable, regions 10", ours, [*plain, "DELETABLE", "REGIONS", "10"], words),
        Subject("deletable, regions 4", ours, [*plain, "DELETABLE", "REGIONS", "4"], words),
    ]
    if theirs:
        # RedisBloom's cuckoo filter has fingerprints of eight bits, whatever rate is requested.
        # With two fingerprints per bucket its error rate is about 3 %.
        subjects.append(Subject("RedisBloom CF", theirs, ["CF.RESERVE", "KEY", str(count)],
                                ("CF.ADD", "CF.EXISTS", "CF.DEL")))
    return subjects


def compare_batches(server, rate, count, options):
    """Fills a plain and a deletable filter. Each round measures both filters, and then adds the
    deleted items again.
    """
    server.command("FLUSHALL")
    server.command("BF.RESERVE", "plain", str(rate), count, "NONSCALING")
    server.command("BF.RESERVE", "deletable", str(rate), count, "DELETABLE")
    figures = {}

    def record(key, what, command, prefix, begin, end):
        used, _ = send_all(server, batches(command, key, prefix, begin, end))
        figures.setdefault((key, what), []).append(used)

    for key in ("plain", "deletable"):
        send_all(server, batches("BF.MADD", key, "item", 0, count))
    lookups = max(BATCH, count // 30)
    for turn in range(options.rounds):
        begin, end = turn * lookups, (turn + 1) * lookups
        for key in ("plain", "deletable"):
            record(key, "present", "BF.MEXISTS", "item", begin, end)
            record(key, "absent", "BF.MEXISTS", "absent", begin, end)
        record("deletable", "delete", "BF.DEL", "item", begin, end)
        send_all(server, batches("BF.MADD", "deletable", "item", begin, end))
    costs = {what: statistics.median(used) for what, used in figures.items()}
    line = f"{rate:<10g}"
    for what, beside in (("present", "present"), ("absent", "absent"), ("delete", "present")):
        plain, deletable = costs["plain", beside], costs["deletable", what]
        line += f" {deletable:8.1f} {deletable / plain:5.2f}"
    print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="turns per filter")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the items")
    parser.add_argument("--pin", type=int, nargs="+", help="processors for the servers")
    parser.add_argument("--module", help="RedisBloom's module, redisbloom.so")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.01, 0.001])
    options = parser.parse_args()
    if options.module:
        os.environ["REDISBLOOM_MODULE"] = options.module
    module = redisbloom_module()
    count = max(1000, int(200_000 * options.scale) // 2 * 2)
    print(f"\nThrough a server, {count:,} items, pipelines of {PIPELINE}: server CPU ns per "
          "command; then half of the items are deleted")
    if not module:
        print("RedisBloom's module is not on this machine: no CF.* beside ours")
    ours = OurServer(options)
    theirs = module and Server("redis", ["redis-server", "--loglevel", "warning", "--loadmodule",
                                         module], options.pin)
    try:
        for rate in options.rates:
            subjects = subjects_for(ours, theirs, rate, count)
            for turn in range(options.rounds):
                for subject in subjects:
                    measure(subject, count, turn)
            print_subjects(subjects, rate)
        count = max(10_500, int(10_000_000 * options.scale))
        print(f"\nThrough a server, {count:,} items, {BATCH} in a command: server CPU ns per item "
              "of fingerprints, and times\nwhat a plain filter's lookup takes (of present items, "
              f"for deletions)\n{'error':<10} {'present':>14} {'absent':>14} {'delete':>14}")
        for rate in BATCH_RATES:
            compare_batches(ours, rate, count, options)
    finally:
        ours.stop()
        if theirs:
            theirs.stop()


if __name__ == "__main__":
    main()
