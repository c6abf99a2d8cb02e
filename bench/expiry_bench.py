#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the expiry of keys, in four sections.

The section `load` sets keys that live for half a second, at a fixed rate and under a maxmemory
limit. It counts refused writes and the keys that exist. The section `events` measures the delay of
`expired` events while millions of other keys exist. The section `idle` measures the CPU time of an
idle server whose keys all expire in a week. The section `effort` measures the share of a processor
that the deletion of expired keys takes, for the lowest and the highest active-expire-effort.
"""
import argparse
import socket
import threading
import time

from figures import Figures
from server_bench import OurServer, encode

MB = 1 << 20
RATE = 200_000
LIFE_MS = 500
BATCH_S = 0.01
OTHER_KEYS = 5_000_000
WEEK_S = 7 * 86400
SECTIONS = ("load", "events", "idle", "effort")


class Pipeline:
    """A connection whose replies are read and counted by a separate thread."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port), 60)
        self.replies = self.errors = 0
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        while data := self.socket.recv(1 << 20):
            self.replies += data.count(b"\n")
            self.errors += data.count(b"-")

    def send(self, data):
        self.socket.sendall(data)

    def finish(self):
        """Waits until all replies have arrived."""
        self.socket.shutdown(socket.SHUT_WR)
        self.thread.join()
        self.socket.close()


def fill(server, count, template, *more):
    """Sends a command for each key number below `count`. Each command is `template` formatted with
    the key's number and the values in `more`.
    """
    pipeline = Pipeline(server)
    for start in range(0, count, 5000):
        part = range(start, min(start + 5000, count))
        pipeline.send(b"".join(template % (number, *more) for number in part))
    pipeline.finish()
    if pipeline.errors:
        raise SystemExit(f"{pipeline.errors} writes were refused")


SET = b"*3\r\n$3\r\nSET\r\n$9\r\nk:%07d\r\n$1\r\nv\r\n"
SET_PX = b"*5\r\n$3\r\nSET\r\n$10\r\nk:%08d\r\n$1\r\nv\r\n$2\r\nPX\r\n$3\r\n500\r\n"
SET_EX = b"*5\r\n$3\r\nSET\r\n$9\r\nk:%07d\r\n$1\r\nv\r\n$2\r\nEX\r\n$6\r\n%d\r\n"
SET_PXAT = b"*5\r\n$3\r\nSET\r\n$9\r\nk:%07d\r\n$1\r\nv\r\n$4\r\nPXAT\r\n$13\r\n%d\r\n"


def key_count(server):
    return int(server.command("DBSIZE")[1:])


def bench_load(options, figures):
    print(f"\n{RATE:,} SET k v PX {LIFE_MS} a second, maxmemory 128mb")
    server = OurServer(options)
    try:
        server.command("CONFIG", "SET", "maxmemory", 128 * MB)
        pipeline = Pipeline(server)
        seconds = max(3, 20 * options.scale)
        each = int(RATE * BATCH_S)
        sent, most, began = 0, 0, time.monotonic()
        while (passed := time.monotonic() - began) < seconds:
            if sent > passed * RATE:
                time.sleep(sent / RATE - passed)
            pipeline.send(b"".join(SET_PX % number for number in range(sent, sent + each)))
            sent += each
            if sent % (10 * each) == 0:
                most = max(most, key_count(server))
        pipeline.finish()
        rate = sent / (time.monotonic() - began)
        live = RATE * LIFE_MS / 1000
        print(f"{rate:,.0f} a second, {pipeline.errors} refused, at most {most:,} keys "
              f"({most / live:.2f} of the live ones)", flush=True)
        figures.add("load/rate", rate)
        figures.add("load/refused", pipeline.errors)
        figures.add("load/keys_over_live", most / live)
    finally:
        server.stop()


def bench_events(options, figures):
    others = int(OTHER_KEYS * options.scale)
    print(f"\nHow late `expired` events come beside {others:,} other keys")
    server = OurServer(options)
    try:
        fill(server, others, SET)
        server.command("CONFIG", "SET", "notify-keyspace-events", "Ex")
        listener = socket.create_connection(("127.0.0.1", server.port), 60)
        listener.sendall(encode("SUBSCRIBE", "__keyevent@0__:expired"))
        stream = listener.makefile("rb")
        for _ in range(6):  # skips the six lines of the reply to SUBSCRIBE
            stream.readline()
        count = 1000
        first_ms = int(time.time() * 1000) + 1000
        with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
            replies = connection.makefile("rb")
            for i in range(count):
                at_ms = first_ms + i * 10
                connection.sendall(encode("SET", f"at:{at_ms}", "v", "PXAT", at_ms))
                replies.readline()
        late_ms = []
        for _ in range(count):
            lines = [stream.readline() for _ in range(7)]
            late_ms.append(time.time() * 1000 - int(lines[6].strip().split(b":")[1]))
        listener.close()
        print(f"at most {max(late_ms):,.0f} ms, {sum(late_ms) / count:,.0f} ms on average",
              flush=True)
        figures.add("events/late_ms", max(late_ms))
    finally:
        server.stop()


def bench_idle(options, figures):
    count = int(OTHER_KEYS * options.scale)
    print(f"\nIdle with {count:,} keys that expire in a week")
    server = OurServer(options)
    try:
        fill(server, count, SET_EX, WEEK_S)
        time.sleep(2)
        before, began = server.cpu_ns(), time.monotonic()
        time.sleep(max(3, 20 * options.scale))
        share = (server.cpu_ns() - before) / (time.monotonic() - began) / 1e9
        print(f"{share:.2%} of a core", flush=True)
        figures.add("idle/share", share)
    finally:
        server.stop()


def expiry_share(server, count):
    """Returns the share of a processor that the deletion of expired keys takes. The measurement
    ends when nine tenths of `count` expired keys are deleted.
    """
    server.command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    fill(server, count, SET_PXAT, int(time.time() * 1000) + 1)
    time.sleep(0.2)
    spent_ms = server.info("expire_cycle_cpu_milliseconds", "stats")
    server.command("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    began = time.monotonic()
    while key_count(server) > count // 10:
        time.sleep(0.02)
    passed_ms = (time.monotonic() - began) * 1000
    return (server.info("expire_cycle_cpu_milliseconds", "stats") - spent_ms) / passed_ms


def bench_effort(options, figures):
    count = int(3_000_000 * options.scale)
    print(f"\nShare of a processor that deleting {count:,} expired keys takes")
    server = OurServer(options, "--enable-debug-command", "yes")
    try:
        for effort in (1, 10):
            server.command("CONFIG", "SET", "active-expire-effort", effort)
            share = expiry_share(server, count)
            print(f"active-expire-effort {effort:>2}: {share:.1%}", flush=True)
            figures.add(f"effort/{effort}/share", share)
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(SECTIONS), choices=SECTIONS)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on keys and seconds")
    parser.add_argument("--pin", type=int, nargs="+", help="processors for the servers")
    Figures.add_option(parser)
    options = parser.parse_args()
    figures = Figures()
    for section in options.only:
        {"load": bench_load, "events": bench_events, "idle": bench_idle,
         "effort": bench_effort}[section](options, figures)
    figures.write(options.figures)


if __name__ == "__main__":
    main()
