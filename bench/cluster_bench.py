#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the cost of a cluster. Compares server CPU per operation of a node that leads all slots
and of a server outside a cluster; redis-benchmark loads them alternately. Needs etcd (Debian:
etcd-server).

CPU is the time of all threads of the server, including the thread that talks to etcd.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

from server_bench import CLIENTS, COMMANDS, KEYSPACE, Server, free_port, requests_for

PIPELINES = (1, 16, 350)
LOADS = {name: COMMANDS[name] for name in ("GET", "SET", "SETBIT")} | {
    "BF.ADD": ["BF.ADD", "filter", "item:__rand_int__"],
    "BF.EXISTS": ["BF.EXISTS", "filter", "item:__rand_int__"],
}
START_TIMEOUT_S = 30


class Etcd:
    """Runs an etcd with one member, whose data are in `folder`."""

    def __init__(self, folder):
        self.url = f"http://127.0.0.1:{free_port()}"
        peer = f"http://127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            ["etcd", "--data-dir", folder, "--listen-client-urls", self.url,
             "--advertise-client-urls", self.url, "--listen-peer-urls", peer,
             "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def start_node(binary, etcd):
    """Runs a node that leads all slots."""
    node = Server("cluster", [binary, "--io-threads", "1", "--cluster-enabled", "yes",
                              "--cluster-name", "bench", "--cluster-etcd", etcd.url], None)
    tool = str(pathlib.Path(binary).with_name("bloomery-cluster"))
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        created = subprocess.run(
            [tool, "--etcd", etcd.url, "--cluster", "bench", "create", f"127.0.0.1:{node.port}"],
            capture_output=True, text=True, check=False)
        if created.returncode == 0:
            break
        if time.monotonic() > deadline:
            node.stop()
            raise SystemExit(f"the cluster was not created: {created.stderr}{created.stdout}")
        time.sleep(0.5)
    while "cluster_state:ok" not in node.bulk("CLUSTER", "INFO"):
        if time.monotonic() > deadline:
            node.stop()
            raise SystemExit("the node does not serve")
        time.sleep(0.2)
    return node


def print_row(name, words, pipeline, servers, options):
    requests = requests_for(pipeline, options.scale)
    rounds = []
    for turn in range(options.rounds):
        order = servers if turn % 2 == 0 else servers[::-1]
        cpu_ns = {server.name: server.load(words, requests, pipeline, CLIENTS, KEYSPACE)[1]
                  for server in order}
        rounds.append((cpu_ns["cluster"], cpu_ns["alone"]))
    ratios = sorted(one / other for one, other in rounds)
    print(f"{name:<10} {pipeline:4} {statistics.median(one for one, _ in rounds):9.0f} "
          f"{statistics.median(other for _, other in rounds):9.0f} "
          f"{statistics.median(ratios):7.3f}   {ratios[0]:.2f} to {ratios[-1]:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--scale", type=float, default=0.5, help="of the requests of a round")
    options = parser.parse_args()
    binary = os.environ.get("BLOOMERY_SERVER", "build/release/bloomery-server")
    with tempfile.TemporaryDirectory() as folder:
        etcd = Etcd(folder)
        servers = []
        try:
            servers.append(start_node(binary, etcd))
            servers.append(Server("alone", [binary, "--io-threads", "1"], None))
            for server in servers:
                server.command("BF.RESERVE", "filter", "0.01", "2000000")
                server.load(COMMANDS["SET"], 500_000, 100, CLIENTS, KEYSPACE)
            print("server CPU, ns an operation\n"
                  f"{'pipeline':>15} {'cluster':>9} {'alone':>9} {'ratio':>7}   of the rounds")
            for pipeline in PIPELINES:
                for name, words in LOADS.items():
                    print_row(name, words, pipeline, servers, options)
        finally:
            for server in servers:
                server.stop()
            etcd.stop()


if __name__ == "__main__":
    main()
