#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the time to load a snapshot: this server on one core and on two, and redis-server.

The snapshot has 400,000 keys in 1 GB. There are 200,000 strings of 1 kB, half of them compressible
text. Another 199,000 keys are filters of at most a hundred items. The last 1,000 keys are filters
of 800 kB that are half full. For the filters, redis-server needs the RedisBloom module
(REDISBLOOM_MODULE=/path/to/redisbloom.so). Without the module the snapshot has only the strings.
"""
import argparse
import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from harness import free_port

BINARY = os.path.abspath(os.environ.get("BLOOMERY_SERVER", "build/release/bloomery-server"))
MODULE = os.environ.get("REDISBLOOM_MODULE", "")
BIG_ITEMS = 700_000
# Words put before the command line of each server, such as `chrt -f 10` on a machine with other
# busy processes.
PREFIX = os.environ.get("BLOOMERY_BENCH_PREFIX", "").split()


def command(*words):
    encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word)
                                                for word in encoded)  # fmt: skip


class Server:
    """Starts a server that loads a snapshot. call() waits until the server accepts connections."""

    def __init__(self, program, directory, options, cores):
        self.port = free_port()
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            [*PREFIX, "taskset", "-c", cores, program, "--port", str(self.port), "--dir", directory,
             "--save", "", "--appendonly", "no", *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def connect(self):
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit("the server has ended") from None
                time.sleep(0.01)

    def call(self, *words):
        """Sends one command and reads its reply: a single line or a bulk string."""
        with self.connect() as connection:
            connection.sendall(command(*words))
            reply = connection.makefile("rb")
            line = reply.readline()
            return reply.read(int(line[1:])) if line.startswith(b"$") else line

    def seconds_to_ready(self):
        while not self.call("PING").startswith(b"+PONG"):
            time.sleep(0.02)
        return time.monotonic() - self.begun

    def send(self, commands):
        """Sends all commands and waits for the last reply."""
        with self.connect() as connection:
            seen = bytearray()

            def drain():
                while not seen.endswith(b"$4\r\nlast\r\n"):
                    seen[:-64] = b""
                    seen.extend(connection.recv(1 << 20))

            reader = threading.Thread(target=drain)
            reader.start()
            buffer = bytearray()
            for each in commands:
                buffer += each
                if len(buffer) > 1 << 20:
                    connection.sendall(buffer)
                    buffer.clear()
            connection.sendall(buffer + command("ECHO", "last"))
            reader.join()

    def stop(self):
        self.process.kill()
        self.process.wait()


def text_value(number):
    return (b'{"id":%d,"name":"user %d","tags":["one","two","three"],"active":true},' %
            (number, number)) * 14  # fmt: skip


def contents(scale, payloads):
    rng = random.Random(1)
    for number in range(int(100_000 * scale)):
        yield command("SET", f"text:{number}", text_value(number))
        yield command("SET", f"bytes:{number}", rng.randbytes(1000))
    for number in range(int(199_000 * scale) if payloads else 0):
        items = [f"i:{number}:{item}" for item in range(rng.randrange(5, 100, 10))]
        yield command("BF.MADD", f"small:{number}", *items)
    for number in range(int(1000 * scale) if payloads else 0):
        yield command("RESTORE", f"big:{number}", 0, payloads[number % len(payloads)])


def make_snapshot(directory, scale, has_filters):
    options = ("--bf-layout", "redisbloom", "--client-query-buffer-limit", "1gb")
    server = Server(BINARY, directory, options, "0,1")
    server.seconds_to_ready()
    payloads = []
    for seed in range(4 if has_filters else 0):
        server.call("BF.RESERVE", "made", "0.01", BIG_ITEMS)
        count = BIG_ITEMS // 2
        server.send(command("BF.MADD", "made", *[f"{seed}:{item + at}" for item in range(1000)])
                    for at in range(0, count, 1000))  # fmt: skip
        payloads.append(server.call("DUMP", "made"))
        server.call("DEL", "made")
    server.send(contents(scale, payloads))
    print(server.call("SAVE").decode().strip(), server.call("DBSIZE").decode().strip(),
          f"{os.path.getsize(os.path.join(directory, 'dump.rdb')) / 1e6:.0f} MB", flush=True)
    server.stop()


def load(program, directory, options, cores):
    server = Server(program, directory, options, cores)
    seconds = server.seconds_to_ready()
    digest = server.call("DEBUG", "DIGEST") if program == BINARY else b""
    server.stop()
    return seconds, digest


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", help="a directory for the snapshot, used again if it is there")
    options = parser.parse_args()
    directory = options.keep or tempfile.mkdtemp(prefix="bloomery-bench-")
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "dump.rdb")
    if not os.path.exists(path):
        make_snapshot(directory, options.scale, bool(MODULE))
    with open(path, "rb") as file:  # loads the file into the page cache
        while file.read(1 << 24):
            pass
    ours = ("--enable-debug-command", "yes")
    cases = {
        "one core": (BINARY, ours, "0"),
        "two cores": (BINARY, ours, "0,1"),
        "redis-server": (shutil.which("redis-server"),
                         ("--loadmodule", MODULE) if MODULE else (), "0,1"),
    }  # fmt: skip
    best, digests = {}, set()
    for _ in range(options.rounds):
        for name, (program, more, cores) in cases.items():
            seconds, digest = load(program, directory, more, cores)
            digests.add(digest)
            best[name] = min(seconds, best.get(name, seconds))
    for name, seconds in best.items():
        print(f"{name:<13} {seconds:6.2f} s, {os.path.getsize(path) / 1e6 / seconds:6.0f} MB/s")
    print(f"two cores against one: {best['one core'] / best['two cores']:.2f} times as fast; "
          f"against redis-server: {best['redis-server'] / best['two cores']:.2f}; "
          f"{'same' if len(digests - {b''}) == 1 else 'DIFFERENT'} DEBUG DIGEST")
    if not options.keep:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
