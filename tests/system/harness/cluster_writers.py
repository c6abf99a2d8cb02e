# SPDX-License-Identifier: MIT
"""Clients that write numbered items to every shard of a cluster and log the acknowledgements.

The clients are python3-redis, ioredis, node-redis and redis-cli, each in its own process.

A writer prints a line for each attempt, with times of CLOCK_MONOTONIC, which all processes of a
machine share: `ack LANE NUMBER SENT_NS ACKED_NS PORT` or `error LANE NS TEXT`. A lane is a sequence
of writes to one shard; a writer runs its lanes in parallel. PORT is 0 if the client library does
not show which server answered.

Usage: cluster_writers.py redis-py|redis-py-defaults|redis-cli|loyal NAME LANES HOST:PORT...
LANES are numbers of lanes, separated by commas. The kind `redis-py-defaults` uses the library's
default timeouts and retries. The kind `loyal` always writes to the same server.
"""

import logging
import os
import queue
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

import redis
from redis.cluster import ClusterNode
from harness.node import SCRIPTS, node
from harness.resp import Connection
from harness.settings import module_command
from harness.waiting import DEADLINE_S, pace

# One hash tag for each lane (the writes to one shard). The slots of the tags are in the first,
# second and last third of all slots.
TAGS = ("{b}", "{c}", "{d}")
TIMEOUT_S = 1.5
PAUSE_S = 0.015
PAUSE_AFTER_ERROR_S = 0.05
NODE_SCRIPT = SCRIPTS / "cluster_writer.cjs"


def write_command(name, lane, number):
    """Returns the command that writes item `number`: in turn SET, BF.ADD and SETBIT."""
    key = f"{TAGS[lane]}:{name}"
    if number % 3 == 0:
        return ["SET", f"{key}:{number}", str(number)]
    if number % 3 == 1:
        return ["BF.ADD", f"{key}:f", str(number)]
    return ["SETBIT", f"{key}:b", str(number), "1"]


def read_command(name, lane, number):
    """Returns the command that reads item `number`, and the reply that means that the item is
    stored.
    """
    command, key, *_ = write_command(name, lane, number)
    if command == "SET":
        return ["GET", key], str(number).encode()
    if command == "BF.ADD":
        return ["BF.EXISTS", key, str(number)], 1
    return ["GETBIT", key, str(number)], 1


@dataclass(frozen=True)
class Ack:
    lane: int
    number: int
    sent: float
    at: float
    port: int


class WriterProgram:
    """Runs a program that writes, and collects its acknowledgements and errors. Any thread may read
    the fields.
    """

    def __init__(self, name, command):
        self.name = name
        self.acknowledged = []
        self.errors = []  # tuples (lane, time, text of the error)
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        for line in self.process.stdout:
            kind, lane, *rest = line.rstrip("\n").split(" ", 5 if line.startswith("ack") else 3)
            if kind == "ack":
                number, sent, acked, port = map(int, rest)
                self.acknowledged.append(Ack(int(lane), number, sent / 1e9, acked / 1e9, port))
            else:
                self.errors.append((int(lane), int(rest[0]) / 1e9, rest[1]))

    def last_sent(self, lane):
        """Returns the time when the last acknowledged write to the shard `lane` was sent; 0 if none
        was.
        """
        return next((ack.sent for ack in reversed(self.acknowledged) if ack.lane == lane), 0)

    def first_after(self, lane, moment):
        """Returns the time of the first acknowledgement of a write that was sent to the shard
        `lane` after `moment`; None if there is none.
        """
        found = [ack.at for ack in self.acknowledged if ack.lane == lane and ack.sent > moment]
        return min(found, default=None)

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._thread.join(DEADLINE_S)
        self.process.stdout.close()


def program(kind, name, addresses, lanes=range(len(TAGS))):
    """Returns the command line of a Python writer."""
    lanes = ",".join(map(str, lanes))
    return [*module_command("cluster_writers"), kind, name, lanes, *addresses]


def node_program(kind, modules, name, addresses):
    return [node(), NODE_SCRIPT, kind, modules, name, ",".join(TAGS), *addresses]


# The code below runs in the writers' own processes.


class Clients:
    """The state that the threads of one writer program share. Each thread writes to one shard until
    the program's standard input ends.
    """

    def __init__(self, name):
        self.name = name
        self.is_over = threading.Event()
        self.lock = threading.Lock()

    def say(self, line):
        with self.lock:
            print(line, flush=True)

    def run(self, lane, write):
        """Writes items to the shard `lane`, and prints a line for each attempt. `write` sends a
        command and returns the port of the server that replied, or raises an error.
        """
        number = 0
        while not self.is_over.is_set():
            number += 1
            sent = time.monotonic_ns()
            try:
                port = write(write_command(self.name, lane, number))
                self.say(f"ack {lane} {number} {sent} {time.monotonic_ns()} {port}")
                pace(PAUSE_S)
            except (redis.exceptions.RedisError, redis.exceptions.RedisClusterException,
                    OSError, EOFError, ValueError) as error:  # fmt: skip
                text = f"{type(error).__name__}: {error}".replace("\n", " ")[:200]
                self.say(f"error {lane} {time.monotonic_ns()} {text}")
                pace(PAUSE_AFTER_ERROR_S)


class RedisPy:
    """Writes with python3-redis. After a node of the cluster dies, every call of python3-redis
    4.3.4 fails ("cannot pickle"). Then this class creates a new client, as a supervisor would
    restart a program."""

    OPTIONS = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S}

    def __init__(self, addresses):
        self.addresses = addresses
        self.cluster = None

    def __call__(self, command):
        try:
            if self.cluster is None:
                self.cluster = redis.RedisCluster(
                    startup_nodes=[ClusterNode(host, port) for host, port in self.addresses],
                    **self.OPTIONS,
                )
            self.cluster.execute_command(*command)
        except redis.exceptions.RedisClusterException:
            self.cluster = None
            raise
        except LookupError as error:  # raised by redis-py if the node knows no leader
            self.cluster = None
            raise redis.exceptions.ClusterDownError("the cluster is down") from error
        return 0


class RedisPyDefaults(RedisPy):
    OPTIONS = {}


class RedisCli:
    """Writes with `redis-cli -c`, which reads commands line by line. If redis-cli hangs or has lost
    its server, this class starts a new redis-cli, as a person would do.
    """

    REDIRECTED = re.compile(r"-> Redirected to slot \[\d+\] located at .*:(\d+)")

    def __init__(self, addresses):
        self.addresses = addresses
        self.turn = -1
        self.process = None

    def start(self):
        self.turn += 1
        host, self.port = self.addresses[self.turn % len(self.addresses)]
        self.process = subprocess.Popen(
            ["redis-cli", "-c", "-h", host, "-p", str(self.port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.lines = queue.Queue()
        threading.Thread(
            target=self.read, args=(self.process.stdout, self.lines), daemon=True
        ).start()

    @staticmethod
    def read(stdout, lines):
        for line in stdout:
            lines.put(line.strip())
        lines.put(None)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def __call__(self, command):
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(" ".join(command) + "\n")
            self.process.stdin.flush()
            reply = self.reply()
        except (OSError, queue.Empty) as error:
            self.end()
            raise OSError(f"no reply {error}") from error
        if reply not in ("OK", "0", "1"):
            if reply is None or "onnect" in reply or "closed" in reply:
                self.end()
                raise OSError(reply)
            raise ValueError(f"{reply} from {self.port}")
        return self.port

    def reply(self):
        end = time.monotonic() + TIMEOUT_S
        while True:
            line = self.lines.get(timeout=max(0.001, end - time.monotonic()))
            if line is not None and (found := self.REDIRECTED.match(line)):
                self.port = int(found[1])
            elif line != "":
                return line


class Loyal:
    """Always writes to the same server, like a client that is cut off together with its server."""

    def __init__(self, addresses):
        ((self.host, self.port),) = addresses
        self.connection = None

    def __call__(self, command):
        try:
            if self.connection is None:
                self.connection = Connection(self.port, host=self.host, timeout_s=TIMEOUT_S)
            reply = self.connection.call(*command)
        except (OSError, EOFError):
            if self.connection is not None:
                self.connection.close()
            self.connection = None
            raise
        if reply not in (b"OK", 0, 1):
            raise ValueError(str(reply))
        return self.port


KINDS = {
    "redis-py": RedisPy,
    "redis-py-defaults": RedisPyDefaults,
    "redis-cli": RedisCli,
    "loyal": Loyal,
}


def main(kind, name, lanes, *addresses):
    addresses = [(host, int(port)) for host, port in (one.rsplit(":", 1) for one in addresses)]
    clients = Clients(name)
    # Suppresses the log lines of redis-py about lost connections, and the errors that its
    # destructors raise.
    logging.disable()
    sys.unraisablehook = lambda _: None
    threads = [
        threading.Thread(target=clients.run, args=(int(lane), KINDS[kind](addresses)), daemon=True)
        for lane in lanes.split(",")
    ]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    clients.is_over.set()
    for thread in threads:
        thread.join(5)
    sys.stdout.flush()
    # Ends the process without waiting for threads that hang in a client library.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
