#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures TLS: server CPU per operation and per handshake, compared with redis-server in one run.

Both servers have the same certificate, which has an elliptic-curve key. The load alternates between
the servers, and figures are medians of the rounds. After each row with TLS comes the row of the
same load without TLS.

Environment:
  BLOOMERY_SERVER  the server program (default: build/release/bloomery-server)
"""
import argparse
import statistics
import subprocess
import tempfile

from harness import SERVER
from harness.tls_files import TlsFiles
from server_bench import Server, free_port

# Each case: name, options of redis-benchmark, number of requests.
CASES = [
    ("GET, one at a time", ["-t", "get", "-P", "1"], 100_000),
    ("SET, one at a time", ["-t", "set", "-P", "1"], 100_000),
    ("GET, pipelines of 16", ["-t", "get", "-P", "16"], 500_000),
    ("GET of 100 KB", ["-t", "get", "-d", "100000", "-P", "1"], 10_000),
    ("a connection for each PING", ["-t", "ping_mbulk", "-k", "0"], 5_000),
]


def cpu_us(server, port, options, requests):
    """Returns the server's CPU time per request in µs."""
    if "-d" in options:
        server.command("SET", "key:__rand_int__", "x" * int(options[options.index("-d") + 1]))
    before = server.cpu_ns()
    command = ["redis-benchmark", "-p", port, "-c", 50, "-n", requests, "-q", *options]
    subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=600)
    return (server.cpu_ns() - before) / requests / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the requests")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bloomery-bench-tls-") as folder:
        files = TlsFiles(folder)
        servers = []
        for name, program in (("ours", SERVER), ("redis-server", "redis-server")):
            port = free_port()
            words = [str(program), *map(str, files.server_options(port))]
            servers.append((Server(name, words, None), port))
        print(f"{'CPU of the server, µs a request':40} {'ours':>8} {'redis':>8} {'ratio':>6}")
        for name, load, requests in CASES:
            for is_encrypted in (True, False):
                words = files.client_options() if is_encrypted else []
                figures = {}
                for _ in range(options.rounds):
                    for server, port in servers:
                        target = port if is_encrypted else server.port
                        count = int(requests * options.scale)
                        used = cpu_us(server, target, [*load, *words], count)
                        figures.setdefault(server.name, []).append(used)
                ours, theirs = (statistics.median(figures[server.name]) for server, _ in servers)
                title = name + (", TLS" if is_encrypted else "")
                print(f"{title:40} {ours:8.2f} {theirs:8.2f} {ours / theirs:6.2f}", flush=True)
        for server, _ in servers:
            server.stop()


if __name__ == "__main__":
    main()
