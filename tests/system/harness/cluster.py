# SPDX-License-Identifier: MIT
"""Starts clusters of several servers for the system tests: our servers with etcd, or redis-servers.
"""

import json
import subprocess

import redis
from harness import CLUSTER_TOOL, DEADLINE_S, ServerTest, free_port, wait_until
from harness.etcd import EtcdTest

SLOTS = 16384
LOCAL = "127.0.0.1"
NAME = "test"
TOPOLOGY = f"bloomery/{NAME}/topology"
# Pattern of the warnings that a healthy cluster node logs if etcd is late on a busy machine.
BUSY_WARNINGS = "etcd has not confirmed the shorter list|is there already, from this node's last"


def equal_ranges(parts):
    """Divides the hash slots into ranges, as `redis-cli --cluster create` does."""
    per_part = SLOTS / parts
    ends = [round(per_part * (i + 1)) - 1 for i in range(parts - 1)] + [SLOTS - 1]
    return list(zip([0] + [end + 1 for end in ends[:-1]], ends))


class ClusterTest(EtcdTest, ServerTest):
    """A test case that starts clusters."""

    def start_node(self, etcd, index, *options, host=LOCAL, timeout_ms=2500, **more):
        """Starts a cluster node, which waits until etcd has the topology. Other nodes reach this
        node at `host`.
        """
        more.setdefault("port", free_port())
        server = self.start_server(
            "--port", more["port"], "--bind", LOCAL, *([host] if host != LOCAL else []),
            "--protected-mode", "no", *options,
            "--cluster-enabled", "yes", "--cluster-name", NAME,
            "--cluster-node-id", f"{index + 1:040x}", "--cluster-node-timeout", timeout_ms,
            "--cluster-etcd", *etcd.endpoints, listen=False, **more,
        )  # fmt: skip
        server.expect_log(BUSY_WARNINGS)
        server.node_id = f"{index + 1:040x}"
        server.host = host
        return server

    def start_cluster(self, shards, replicas=0, *options, members=1, network=None, timeout_ms=2500):
        """Starts a cluster. Server s leads shard s, and further servers become replicas of the
        shards in turn. If `network` is given, the leader of the last shard runs in the network's
        namespace 0, which a test can cut off. All other servers run on the machine itself.
        """
        outside = network.outside if network else LOCAL
        self.etcd = self.start_etcd(members, host=outside)
        servers = []
        for i in range(shards * (1 + replicas)):
            more = {"host": outside}
            if network and i == shards - 1:
                more = {"host": network.addresses[0], "prefix": network.prefix(0)}
            servers.append(
                self.start_node(self.etcd, i, *options, timeout_ms=timeout_ms, **more)
            )
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
                server.node_id: {"ip": server.host, "port": server.port, "tls": 0, "host": ""}
                for server in servers
            },
        }
        self.etcd.control("put", TOPOLOGY, json.dumps(document))

    def run_tool(self, *words):
        """Runs bloomery-cluster and returns the completed process."""
        return subprocess.run(
            [CLUSTER_TOOL, "--etcd", ",".join(self.etcd.endpoints), "--cluster", NAME,
             *map(str, words)],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip

    def tool(self, *words):
        done = self.run_tool(*words)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def states(self):
        """Returns the state of each node, as `bloomery-cluster status` reports it."""
        status = json.loads(self.tool("--json", "status"))
        return [node["state"] for shard in status["shards"] for node in shard["nodes"]]

    def has_role(self, server, role):
        with server.connect() as connection:
            return connection.call("ROLE")[0] == role

    def wait_for_writes(self, server):
        def writes():
            with server.connect() as connection:
                return connection.call("SET", "key", "value") == b"OK"

        wait_until(writes, f"{server.port} takes writes")

    def check_takeover(self, leader, replica):
        leader.crash()
        wait_until(lambda: self.has_role(replica, b"master"), "the replica takes over")
        self.wait_for_writes(replica)

    def topology(self):
        text = self.etcd.control("get", "--print-value-only", TOPOLOGY)
        return json.loads(text)

    def wait_for_state(self, server, state=b"ok"):
        def is_there():
            with server.connect() as connection:
                answer = connection.call("CLUSTER", "INFO")
                # A replica that loads its leader's snapshot replies LOADING.
                return isinstance(answer, bytes) and b"cluster_state:" + state in answer

        wait_until(is_there, f"{server.port} is {state}")

    def wait_for_replicas(self, servers, shards):
        """Waits until each replica is in sync and can therefore be promoted. Also waits until
        CLUSTER SLOTS of each server lists all replicas.
        """
        def is_whole():
            found = self.topology()["shards"]
            return all(set(one["insync"]) == set(one["members"]) for one in found.values())

        def is_seen_by(server):
            with server.connect() as connection:
                slots = connection.call("CLUSTER", "SLOTS")
            # A restarted server replies LOADING while it receives its leader's snapshot.
            return isinstance(slots, list) and all(
                len(row) == 2 + len(servers) // shards for row in slots
            )

        wait_until(is_whole, "all members are in sync")
        for server in servers:
            wait_until(lambda asked=server: is_seen_by(asked), f"{server.port} sees replicas")

    def start_redis_cluster(self, nodes):
        servers = [self.start_redis("--cluster-enabled", "yes") for _ in range(nodes)]
        for server in servers:
            server.expect_log(".*")
        self.run_client(
            ["redis-cli", "--cluster", "create", "--cluster-yes",
             *(f"127.0.0.1:{server.port}" for server in servers)],
        )  # fmt: skip
        for server in servers:
            self.wait_for_state(server)
        return servers

    @staticmethod
    def redis_py(server, **options):
        return redis.RedisCluster(host="127.0.0.1", port=server.port, **options)
