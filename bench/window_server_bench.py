#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares lookups in a windowed filter and in a plain filter of the same error rate and capacity.

The length of the window is a number of items, and all its generations are full. The command is
BF.MEXISTS of absent items. The lookups alternate between the two filters. Each figure is the
server's CPU time per item with one I/O thread, as the median of all rounds.
"""
import argparse
import socket
import statistics

from server_bench import OurServer, encode

BATCH = 350


def batches(command, key, prefix, begin, end):
    """Yields (request, number of items): commands for the items `begin` to `end` - 1, with at most
    BATCH items each.
    """
    for start in range(begin, end, BATCH):
        stop = min(start + BATCH, end)
        yield encode(command, key, *(f"{prefix}:{i}" for i in range(start, stop))), stop - start


def send_all(server, requests):
    """Sends the requests one at a time. Returns the server's CPU time per item in ns, and the share
    of items for which the reply is 1.
    """
    ones = items = 0
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        stream = connection.makefile("rb")
        before = server.cpu_ns()
        for request, count in requests:
            connection.sendall(request)
            head = stream.readline()
            if not head.startswith(b"*"):
                raise SystemExit(head.decode())
            ones += sum(stream.readline() == b":1\r\n" for _ in range(count))
            items += count
        return (server.cpu_ns() - before) / items, ones / items


def compare(server, count, generations, options):
    rate = "0.01"
    server.command("FLUSHALL")
    server.command("BF.RESERVE", "plain", rate, count, "NONSCALING")
    server.command("BF.RESERVE", "window", rate, count, "WINDOW", count, "ITEMS", "GENERATIONS",
                   generations)
    send_all(server, batches("BF.MADD", "plain", "item", 0, count))
    send_all(server, batches("BF.MADD", "window", "item", 0, count + count // generations))
    figures = {"plain": [], "window": []}
    errors = {}
    for turn in range(options.rounds):
        for key, costs in figures.items():
            begin = turn * options.lookups
            cost, errors[key] = send_all(
                server, batches("BF.MEXISTS", key, "absent", begin, begin + options.lookups))
            costs.append(cost)
    plain, window = (statistics.median(costs) for costs in figures.values())
    print(f"{count:>11,} {generations:>3} {plain:>9.1f} {window:>9.1f} {window / plain:>7.2f} "
          f"{errors['plain']:>9.3%} {errors['window']:>9.3%}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="turns per filter")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on items and lookups")
    parser.add_argument("--pin", type=int, nargs="+", help="processors for the server")
    options = parser.parse_args()
    options.lookups = max(3500, int(350_000 * options.scale))
    print("\nBF.MEXISTS of absent items through a server, 350 in a batch: server CPU ns per item")
    print(f"{'items':>11} {'g':>3} {'plain':>9} {'window':>9} {'ratio':>7} {'error':>9} "
          f"{'error':>9}")
    server = OurServer(options)
    try:
        for count in (100_000, 1_000_000, 10_000_000):
            compare(server, max(1000, int(count * options.scale)), 4, options)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
