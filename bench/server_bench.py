#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares bloomery-server with redis-server in one run: throughput and server CPU per operation.

Machines are noisy, so both servers run at the same time and the load alternates between them.
Figures are medians of the rounds. The last column is the CPU time of bloomery-server divided by
that of redis-server; below 1, bloomery-server is cheaper. The kernel accounts the CPU time of all
threads of a server process, which includes parsing, replies and sockets. CPU time of the load
generator (redis-benchmark) does not count. At high pipeline depth the load generator limits the
throughput.
"""
import argparse
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

from figures import Figures
from harness import free_port


class Server:
    """Runs a server process and measures its CPU time. If `cores` is not None, all its threads run
    on these processors only.
    """

    def __init__(self, name, command, cores, persistence=("--appendonly", "no")):
        self.name = name
        self.port = free_port()
        self.directory = tempfile.mkdtemp(prefix="bloomery-bench-")
        self.full = command + ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                               *persistence, "--dir", self.directory]
        self.cores = cores
        self.restart()

    def restart(self):
        self.process = subprocess.Popen(
            self.full, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: self.cores and os.sched_setaffinity(0, self.cores))
        self._wait()

    def _wait(self):
        """Waits until the server executes commands, because it may first load data."""
        for _ in range(1200):
            try:
                if self.command("PING") == "+PONG" and self.command("DBSIZE").startswith(":"):
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} ended at start")
            time.sleep(0.05)
        raise SystemExit(f"{self.name} does not serve")

    def cpu_ns(self):
        """Returns the CPU time in ns that the Linux scheduler has accounted to the live threads."""
        total = 0
        tasks = f"/proc/{self.process.pid}/task"
        for task in os.listdir(tasks):
            try:
                with open(f"{tasks}/{task}/schedstat", encoding="ascii") as file:
                    total += int(file.read().split()[0])
            except FileNotFoundError:
                pass  # this thread ended after os.listdir() had found it
        return total

    def command(self, *words):
        """Sends one command; returns the first line of its raw reply."""
        with socket.create_connection(("127.0.0.1", self.port), 60) as connection:
            connection.sendall(encode(*words))
            return connection.makefile("rb").readline().decode().strip()

    def bulk(self, *words):
        with socket.create_connection(("127.0.0.1", self.port), 60) as connection:
            connection.sendall(encode(*words))
            stream = connection.makefile("rb")
            return stream.read(int(stream.readline()[1:])).decode()

    def info(self, field, section="everything"):
        """Returns the value of an integer field of INFO."""
        for line in self.bulk("INFO", section).splitlines():
            if line.startswith(field + ":"):
                return int(line.split(":")[1])
        raise SystemExit(f"INFO has no {field}")

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
    # The bit offset is fixed. redis-benchmark pads random numbers with leading zeros, which both
    # servers reject in an offset.
    "SETBIT": ["SETBIT", "bits:__rand_int__", "100", "1"],
}
KEYSPACE = 1_000_000
CLIENTS = 50


def requests_for(pipeline, scale):
    return max(20_000, int({1: 100_000, 16: 1_000_000, 350: 3_000_000}[pipeline] * scale))


def compare(ours, theirs, words, other_words, pipeline, options):
    """Sends `words` to `ours` and `other_words` to `theirs`, alternately. Returns the median (rate,
    CPU ns) of each server.
    """
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


class OurServer(Server):
    def __init__(self, options, *more, **keywords):
        binary = os.environ.get("BLOOMERY_SERVER", "build/release/bloomery-server")
        super().__init__("bloomery",
                         [binary, "--io-threads", "1", "--loglevel", "warning", *more],
                         options.pin, **keywords)

    def replies(self, requests, batch=200):
        """Sends many requests in pipelines; returns the first line of each reply."""
        lines = []
        with socket.create_connection(("127.0.0.1", self.port), 60) as connection:
            stream = connection.makefile("rb")
            for start in range(0, len(requests), batch):
                part = requests[start:start + batch]
                connection.sendall(b"".join(encode(*request) for request in part))
                lines += [stream.readline().decode().strip() for _ in part]
        return lines

    def filter_field(self, key, field):
        """Returns the value of an integer field of BF.INFO."""
        with socket.create_connection(("127.0.0.1", self.port), 60) as connection:
            connection.sendall(encode("BF.INFO", key, field))
            stream = connection.makefile("rb")
            stream.readline()
            return int(stream.readline()[1:])


def encode(*words):
    request = b"*%d\r\n" % len(words)
    for word in words:
        word = str(word).encode()
        request += b"$%d\r\n%s\r\n" % (len(word), word)
    return request


def fill_keys(server, count, request_of):
    """Sends request_of(0) to request_of(count - 1) in pipelines of 500. Each reply must be a single
    line.
    """
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        stream = connection.makefile("rb")
        for start in range(0, count, 500):
            part = range(start, min(start + 500, count))
            connection.sendall(b"".join(request_of(i) for i in part))
            for _ in part:
                stream.readline()


BATCH = 100


def batch_cost(server, command, key, requests, prefix, rounds):
    """Sends commands with BATCH random items each, at pipeline depth 16. Returns the server's CPU
    time per item in ns, as the median of the rounds.
    """
    words = [command, key] + [prefix + "__rand_int__"] * BATCH
    costs = [server.load(words, requests, 16, 20, 999_999_999)[1] / BATCH for _ in range(rounds)]
    return statistics.median(costs)


def bench_commands(options):
    ours = OurServer(options)
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


SETBIT_STRING_BYTES = 120_000_000


def setbit_cost(server, requests):
    """Sends SETBITs with random offsets in a string of 120 MB, at pipeline depth 350. Returns the
    server's CPU time per SETBIT in ns. redis-benchmark cannot send these commands: it pads random
    numbers with zeros, which SETBIT rejects in offsets.
    """
    rng = random.Random(350)
    server.command("SETBIT", "bits", SETBIT_STRING_BYTES * 8 - 1, 1)
    pipelines = [b"".join(encode("SETBIT", "bits", rng.randrange(SETBIT_STRING_BYTES * 8), 1)
                          for _ in range(350)) for _ in range(requests // 350)]
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        before = server.cpu_ns()
        for pipeline in pipelines:
            connection.sendall(pipeline)
            replies = b""
            while replies.count(b"\n") < 350:
                replies += connection.recv(65536)
        return (server.cpu_ns() - before) / (350 * len(pipelines))


def add_cost(server, requests, rounds):
    """Returns the server's CPU time in ns of a BF.ADD at pipeline depth 350."""
    words = ["BF.ADD", "big", "item:__rand_int__"]
    return statistics.median(server.load(words, requests, 350, CLIENTS, 999_999_999)[1]
                             for _ in range(rounds))


def bench_batches(options):
    print(f"\nBatches of {BATCH} on a filter of 100 M at 1 %, pipeline 16: server CPU per item")
    module = redisbloom_module()
    ours = OurServer(options)
    command = ["redis-server", "--loglevel", "warning"]
    theirs = Server("redis", command + (["--loadmodule", module] if module else []), options.pin)
    try:
        requests = int(40_000 * options.scale)
        filters = [ours, theirs] if module else [ours]
        for server in filters:
            server.command("BF.RESERVE", "big", "0.01", 100_000_000)
            # Touches all pages of the filter, so that no page fault is measured.
            batch_cost(server, "BF.MADD", "big", 20_000, "warm:", 1)
        setbit = setbit_cost(theirs, int(1_000_000 * options.scale))
        print(f"SETBIT of redis-server, pipeline 350: {setbit:.0f} ns")
        for name in ("MADD", "MEXISTS"):
            # BF.MEXISTS looks up items that were never added.
            costs = [batch_cost(server, f"BF.{name}", "big", requests,
                                "item:" if name == "MADD" else "absent:", options.rounds)
                     for server in filters]
            options.results.add(f"batches/{name}/setbit", costs[0] / setbit)
            line = f"BF.{name:<9} {costs[0]:6.0f} ns, {costs[0] / setbit:.3f} of that SETBIT"
            if module:
                options.results.add(f"batches/{name}/redisbloom", costs[0] / costs[1])
                line += f", {costs[0] / costs[1]:.3f} of RedisBloom's {costs[1]:.0f} ns"
            print(line, flush=True)
        costs = [add_cost(server, 40 * requests, options.rounds) for server in filters]
        line = f"BF.ADD, pipeline 350: {costs[0]:.0f} ns"
        if module:
            options.results.add("batches/ADD/redisbloom", costs[0] / costs[1])
            line += f", {costs[0] / costs[1]:.3f} of RedisBloom's {costs[1]:.0f} ns"
        print(line, flush=True)
    finally:
        ours.stop()
        theirs.stop()


def bench_memory(options):
    print("\nMemory")
    ours = OurServer(options)
    try:
        # INFO allocates buffers that must not count as memory of filters. So INFO runs many times
        # before the first measurement.
        for _ in range(300):
            before = ours.info("used_memory")
        count = 10_000
        ours.replies([("BF.RESERVE", f"f:{i:05}", "0.01", 100) for i in range(count)])
        each = (ours.info("used_memory") - before) / count
        print(f"10,000 filters of 100 at 1 %: {each:.0f} bytes each, key included")
        ours.command("BF.RESERVE", "ten-million", "0.01", 10_000_000)
        bits = ours.filter_field("ten-million", "SIZE") * 8 / 10_000_000
        print(f"10 M items at 1 %: {bits:.2f} bits per item", flush=True)
    finally:
        ours.stop()


def fill(server, key, count):
    """Adds items until the filter counts `count` items (field ITEMS of BF.INFO)."""
    done = 0
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        stream = connection.makefile("rb")
        while (missing := count - server.filter_field(key, "ITEMS")) > 0:
            size = min(missing, 50_000)
            connection.sendall(encode("BF.MADD", key, *range(done, done + size)))
            done += size
            for _ in range(size + 1):
                stream.readline()


def bench_growth(options):
    print("\nA filter grown to 1 M items at 1 %, against a right-sized one")
    ours = OurServer(options)
    try:
        count = 1_000_000
        for key, capacity in (("right", count), ("from-1000", 1000), ("from-100", 100)):
            ours.command("BF.RESERVE", key, "0.01", capacity)
            fill(ours, key, count)
        requests = int(20_000 * options.scale)
        figures = {}
        for _ in range(options.rounds):
            for key in ("right", "from-1000", "from-100"):
                cost = batch_cost(ours, "BF.MEXISTS", key, requests, "absent:", 1)
                figures.setdefault(key, []).append(cost)
        right = statistics.median(figures["right"])
        for key, costs in figures.items():
            cost = statistics.median(costs)
            options.results.add(f"growth/{key}/batch", cost / right)
            bits = ours.filter_field(key, "SIZE") * 8 / count
            absent = [["BF.MEXISTS", key] + [f"gone:{n}" for n in range(i * BATCH, (i + 1) * BATCH)]
                      for i in range(2000)]
            found = count_ones(ours, absent)
            print(f"{key:<10} layers {ours.filter_field(key, 'FILTERS'):>2}  {bits:5.2f} bits per "
                  f"item  MEXISTS x{BATCH} absent {cost:5.0f} ns per item ({cost / right:.2f}x)  "
                  f"error {found / (len(absent) * BATCH):.4%}", flush=True)
        singles = {}
        for _ in range(options.rounds):
            for key in figures:
                cost = ours.load(["BF.EXISTS", key, "absent:__rand_int__"], 50 * requests, 350,
                                 CLIENTS, 999_999_999)[1]
                singles.setdefault(key, []).append(cost)
        right = statistics.median(singles["right"])
        for key, costs in singles.items():
            cost = statistics.median(costs)
            options.results.add(f"growth/{key}/single", cost / right)
            print(f"{key:<10} BF.EXISTS absent, pipeline 350: {cost:5.0f} ns ({cost / right:.2f}x)",
                  flush=True)
    finally:
        ours.stop()


def count_ones(server, requests):
    ones = 0
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        stream = connection.makefile("rb")
        for request in requests:
            connection.sendall(encode(*request))
            stream.readline()
            ones += sum(stream.readline() == b":1\r\n" for _ in range(BATCH))
    return ones


def bench_sparse(options):
    capacity = 200_000_000
    print(f"\nMemory behind a filter of {capacity // 1_000_000} M items at 1 %, by items added")
    ours = OurServer(options)
    try:
        ours.command("BF.RESERVE", "sparse", "0.01", capacity)
        for share in (1e-5, 1e-4, 1e-3, 1e-2):
            fill(ours, "sparse", int(capacity * share))
            resident = ours.info("mem_filter_arrays_resident")
            reserved = ours.info("mem_filter_arrays_reserved")
            count = int(capacity * share)
            print(f"{count:>9,} items ({share * 100:g} %): {resident / 1e6:6.1f} MB of "
                  f"{reserved / 1e6:.1f} MB ({resident / reserved:.1%})", flush=True)
    finally:
        ours.stop()


def creation_cost(server, words, requests, seed):
    """Sends the command `words` with a new key each time. Returns the server's CPU time per command
    in ns.
    """
    batch = 200
    parts = []
    for start in range(0, requests, batch):
        lines = [[word.replace("KEY", f"{seed}:{i:08}") for word in words]
                 for i in range(start, min(start + batch, requests))]
        parts.append(b"".join(encode(*line) for line in lines))
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        stream = connection.makefile("rb")
        before = server.cpu_ns()
        for part in parts:
            connection.sendall(part)
            for _ in range(batch):
                stream.readline()
        return (server.cpu_ns() - before) / requests


def redisbloom_module():
    """Returns the path of RedisBloom's module; None if it is not installed."""
    places = [os.environ.get("REDISBLOOM_MODULE", ""), "/usr/lib/redis/modules/redisbloom.so",
              "/opt/redis-stack/lib/redisbloom.so"]
    return next((place for place in places if place and os.path.exists(place)), None)


def bench_creation(options):
    module = redisbloom_module()
    print("\nMaking filters, one per key, pipelines of 200: server CPU each")
    ours = OurServer(options)
    command = ["redis-server", "--loglevel", "warning"]
    theirs = Server("redis", command + (["--loadmodule", module] if module else []), options.pin)
    requests = int(100_000 * options.scale) // 200 * 200
    cases = {"BF.ADD": ["BF.ADD", "a:KEY", "item"],
             "BF.RESERVE": ["BF.RESERVE", "r:KEY", "0.01", "1000"]}
    other = "RedisBloom" if module else "SET of a new key, redis-server (RedisBloom is missing)"
    try:
        for name, words in cases.items():
            costs = {ours: [], theirs: []}
            for turn in range(options.rounds):
                for server in (ours, theirs):
                    is_set = server is theirs and not module
                    line = ["SET", "s:KEY", "value"] if is_set else words
                    costs[server].append(creation_cost(server, line, requests, turn))
                    server.command("FLUSHALL")
            our, their = (statistics.median(costs[server]) for server in (ours, theirs))
            print(f"{name:<12} {our:6.0f} ns, {other}: {their:6.0f} ns ({our / their:.2f}x)",
                  flush=True)
    finally:
        ours.stop()
        theirs.stop()


FRIENDS = 100
SONGS = 100


def reply_size(server, *words):
    """Returns the size in bytes of the reply to one command."""
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        connection.sendall(encode(*words) + encode("PING"))
        reply = b""
        while not reply.endswith(b"+PONG\r\n"):
            reply += connection.recv(1 << 16)
    return len(reply) - len(b"+PONG\r\n")


def many_costs(server, words, requests, options, each=1):
    """Returns the server's CPU time in µs for `each` commands, as the median of the rounds. The
    pipeline depth is 16 if `each` is 1, and 100 otherwise.
    """
    pipeline = 100 if each > 1 else 16
    return statistics.median(server.load(words, requests, pipeline, 10, SONGS)[1] * each / 1000
                             for _ in range(options.rounds))


def bench_many(options):
    print(f"\nOne song of {FRIENDS} friends, each with a filter of {SONGS} songs at 1 %")
    ours = OurServer(options)
    friends = [f"friend:{i:012}" for i in range(FRIENDS)]
    songs = [f"song:{i:012}" for i in range(SONGS)]
    try:
        for friend in friends:
            ours.command("BF.RESERVE", friend, "0.01", SONGS, "NONSCALING")
        ours.command("BF.KADD", FRIENDS, *friends, *songs[::2])
        bits = sum(ours.filter_field(friend, "SIZE") - 48 for friend in friends)
        print(f"{'bytes of the bits of all filters':<44} {bits:8,}")
        for count in (1, SONGS):
            words = ["BF.KEXISTS", FRIENDS, *friends, *songs[:count]]
            sizes = len(encode(*words)), reply_size(ours, *words)
            singles = FRIENDS * sum((len(encode("BF.EXISTS", friends[0], song)) + 4)
                                    for song in songs[:count])
            print(f"{f'bytes on the wire, {FRIENDS} filters x {count}':<44} {sum(sizes):8,}"
                  f"  (request {sizes[0]:,}, reply {sizes[1]:,}; {singles:,} as BF.EXISTS)")
        requests = max(2000, int(20_000 * options.scale))
        song = "song:__rand_int__"
        for name, words in (("BF.KEXISTS", ["BF.KEXISTS", str(FRIENDS), *friends, song]),
                            ("BF.KADD, items that are there",
                             ["BF.KADD", str(FRIENDS), *friends, songs[0]])):
            cost = many_costs(ours, words, requests, options)
            print(f"{f'us per {name}, {FRIENDS} x 1':<44} {cost:8.2f}", flush=True)
        words = ["BF.EXISTS", "friend:__rand_int__", song]
        cost = many_costs(ours, words, 50 * requests, options, each=FRIENDS)
        print(f"{f'us per {FRIENDS} pipelined BF.EXISTS':<44} {cost:8.2f}")
        words = ["BF.KEXISTS", str(FRIENDS), *friends, *songs]
        cost = many_costs(ours, words, max(200, requests // 20), options)
        print(f"{f'us per BF.KEXISTS, {FRIENDS} x {SONGS}':<44} {cost:8.2f}", flush=True)
    finally:
        ours.stop()


SECTIONS = {
    "commands": bench_commands,
    "batches": bench_batches,
    "memory": bench_memory,
    "sparse": bench_sparse,
    "creation": bench_creation,
    "growth": bench_growth,
    "many": bench_many,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="turns per server and figure")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the requests")
    parser.add_argument("--pipelines", type=int, nargs="+", default=[1, 16, 350],
                        choices=[1, 16, 350])
    parser.add_argument("--pin", type=int, nargs="+", help="processors for the servers")
    parser.add_argument("--only", nargs="+", default=list(SECTIONS), choices=list(SECTIONS))
    Figures.add_option(parser)
    options = parser.parse_args()
    options.results = Figures()
    for section in options.only:
        SECTIONS[section](options)
    options.results.write(options.figures)


if __name__ == "__main__":
    main()
