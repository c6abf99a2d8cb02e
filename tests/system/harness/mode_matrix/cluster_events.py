# SPDX-License-Identifier: MIT
"""The events of the mode matrix that happen in a cluster of a leader and a replica, with etcd."""

import json

from harness import wait_until
from harness.mode_matrix.cell_run import KEY_PREFIX
from harness.mode_matrix.events import LOG, Event

NAME = "matrix"
IDS = ("1" * 40, "2" * 40)
TIMEOUT_MS = 2000
TOPOLOGY = f"bloomery/{NAME}/topology"


class ClusterFailover(Event):
    """The leader acknowledges a write only when the replica has it. When the leader is killed, the
    replica takes over with all acknowledged writes. The former leader returns on another port.
    """

    options = LOG
    is_in_cluster = True
    expected_log = ("",)

    def run(self, run):
        etcd = self.start_etcd(run)
        directories = [run.directory() for _ in IDS]
        first, second = (self.start(run, etcd, i, path) for i, path in enumerate(directories))
        self.put_topology(etcd, first, second)
        self.wait_until_leads(first)
        self.wait_for_replica(etcd, second)
        run.fill(first)
        run.check_replica(first, second)
        run.write(first)
        self.end_leader(run, first)
        self.wait_until_leads(second)
        run.check(second)
        run.write(second)
        first = self.start(run, etcd, 0, directories[0])
        self.wait_for_replica(etcd, first)
        run.check_replica(second, first)
        run.end(second)
        run.check_replica(second, first)

    def end_leader(self, run, leader):
        leader.server.crash()

    def start_etcd(self, run):
        etcd = run.test.start_etcd()
        if run.access.etcd_password:
            etcd.enable_auth(run.access.etcd_password)
        return etcd

    def start(self, run, etcd, index, directory):
        login = ()
        if run.access.etcd_password:
            login = ("--cluster-etcd-user", "bloomery",
                     "--cluster-etcd-password", run.access.etcd_password)  # fmt: skip
        return run.start(
            directory, "--cluster-enabled", "yes", "--cluster-name", NAME,
            "--cluster-node-id", IDS[index], "--cluster-node-timeout", TIMEOUT_MS,
            "--cluster-write-acks", "insync", "--cluster-etcd", *etcd.endpoints, *login,
        )  # fmt: skip

    def put_topology(self, etcd, *nodes):
        shard = {"epoch": 1, "leader": IDS[0], "members": IDS, "insync": IDS[:1],
                 "slots": "0-16383"}  # fmt: skip
        addresses = {
            name: {"ip": "127.0.0.1", "host": "", **node.configuration.address(node.port)}
            for name, node in zip(IDS, nodes)
        }
        document = {"format": 1, "shards": {"s1": shard}, "nodes": addresses}
        etcd.control("put", TOPOLOGY, json.dumps(document))

    def wait_until_leads(self, node):
        # A server answers a write only if it leads the shard and all members in sync have the
        # write.
        wait_until(lambda: node.operator.call("DEL", f"{KEY_PREFIX}:none") == 0, "the new leader")

    def wait_for_replica(self, etcd, node):
        """Waits until the replica is in sync. Then the replica's clients send READONLY."""

        def are_all_in_sync():
            text = etcd.control("get", "--print-value-only", TOPOLOGY)
            return len(json.loads(text)["shards"]["s1"]["insync"]) == len(IDS)

        wait_until(are_all_in_sync, "the replica is in sync")
        for client in (node.operator, node.app):
            for _ in client.connections:
                client.run("READONLY")


class ClusterRestart(ClusterFailover):
    """The leader is stopped by SIGTERM, so it hands over to its replica before it ends."""

    def end_leader(self, run, leader):
        run.stop(leader)


CLUSTER_EVENTS = {
    "cluster_failover": ClusterFailover(),
    "cluster_restart": ClusterRestart(),
}
