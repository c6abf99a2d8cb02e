#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the cost of BGSAVE for each kind of filter.

The cost is the time of the fork, and the memory copied on write because clients add items while the
child process saves. Deletable filters are in private memory, all others in memory that parent and
child share.

Environment:
  BLOOMERY_SERVER  the server (default: build/release/bloomery-server)
"""
import argparse
import os
import random
import socket
import subprocess
import tempfile
import time

KINDS = (
    ("native", ()),
    ("fingerprints", ("DELETABLE",)),
    ("regions", ("DELETABLE", "REGIONS", "4")),
)
BATCH = 500


class Connection:
    def __init__(self, port):
        for _ in range(100):
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        self.replies = self.socket.makefile("rb")

    def call(self, *words):
        data = [str(word).encode() for word in words]
        lines = [b"*%d\r\n" % len(data)]
        lines += [b"$%d\r\n%s\r\n" % (len(word), word) for word in data]
        self.socket.sendall(b"".join(lines))
        return self.read()

    def read(self):
        line = self.replies.readline()
        if line[:1] == b"$":
            return self.replies.read(int(line[1:]) + 2)[:-2]
        if line[:1] == b"*":
            return [self.read() for _ in range(int(line[1:]))]
        return line[1:-2]

    def info(self, field):
        lines = self.call("INFO").decode().split("\r\n")
        return next(line.split(":")[1] for line in lines if line.startswith(field + ":"))


def measure(connection, kind, options, capacity):
    connection.call("FLUSHALL")
    connection.call("BF.RESERVE", "k", "0.01", capacity, *options)
    for _ in range(capacity // 500 // BATCH):
        connection.call("BF.MADD", "k", *(random.randrange(capacity) for _ in range(BATCH)))
    megabytes = int(connection.call("BF.INFO", "k", "SIZE")[0]) / 1e6
    for wanted in (0, 2000, 20000):
        connection.call("BGSAVE")
        changed = 0
        while connection.info("rdb_bgsave_in_progress") == "1":
            if changed >= wanted:
                time.sleep(0.02)
                continue
            connection.call("BF.MADD", "k", *(random.randrange(capacity) for _ in range(BATCH)))
            changed += BATCH
        fork_ms = int(connection.info("latest_fork_usec")) / 1000
        copied = int(connection.info("rdb_last_cow_size")) / 1e6
        print(f"{kind:12} {megabytes:6.0f} MB  fork {fork_ms:6.1f} ms  "
              f"{changed:6} items added, {copied:6.1f} MB copied", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--capacity", type=int, default=200_000_000)
    parser.add_argument("--port", type=int, default=7392)
    arguments = parser.parse_args()
    server = os.environ.get("BLOOMERY_SERVER", "build/release/bloomery-server")
    with tempfile.TemporaryDirectory() as directory:
        words = [server, "--port", str(arguments.port), "--dir", directory, "--save", ""]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        try:
            connection = Connection(arguments.port)
            for kind, options in KINDS:
                measure(connection, kind, options, arguments.capacity)
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
