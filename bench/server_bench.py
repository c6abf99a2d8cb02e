#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures bloomery-server beside redis-server in one run: throughput and server CPU per operation.

Machines are noisy, so both servers run at once and take turns; the figures are medians of the
rounds, and the last column is the ratio ours / theirs (below 1: ours is cheaper). CPU is what the
kernel accounts to all threads of the server process; it includes parsing, replies and sockets, and
leaves out the load generator (redis-benchmark), which limits throughput at high pipeline depth.
"""
import argparse
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server process that can tell how much CPU it has used."""

    def __init__(self, name, command, pin):
        self.name = name
        self.port = free_port()
        self.directory = tempfile.mkdtemp(prefix="bloomery-bench-")
        full = command + ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                          "--appendonly", "no", "--dir", self.directory]
        self.process = subprocess.Popen(full, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if pin is not None:
            os.sched_setaffinity(self.process.pid, {pin})
        self._wait()

    def _wait(self):
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit(f"{self.name} ended at start")
                time.sleep(0.05)
        raise SystemExit(f"{self.name} does not listen")

    def cpu_ns(self):
        """CPU time of all threads, from the scheduler's own accounting."""
        total = 0
        tasks = f"/proc/{self.process.pid}/task"
        for task in os.listdir(tasks):
            try:
                with open(f"{tasks}/{task}/schedstat", encoding="ascii") as file:
                    total += int(file.read().split()[0])
            except FileNotFoundError:
                pass  # the thread has ended between listing and reading
        return total

    def command(self, *words):
        """One command, its raw first reply line."""
        with socket.create_connection(("127.0.0.1", self.port), 60) as connection:
            request = b"*%d\r\n" % len(words)
            for word in words:
                word = str(word).encode()
                request += b"$%d\r\n%s\r\n" % (len(word), word)
            connection.sendall(request)
            return connection.makefile("rb").readline().decode().strip()

    def load(self, words, requests, pipeline, clients, keyspace):
        """Runs redis-benchmark once; returns (requests per second, server CPU ns per request)."""
        before = self.cpu_ns()
        start = time.monotonic()
        output = subprocess.run(
            ["redis-benchmark", "-p", str(self.port), "-n", str(requests), "-P", str(pipeline),
             "-c", str(clients), "-r", str(keyspace), "--csv", *words],
            check=True, capture_output=True, text=True, timeout=600).stdout
        elapsed = time.monotonic() - start
        used = self.cpu_ns() - before
        rows = [line for line in output.splitlines() if line.startswith('"')]
        rate = float(rows[-1].split('","')[1].strip('"')) if rows else requests / elapsed
        return rate, used / requests

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


COMMANDS = {
    "PING": ["PING"],
    "GET": ["GET", "key:__rand_int__"],
    "SET": ["SET", "key:__rand_int__", "xxx"],
    # redis-benchmark pads its numbers with zeros, which no server takes as an offset.
    "SETBIT": ["SETBIT", "bits:__rand_int__", "100", "1"],
}
KEYSPACE = 1_000_000
CLIENTS = 50


def requests_for(pipeline, scale):
    return max(20_000, int({1: 100_000, 16: 1_000_000, 350: 3_000_000}[pipeline] * scale))


def compare(ours, theirs, words, other_words, pipeline, options):
    """Median (rate, CPU ns) of both servers, taking turns."""
    figures = {ours: [], theirs: []}
    requests = requests_for(pipeline, options.scale)
    for _ in range(options.rounds):
        for server, line in ((ours, words), (theirs, other_words)):
            figures[server].append(server.load(line, requests, pipeline, CLIENTS, KEYSPACE))
    return [tuple(statistics.median(run[i] for run in figures[server]) for i in (0, 1))
            for server in (ours, theirs)]


def print_row(name, pipeline, our, their):
    print(f"{name:<34} {pipeline:>4} {our[0]:>12,.0f} {their[0]:>12,.0f} {our[1]:>9.0f} "
          f"{their[1]:>9.0f} {our[1] / their[1]:>7.2f}", flush=True)


def print_header(title):
    print(f"\n{title}\n{'':<34} {'pipe':>4} {'ours ops/s':>12} {'redis ops/s':>12} {'ours ns':>9} "
          f"{'redis ns':>9} {'CPU':>7}")


def run(options):
    binary = os.environ.get("BLOOMERY_SERVER", "build/release/bloomery-server")
    ours = Server("bloomery", [binary, "--io-threads", "1", "--loglevel", "warning"], options.pin)
    theirs = Server("redis", ["redis-server", "--loglevel", "warning"], options.pin)
    try:
        for server in (ours, theirs):
            server.load(COMMANDS["SET"], 1_000_000, 100, CLIENTS, KEYSPACE)
            server.load(COMMANDS["SETBIT"], 1_000_000, 100, CLIENTS, KEYSPACE)
        print_header("Server CPU per operation, one I/O thread, no append log")
        for pipeline in options.pipelines:
            for name, words in COMMANDS.items():
                print_row(name, pipeline, *compare(ours, theirs, words, words, pipeline, options))
        print_header("One BF.ADD against SETBIT; a client-side filter at 1 % needs seven of them")
        ours.command("BF.RESERVE", "filter", "0.01", 10_000_000)
        for pipeline in options.pipelines:
            words = ["BF.ADD", "filter", "item:__rand_int__"]
            our, their = compare(ours, theirs, words, COMMANDS["SETBIT"], pipeline, options)
            print_row("BF.ADD / one SETBIT", pipeline, our, their)
            print_row("BF.ADD / seven SETBITs", pipeline, our, (their[0] / 7, their[1] * 7))
    finally:
        ours.stop()
        theirs.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="turns per server and figure")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the requests")
    parser.add_argument("--pipelines", type=int, nargs="+", default=[1, 16, 350],
                        choices=[1, 16, 350])
    parser.add_argument("--pin", type=int, help="processor for the servers")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
