# SPDX-License-Identifier: MIT
"""Shared parts of replication tests: connect a replica to its leader, and wait until both have the
same offset.
"""

from harness import ServerTest, wait_until
from harness.info import info

DEBUG = ("--enable-debug-command", "yes")  # options with which a server allows DEBUG DIGEST


def digest(connection):
    """Returns the digest of all data of a server that was started with the options in DEBUG."""
    return connection.call("DEBUG", "DIGEST").decode()  # decode() fails if the reply is an error


def offset(connection):
    return int(info(connection)["master_repl_offset"])


class ReplicaTest(ServerTest):
    def connect(self, server):
        connection = server.connect()
        self.addCleanup(connection.close)
        return connection

    def follow(self, replica, port):
        self.assertEqual(replica.call("REPLICAOF", "127.0.0.1", port), b"OK")

    def wait_for_writes(self, writers, more):
        """Waits until the writers together have made `more` further writes. The attribute `count`
        of a writer is the number of its writes.
        """
        end = sum(writer.count for writer in writers) + more
        wait_until(
            lambda: sum(writer.count for writer in writers) >= end,
            lambda: f"{end - sum(writer.count for writer in writers)} of {more} writes",
            poll_every_s=0.005,
        )

    def wait_for_link(self, replica):
        wait_until(
            lambda: info(replica)["master_link_status"] == "up", "the link to the leader"
        )

    def wait_until_deleted_what_expired(self, connection):
        """Waits until the server has deleted all expired keys of the selected database. KEYS shows
        only live keys, but DBSIZE and DEBUG DIGEST also cover expired ones.
        """
        wait_until(
            lambda: connection.call("DBSIZE") == len(connection.call("KEYS", "*")),
            what="the active expiry",
        )

    def wait_until_offset(self, replica, wanted):
        """Waits until the replica has executed the leader's stream up to the offset `wanted`."""
        wait_until(lambda: offset(replica) >= wanted, lambda: f"{wanted} in {info(replica)}")

    def wait_until_equal_offsets(self, leader, *replicas):
        """Waits until each replica has the leader's current offset. REQUIRES: no client writes. The
        leader's PINGs increase the offset during the wait, so the method reads the offset before
        each comparison.
        """

        def has_all(replica):
            wanted = offset(leader)
            fields = info(replica)
            is_up = fields["master_link_status"] == "up"
            return is_up and int(fields["slave_repl_offset"]) >= wanted

        for replica in replicas:
            wait_until(
                lambda one=replica: has_all(one),
                lambda one=replica: f"the leader's offset {offset(leader)} in {info(one)}",
            )
