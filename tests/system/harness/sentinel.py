# SPDX-License-Identifier: MIT
"""A leader, two replicas and one redis-sentinel for each server, for tests of failover.

Each server has its own configuration file. Sentinel sends CONFIG REWRITE after a change of role, so
the file decides the server's role at a restart.
"""

import contextlib
import pathlib
import shutil

from harness import ROOT, SERVER, SLOW, Process, free_port, wait_until
from harness.info import parse_info
from harness.network import create_network
from harness.resp import Connection, ErrorReply

NODES = 3
NAME = "bloom"
QUORUM = 2
CONNECT_TIMEOUT_S = 2 * SLOW

PASSWORD = "change-me"
# Directives for tests only. A production server should keep the defaults.
SERVER_EXTRA = {"save": '""', "enable-debug-command": "yes", "repl-diskless-sync-delay": "0"}


def sample(name, changes):
    """Returns the text of the configuration file conf/`name`. `changes` maps directives to other
    values; the value None removes the directive.
    """
    lines = []
    changes = dict(changes)
    used = set()
    for line in (ROOT / "conf" / name).read_text().splitlines():
        word = line.split(" ", 1)[0]
        key = next((key for key in changes if line.startswith(key + " ")), None)
        if key is not None:
            used.add(key)
            if changes[key] is not None:
                lines.append(f"{key} {changes[key]}")
        elif word and word != "#":
            lines.append(line)
    lines += [f"{key} {value}" for key, value in changes.items() if key not in used and value]
    return "".join(line + "\n" for line in lines)


def quietly(ask, *arguments):
    """Returns the result of ask(*arguments); None if the connection that ask() uses fails."""
    with contextlib.suppress(OSError, EOFError):
        return ask(*arguments)
    return None


class Node:
    """One server and its sentinel: their addresses, files and processes."""

    def __init__(self, cluster, index):
        self.index = index
        self.address = cluster.network.addresses[index]
        self.port, self.sentinel_port = free_port(), free_port()
        self.prefix = cluster.network.prefix(index)
        self.directory = cluster.directory / f"node{index}"
        self.sentinel_directory = cluster.directory / f"sentinel{index}"
        for directory in (self.directory, self.sentinel_directory):
            directory.mkdir()
        self.config_file = self.directory / "server.conf"
        self.sentinel_file = self.sentinel_directory / "sentinel.conf"
        self.process = self.sentinel = None

    def start(self):
        self.process = Process(
            SERVER,
            listen=False,
            prefix=self.prefix,
            directory=self.directory,
            config_file=self.config_file,
        )
        # A failover causes many kinds of warnings, so all are accepted.
        self.process.expect_log(".*")
        self.process.wait_until_ready()

    def start_sentinel(self):
        self.sentinel = Process(
            shutil.which("redis-sentinel"),
            listen=False,
            prefix=self.prefix,
            directory=self.sentinel_directory,
            config_file=self.sentinel_file,
        )
        self.sentinel.expect_log(".*")

    def connect(self):
        connection = Connection(self.port, host=self.address, timeout_s=CONNECT_TIMEOUT_S)
        connection.call("AUTH", PASSWORD)
        return connection

    def call(self, *command):
        with self.connect() as connection:
            return connection.call(*command)

    def write_files(self, leader, changes, sentinel_changes):
        follows = None if self is leader else f"{leader.address} {leader.port}"
        changes = {
            "bind": self.address, "port": self.port, "replicaof": follows,
            **SERVER_EXTRA, **changes,
        }  # fmt: skip
        self.config_file.write_text(sample("replica.conf", changes))
        changes = {
            "bind": self.address,
            "port": self.sentinel_port,
            f"sentinel monitor {NAME}": f"{leader.address} {leader.port} {QUORUM}",
            **sentinel_changes,
        }
        self.sentinel_file.write_text(sample("sentinel.conf", changes))

    def ask_sentinel(self, *command):
        with Connection(
            self.sentinel_port, host=self.address, timeout_s=CONNECT_TIMEOUT_S
        ) as connection:
            return connection.call("SENTINEL", *command)

    def info(self):
        return parse_info(self.call("INFO", "replication"))


class Cluster:
    def __init__(self, directory, changes=(), sentinel_changes=()):
        """`changes` and `sentinel_changes` are directives with values, for the servers and for the
        sentinels.
        """
        self.directory = pathlib.Path(directory)
        self.network = create_network(NODES)
        self.nodes = [Node(self, index) for index in range(NODES)]
        for node in self.nodes:
            node.write_files(self.nodes[0], dict(changes), dict(sentinel_changes))

    def start(self):
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.start_sentinel()

    def stop(self):
        """Stops all processes. Returns the problems that Process.stop() reports."""
        problems = []
        for node in self.nodes:
            for process in (node.sentinel, node.process):
                if process is not None:
                    process.resume()
                    problems += process.stop()
        self.network.close()
        return problems

    def sentinel_addresses(self):
        return [(node.address, node.sentinel_port) for node in self.nodes]

    def leader_known_to(self, node):
        """Returns the leader that this node's sentinel names; None if the sentinel names none."""
        reply = node.ask_sentinel("GET-MASTER-ADDR-BY-NAME", NAME)
        if not isinstance(reply, list):
            return None
        address = (reply[0].decode(), int(reply[1]))
        return next(one for one in self.nodes if (one.address, one.port) == address)

    def problem(self, leaders):
        """Returns the reason why the cluster is incomplete, in words; None if it is complete.
        `leaders` is the set of leaders that the sentinels name.
        """
        if len(leaders) != 1 or None in leaders:
            return f"the sentinels name {len(leaders)} leaders"
        (leader,) = leaders
        info = leader.info()
        if info["role"] != "master":
            return "the leader calls itself a replica"
        online = [key for key in info if key.startswith("slave") and "state=online" in info[key]]
        if len(online) != NODES - 1:
            return f"{len(online)} replicas are online"
        for node in self.nodes:
            if node is not leader:
                own = node.info()
                upstream = (own.get("master_host"), own.get("master_port"))
                if own["role"] != "slave" or own["master_link_status"] != "up":
                    return f"node {node.index} is {own['role']}, {own.get('master_link_status')}"
                if upstream != (leader.address, str(leader.port)):
                    return f"node {node.index} follows {upstream}"
            if trouble := self.sentinels_trouble(node):
                return trouble
        return None

    def sentinels_trouble(self, node):
        for what in ("REPLICAS", "SENTINELS"):
            peers = node.ask_sentinel(what, NAME)
            if isinstance(peers, ErrorReply) or len(peers) != NODES - 1:
                return f"sentinel {node.index} knows not all {what}"
            for peer in peers:
                flags = dict(zip(peer[::2], peer[1::2]))[b"flags"]
                if b"down" in flags or b"disconnected" in flags:
                    return f"sentinel {node.index} calls one of {what} {flags.decode()}"
        return None

    def wait_until_whole(self):
        """Waits until all sentinels name the same leader and all replicas follow this leader.
        Returns the leader.
        """
        leaders = trouble = None

        def is_whole():
            nonlocal leaders, trouble
            try:
                leaders = {self.leader_known_to(node) for node in self.nodes}
                trouble = self.problem(leaders)
            except (OSError, EOFError) as error:
                trouble = str(error)
            return trouble is None

        wait_until(is_whole, lambda: f"the end of this: {trouble}", poll_every_s=0.1)
        return leaders.pop()

    def wait_until_equal(self, leader):
        """Waits until every node holds the leader's data. REQUIRES: no client writes."""

        def digests():
            return {node.call("DEBUG", "DIGEST").decode() for node in self.nodes}

        wait_until(lambda: len(quietly(digests) or ()) == 1, "equality of the three data sets")
        return leader.call("DBSIZE")
