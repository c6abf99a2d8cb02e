# SPDX-License-Identifier: MIT
"""Starts clusters of several servers for the system tests: ours with etcd, Redis' own."""

import json

import redis
from etcd import EtcdTest
from harness import ServerTest, wait_until

SLOTS = 16384
NAME = "test"
TOPOLOGY = f"bloomery/{NAME}/topology"


def equal_ranges(parts):
    """As redis-cli --cluster create cuts the slots."""
    per_part = SLOTS / parts
    ends = [round(per_part * (i + 1)) - 1 for i in range(parts - 1)] + [SLOTS - 1]
    return list(zip([0] + [end + 1 for end in ends[:-1]], ends))


class ClusterTest(EtcdTest, ServerTest):
    """A test case that starts clusters."""

    def start_node(self, etcd, index, *options, **more):
        """A node that waits for its topology."""
        server = self.start_server(
            "--cluster-enabled", "yes", "--cluster-name", NAME,
            "--cluster-node-id", f"{index + 1:040x}", "--cluster-node-timeout", "2500",
            *options, "--cluster-etcd", *etcd.endpoints, **more,
        )  # fmt: skip
        server.node_id = f"{index + 1:040x}"
        return server

    def start_cluster(self, shards, replicas=0, *options):
        """Server s leads shard s; behind the leaders come their replicas in turn."""
        self.etcd = self.start_etcd()
        servers = [
            self.start_node(self.etcd, i, *options) for i in range(shards * (1 + replicas))
        ]
        self.put_topology(servers, shards)
        for server in servers:
            self.wait_for_state(server)
        return servers

    def put_topology(self, servers, shards):
        ranges = equal_ranges(shards)
        document = {
            "format": 1,
            "shards": {
                f"s{s + 1}": {
                    "epoch": 1,
                    "leader": servers[s].node_id,
                    "members": [server.node_id for server in servers[s::shards]],
                    "insync": [servers[s].node_id],
                    "slots": f"{ranges[s][0]}-{ranges[s][1]}",
                }
                for s in range(shards)
            },
            "nodes": {
                server.node_id: {"ip": "127.0.0.1", "port": server.port, "tls": 0, "host": ""}
                for server in servers
            },
        }
        self.etcd.control("put", TOPOLOGY, json.dumps(document))

    def topology(self):
        text = self.etcd.control("get", "--print-value-only", TOPOLOGY)
        return json.loads(text)

    def wait_for_state(self, server, state=b"ok"):
        def is_there():
            with server.connect() as connection:
                return b"cluster_state:" + state in connection.call("CLUSTER", "INFO")

        wait_until(is_there, 30, f"{server.port} is {state}")

    def wait_for_replicas(self, servers, shards):
        """Until each replica has its leader's data and may take over."""
        def is_whole():
            found = self.topology()["shards"]
            return all(set(one["insync"]) == set(one["members"]) for one in found.values())

        wait_until(is_whole, 30, "all members are in sync")

    def start_redis_cluster(self, nodes):
        servers = [self.start_redis("--cluster-enabled", "yes") for _ in range(nodes)]
        for server in servers:
            server.expect_log(".*")
        self.run_client(
            ["redis-cli", "--cluster", "create", "--cluster-yes",
             *(f"127.0.0.1:{server.port}" for server in servers)],
            timeout_s=60,
        )  # fmt: skip
        for server in servers:
            self.wait_for_state(server)
        return servers

    @staticmethod
    def redis_py(server, **options):
        return redis.RedisCluster(host="127.0.0.1", port=server.port, **options)
