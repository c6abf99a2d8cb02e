# SPDX-License-Identifier: MIT
"""One run of a cell of the mode matrix: its servers, its clients, and its model.

Every server of a cell has the same simulated wall clock.
"""

import dataclasses
import pathlib
import random
import shutil
import tempfile

from harness import Process, free_port, wait_until_loaded
from harness.resp import ErrorReply
from harness.preloads import SimulatedClock

# All keys of a cell have the same hash tag, so they share a slot. The simulated clock is ahead of
# every real clock. So a replica that is a redis-server, which has a real clock, expires no key by
# itself.
KEY_PREFIX = "{cell}"
START_MS = 4_000_000_000_000
COMMON = ("--enable-debug-command", "yes")


def errors_in(reply):
    if isinstance(reply, list):
        return [error for one in reply for error in errors_in(one)]
    return [reply] if isinstance(reply, ErrorReply) else []


class Client:
    """One or more connections that are used in turn, so that all I/O threads of a server get
    commands.
    """

    def __init__(self, connections, names):
        self.connections = connections
        self.names = names  # maps a command's original name to its name after rename-command

    def call(self, name, *words):
        """Sends a command. The connections take turns. Returns the reply, which may be an error."""
        self.connections.append(self.connections.pop(0))
        return self.connections[0].call(self.names.get(name, name), *words)

    def run(self, *command):
        """Sends a command as call() does. Returns the reply, which must contain no error."""
        reply = self.call(*command)
        assert not errors_in(reply), f"{str(command)[:200]}: {reply}"
        return reply

    def run_transaction(self, *commands):
        one = Client(self.connections[:1], self.names)
        for command in (("MULTI",), *commands):
            one.run(*command)
        return one.run("EXEC")


@dataclasses.dataclass
class Node:
    """A server of a cell, and its two clients: an application, and an operator with all rights."""

    server: Process
    port: int
    configuration: object
    operator: Client = None
    app: Client = None


class CellRun:
    """Owns the resources of a cell. `test` is a ReplicaTest, which stops the servers when it ends.
    """

    def __init__(self, test, cell, features, seed, refusal=None):
        """If the server must reject the event, `refusal` is the pattern of the error, else None."""
        self.test = test
        self.cell = cell
        self.refusal = refusal
        self.rng = random.Random(f"{seed}/{cell}")
        self.configuration = features["configuration"][cell.configuration]
        self.access = features["access"][cell.access]
        self.event = features["event"][cell.event]
        self.clock = SimulatedClock(START_MS)
        test.addCleanup(self.clock.close)
        kind = features["kind"][cell.kind]
        self.kind_options = kind.options
        self.model = kind.model(self)

    def directory(self):
        path = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-cell-"))
        self.test.addCleanup(shutil.rmtree, path, ignore_errors=True)
        return path

    # The methods below start and stop the servers of a cell.

    def options(self, port, configuration):
        return [
            *COMMON, "--io-threads", self.cell.threads, *self.kind_options, *self.event.options,
            *self.access.options, *configuration.options(self.test, port),
        ]  # fmt: skip

    def start(self, directory, *more, configuration=None):
        """Starts a server of the cell, and waits until it has loaded the files of the directory."""
        configuration = configuration or self.configuration
        port = free_port()
        server = self.test.start_server(
            *self.options(port, configuration), *more,
            port=port, directory=directory, prefix=self.clock.prefix,
        )  # fmt: skip
        for line in self.event.expected_log:
            server.expect_log(line)
        node = Node(server, port, configuration)
        node.operator = self.log_in(node, "operator", 1)
        node.app = self.log_in(node, "app", int(self.cell.threads))
        return node

    def start_replica(self, directory):
        return self.start(directory, configuration=self.configuration.of_replicas)

    def launch(self, directory):
        """Starts a server without waiting until it is ready. The caller must end it."""
        port = free_port()
        options = self.options(port, self.configuration)
        return self.test.launch(*options, port=port, directory=directory, prefix=self.clock.prefix)

    def log_in(self, node, user, count):
        """Returns a client with `count` connections of this user, once the server has loaded its
        data.
        """
        names = node.configuration.names
        connections = [node.configuration.connect(self.test, node.port) for _ in range(count)]
        for connection in connections:
            self.test.addCleanup(connection.close)
            client = Client([connection], names)
            self.access.log_in(client, user)
            wait_until_loaded(client)
            self.select_database(node, client)
        return Client(connections, names)

    def select_database(self, node, client):
        if node.configuration.database and not self.event.is_in_cluster:
            client.run("SELECT", node.configuration.database)

    def stop(self, node):
        """Stops the server by SIGTERM. Checks its exit status, and that its log has no unexpected
        warning.
        """
        problems = node.server.stop()
        self.test.assertFalse(problems, "\n".join(map(str, problems)))

    # The methods below change and check the data.

    def fill(self, node, rounds=5):
        self.model.begin(node.app)
        for _ in range(rounds):
            self.write(node)
        self.check(node)

    def write(self, node):
        """Advances the simulated clock, so that keys expire and windows rotate. Then writes data.
        """
        self.clock.advance(self.model.STEP_MS)
        self.model.write(node.app)
        node.configuration.disturb(self, node)

    def contents(self, node):
        """Waits until the server has deleted expired keys. Returns a digest or a dictionary of its
        data, to compare with a replica or with the restarted server.
        """
        self.test.wait_until_deleted_what_expired(node.operator)
        return node.configuration.contents(self, node)

    def check(self, node, expected=None):
        """Checks that the server's data agree with the model, and equal `expected` if it is given.
        """
        self.model.check(node.app)
        if expected is not None:
            node.configuration.compare(self.test, expected, self.contents(node))

    def check_replica(self, leader, *replicas):
        """Checks that every replica has the data of its leader, and that these data agree with the
        model.
        """
        expected = self.contents(leader)
        self.test.wait_until_equal_offsets(
            leader.operator, *(replica.operator for replica in replicas)
        )
        for node in (leader, *replicas):
            self.check(node, expected)

    def end(self, node):
        """Checks that the server still accepts writes, and still enforces the users' rights and the
        options of its configuration.
        """
        self.clock.advance(self.model.STEP_MS)
        self.check(node)
        self.write(node)
        self.check(node)
        self.access.check(self, node)
        node.configuration.check(self, node)

    # The methods below set up replication.

    def follow(self, replica, port):
        self.test.follow(replica.operator, port)
        self.test.wait_for_link(replica.operator)
