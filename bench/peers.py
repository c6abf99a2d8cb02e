# SPDX-License-Identifier: MIT
"""Measures other servers (peers) for bench/report.py. The caller names them by
`--peer NAME=COMMAND`.

Each peer runs at the same time as this server. Both execute the same commands at three pipeline
depths, with commands on filters if the peer has filters. Latency at fixed rates is measured four
times: without other activity, during BGSAVE, during BGREWRITEAOF, and during a full sync of a
replica.
"""

import contextlib
import shlex
import socket
import threading
import time

import server_bench
from fixed_rate import FixedRate, quantile
from harness.resp import encode
from server_bench import CLIENTS, COMMANDS, KEYSPACE, OurServer, Server

RATES = (1_000, 5_000)
QUANTILES = ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"))
FILTER_ITEMS = 10_000_000
SECONDS = 5
END_WAIT_S = 60


def parse_peer(text):
    """Parses NAME=COMMAND. Returns the name and the words of the command. Errors: ValueError."""
    name, is_given, command = text.partition("=")
    words = shlex.split(command)
    if not is_given or not name or not words:
        raise ValueError(f"'{text}' is not NAME=COMMAND, e.g. valkey='valkey-server --hz 10'")
    return name, words


def has_filters(server):
    return not server.command("BF.EXISTS", "none", "x").startswith("-")


def measure_commands(ours, theirs, options):
    rows = []
    names = dict(COMMANDS)
    if has_filters(theirs):
        for server in (ours, theirs):
            server.command("BF.RESERVE", "filter", "0.01", str(FILTER_ITEMS))
        for name in ("BF.ADD", "BF.EXISTS"):
            names[name] = [name, "filter", "item:__rand_int__"]
    for server in (ours, theirs):
        for name in ("SET", "SETBIT"):
            server.load(COMMANDS[name], int(1_000_000 * options.scale), 100, CLIENTS, KEYSPACE)
    for pipeline in options.pipelines:
        for name, words in names.items():
            rows.append((name, pipeline,
                         *server_bench.compare(ours, theirs, words, words, pipeline, options)))
    return rows


# The functions and the class below start the events during which latency is measured. A call
# returns before the event has ended.


def save(server):
    server.command("BGSAVE")


def rewrite(server):
    server.command("BGREWRITEAOF")


class FullSync:
    """Connects to the server as a replica that requests a full sync. A thread reads and discards
    the snapshot and the stream of writes.
    """

    def __init__(self):
        self.links = []

    def __call__(self, server):
        server.command("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        link = socket.create_connection(("127.0.0.1", server.port), 60)
        link.sendall(encode("REPLCONF", "capa", "eof") + encode("PSYNC", "?", "-1"))
        threading.Thread(target=self._drain, args=(link,), daemon=True).start()
        self.links.append(link)

    @staticmethod
    def _drain(link):
        with contextlib.suppress(OSError):
            while link.recv(1 << 20):
                pass

    def close(self):
        for link in self.links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()


def events():
    return {"calm": None, "BGSAVE": save, "BGREWRITEAOF": rewrite, "a full sync": FullSync()}


def request_of(server):
    """Returns the function that makes a request from a number: BF.ADD, or SET if the server has no
    filters.
    """
    if has_filters(server):
        server.command("BF.RESERVE", "latency", "0.01", str(FILTER_ITEMS))
        return lambda number: encode("BF.ADD", "latency", f"item:{number}")
    return lambda number: encode("SET", f"key:{number % KEYSPACE}", "xxx")


def wait_until_calm(server):
    for _ in range(END_WAIT_S * 10):
        fields = server.bulk("INFO", "persistence")
        if "rdb_bgsave_in_progress:0" in fields and "aof_rewrite_in_progress:0" in fields:
            return
        time.sleep(0.1)


def measure_latency(servers, options):
    """Returns rows for the latency table. Each row is the event, the rate, and for each server the
    latency quantiles in milliseconds.
    """
    rows = []
    loads = [FixedRate(server.port, request_of(server)) for server in servers]
    try:
        for name, event in events().items():
            for rate in RATES:
                row = [name, f"{rate:,}"]
                for server, load in zip(servers, loads):
                    begin = (lambda s=server, e=event: e(s)) if event else None
                    delays = load.run(rate, max(1, SECONDS * options.scale), begin)
                    row += [f"{quantile(delays, share) * 1000:.2f}" for share, _ in QUANTILES]
                    wait_until_calm(server)
                rows.append(row)
            if isinstance(event, FullSync):
                event.close()
    finally:
        for load in loads:
            load.close()
    return rows


def measure(name, command, options):
    """Returns (version, rows of commands, rows of the latency table) of one peer."""
    ours = OurServer(options, persistence=("--appendonly", "yes"))
    theirs = Server(name, command, options.pin, persistence=("--appendonly", "yes"))
    try:
        rows = measure_commands(ours, theirs, options)
        latency = measure_latency((ours, theirs), options)
        version = [
            line for line in theirs.bulk("INFO", "server").splitlines()
            if line.startswith(("redis_version", "valkey_version", "server_name"))
        ]  # fmt: skip
    finally:
        ours.stop()
        theirs.stop()
    return ", ".join(version), rows, latency
