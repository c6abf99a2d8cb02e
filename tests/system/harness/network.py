# SPDX-License-Identifier: MIT
"""Runs each node in a network namespace of its own, so that a test can cut off the node. A bridge
in a further namespace connects the nodes.

The test process is in none of these namespaces, but has an address in the nodes' network. If the
machine allows no namespaces, LocalNetwork puts every node on 127.0.0.1, and no node can be cut off.
"""

import itertools
import os
import random
import shutil
import subprocess


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stdout.strip()}")


class LocalNetwork:
    can_cut = False

    def __init__(self, count):
        self.addresses = ["127.0.0.1"] * count
        self.outside = "127.0.0.1"

    def prefix(self, _node):
        return []

    def close(self):
        pass


class NamespaceNetwork:
    can_cut = True
    serials = itertools.count()

    def __init__(self, count):
        # The kernel removes the links of a previous network with a delay, so each network has names
        # of its own.
        self.tag = f"bl{os.getpid() % 100000}{next(self.serials) % 1000}"
        self.hub = f"{self.tag}-hub"
        self.namespaces = []
        subnet = f"10.{random.randrange(200, 250)}.{random.randrange(256)}"
        self.addresses = [f"{subnet}.{node + 1}" for node in range(count)]
        self.outside = f"{subnet}.254"  # address of the machine itself in the test network
        try:
            self._add(self.hub)
            self._in_hub("ip", "link", "add", "bridge", "type", "bridge", "forward_delay", "0")
            self._in_hub("ip", "link", "set", "bridge", "up")
            for node, address in enumerate(self.addresses):
                name = self._name(node)
                self._add(name)
                self._join(f"{self.tag}-{node}", name, f"{address}/24", self._port(node))
            self._join(f"{self.tag}-o", None, f"{self.outside}/24", "outside")
        except OSError:
            self.close()
            raise

    def prefix(self, node):
        """Returns the words to put before a command, so that it runs in the network namespace of
        the node.
        """
        return ["ip", "netns", "exec", self._name(node)]

    def cut(self, node):
        """Drops all packets to and from the node. The node's processes get no errors and no
        packets.
        """
        self._in_hub("ip", "link", "set", self._port(node), "down")

    def heal(self, node):
        self._in_hub("ip", "link", "set", self._port(node), "up")

    def close(self):
        for namespace in self.namespaces:
            # When a namespace is deleted, the kernel also deletes the ends of the links in it.
            subprocess.run(["ip", "netns", "delete", namespace], check=False)
        self.namespaces = []

    def _name(self, node):
        return f"{self.tag}-n{node}"

    @staticmethod
    def _port(node):
        return f"port{node}"

    def _add(self, namespace):
        run("ip", "netns", "add", namespace)
        self.namespaces.append(namespace)
        run("ip", "-n", namespace, "link", "set", "lo", "up")

    def _in_hub(self, *words):
        run("ip", "netns", "exec", self.hub, *words)

    def _join(self, link, namespace, address, port):
        """Connects the namespace to a port of the bridge. If `namespace` is None, connects the
        machine itself.
        """
        run("ip", "link", "add", link, "type", "veth", "peer", "name", port, "netns", self.hub)
        inside = ["ip"] if namespace is None else ["ip", "-n", namespace]
        if namespace is not None:
            run("ip", "link", "set", link, "netns", namespace)
        run(*inside, "address", "add", address, "dev", link)
        run(*inside, "link", "set", link, "up")
        self._in_hub("ip", "link", "set", port, "master", "bridge", "up")


def create_network(count):
    """Returns a NamespaceNetwork if the machine allows network namespaces, else a LocalNetwork."""
    if shutil.which("ip") is not None:
        try:
            return NamespaceNetwork(count)
        except OSError as problem:
            print(f"no network namespaces here, so no partitions: {problem}", flush=True)
    else:
        print("no `ip` here, so no partitions", flush=True)
    return LocalNetwork(count)
