# SPDX-License-Identifier: MIT
"""What the tests of replicas share: pairs of servers, and waiting until one is as the other."""

import time

from harness import ServerTest, wait_until

DEBUG = ("--enable-debug-command", "yes")  # of servers that are asked for a digest


def info(connection, section="replication"):
    """The fields of one section of INFO."""
    text = connection.call("INFO", section).decode()
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


def digest(connection):
    """Of all that a server started with DEBUG holds."""
    return connection.call("DEBUG", "DIGEST").decode()  # not of an error


def offset(connection):
    return int(info(connection)["master_repl_offset"])


class ReplicaTest(ServerTest):
    def connect(self, server):
        connection = server.connect()
        self.addCleanup(connection.close)
        return connection

    def follow(self, replica, port):
        self.assertEqual(replica.call("REPLICAOF", "127.0.0.1", port), b"OK")

    def wait_for_link(self, replica, timeout_s=30):
        wait_until(
            lambda: info(replica)["master_link_status"] == "up", timeout_s, "the link to the leader"
        )

    def wait_until_deleted_what_expired(self, connection):
        """In the database of the connection: KEYS shows only what still lives, DBSIZE and DIGEST
        count all that is there."""
        wait_until(
            lambda: connection.call("DBSIZE") == len(connection.call("KEYS", "*")),
            what="the active expiry",
        )

    def wait_until_equal_offsets(self, leader, *replicas, timeout_s=60):
        """Nobody writes any more, but the leader's PINGs move it too."""
        deadline = time.monotonic() + timeout_s
        for replica in replicas:
            while True:
                wanted = offset(leader)
                fields = info(replica)
                is_up = fields["master_link_status"] == "up"
                if is_up and int(fields["slave_repl_offset"]) >= wanted:
                    break
                if time.monotonic() > deadline:
                    raise AssertionError(f"offset {wanted} was not reached: {fields}")
                time.sleep(0.02)
