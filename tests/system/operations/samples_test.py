# SPDX-License-Identifier: MIT
"""Tests the samples of conf/ for Docker Compose and Kubernetes, and scripts/try_failover.sh."""

import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import tempfile
import unittest

from harness import CLUSTER_TOOL, DEADLINE_S, ROOT, SERVER, ServerTest, free_port, wait_until
from harness.resp import Connection
from harness.yaml_files import documents_of

SAMPLES = sorted((ROOT / "conf").glob("*/*.yml"))


def server_commands(node):
    """Finds each bloomery-server command line in a YAML value, and yields its arguments."""
    if isinstance(node, dict):
        for key, value in node.items():
            is_command = key in ("command", "test") and isinstance(value, list)
            if is_command and "bloomery-server" in value:
                yield value[value.index("bloomery-server") + 1 :]
            else:
                yield from server_commands(value)
    elif isinstance(node, list):
        for value in node:
            yield from server_commands(value)


class SamplesTest(ServerTest):
    def test_server_takes_every_command_line(self):
        seen = 0
        for path in SAMPLES:
            for document in documents_of(path):
                for words in server_commands(document):
                    seen += 1
                    # --health-check parses its options like a start, but starts no server.
                    words = [word for word in words if word != "--health-check"]
                    # Replaces variables in the arguments, as Kubernetes does.
                    words = [re.sub(r"\$\(POD_IP\)", "10.0.0.1", word) for word in words]
                    words = [re.sub(r"\$\(POD_NAME\)", "pod-0", word) for word in words]
                    done = subprocess.run(
                        [SERVER, "--health-check", *words, "--port", str(free_port())],
                        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
                    )  # fmt: skip
                    self.assertEqual(done.stderr, "", f"{path}: {words}")
                    self.assertIn("Connection refused", done.stdout)
        self.assertGreaterEqual(seen, 9)

    def test_compose_installs_nothing_publishes_locally(self):
        for path in (ROOT / "conf/compose").glob("*.yml"):
            text = path.read_text(encoding="ascii")
            # A container must not install packages when it starts, because it would need a mirror
            # each time.
            self.assertNotRegex(text, r"apt-get|\bapk\b|pip install|curl", path)
            (document,) = documents_of(path)
            for service in document["services"].values():
                for port in service.get("ports", []):
                    self.assertTrue(port.startswith("127.0.0.1:"), path)
            self.assertNotIn("privileged", text)

    def test_kubernetes_ends_only_unresponsive_servers(self):
        documents = documents_of(ROOT / "conf/kubernetes/bloomery.yml")
        server = documents[-1]["spec"]["template"]["spec"]["containers"][0]
        probes = {name: probe for name, probe in server.items() if name.endswith("Probe")}
        commands = {name: probe["exec"]["command"] for name, probe in probes.items()}
        check = ["bloomery-server", "--health-check"]
        # There is no startup probe, because it would kill a server that takes long to load its
        # data.
        self.assertEqual(
            commands, {"livenessProbe": [*check, "--alive"], "readinessProbe": check}
        )

    def test_kubernetes_cluster_names_all_of_its_parts(self):
        found = {
            (document["kind"], document["metadata"]["name"]): document["spec"]
            for document in documents_of(ROOT / "conf/kubernetes/cluster.yml")
        }
        name = "bloomery-cluster"
        servers = found["StatefulSet", name]
        labels = servers["template"]["metadata"]["labels"]
        budget = found["PodDisruptionBudget", name]
        self.assertEqual((budget["maxUnavailable"], budget["selector"]["matchLabels"]), (1, labels))
        for service in (name, "bloomery-seed"):
            self.assertEqual(found["Service", service]["selector"], labels)
        # DNS must also list servers that are not ready yet, because their peers connect to them.
        self.assertTrue(found["Service", name]["publishNotReadyAddresses"])
        self.assertEqual(servers["serviceName"], name)

        server = servers["template"]["spec"]["containers"][0]
        words = server["command"]
        used_variables = set(re.findall(r"\$\((\w+)\)", " ".join(words)))
        self.assertEqual(used_variables, {variable["name"] for variable in server["env"]})
        ports = {port["name"]: str(port["containerPort"]) for port in server["ports"]}
        self.assertEqual(words[words.index("--http-port") + 1], ports["http"])
        self.assertEqual(server["readinessProbe"]["httpGet"], {"path": "/readyz", "port": "http"})

        (job,) = found["Job", f"{name}-create"]["template"]["spec"]["containers"]
        pods = [f"{name}-{i}.{name}:{ports['redis']}" for i in range(servers["replicas"])]
        self.assertEqual(job["command"][-len(pods) :], pods)
        self.check_create(job["command"], words)

    def check_create(self, command, server):
        """Checks the arguments of the Kubernetes job that creates the cluster. The cluster
        tool must accept them. They must name the same etcd and cluster as the servers' arguments.
        """
        etcd = command.index("--etcd") + 1
        self.assertEqual(command[etcd].split(","), server[server.index("--cluster-etcd") + 1 :])
        cluster = command[command.index("--cluster") + 1]
        self.assertEqual(cluster, server[server.index("--cluster-name") + 1])
        words = ["http://127.0.0.1:1" if i == etcd else word for i, word in enumerate(command)]
        done = subprocess.run([CLUSTER_TOOL, *words[1:]], capture_output=True, text=True,
                              timeout=DEADLINE_S, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("Connection refused", done.stderr)

    def test_kubernetes_pods_meet_the_restricted_standard(self):
        for path in (ROOT / "conf/kubernetes").glob("*.yml"):
            pods = [document["spec"]["template"]["spec"] for document in documents_of(path)
                    if "template" in document.get("spec", {})]  # fmt: skip
            self.assertTrue(pods, path)
            for pod in pods:
                self.assertTrue(pod["securityContext"]["runAsNonRoot"])
                profile = pod["securityContext"]["seccompProfile"]["type"]
                self.assertEqual(profile, "RuntimeDefault")
                for container in pod["containers"]:
                    context = container["securityContext"]
                    self.assertFalse(context["allowPrivilegeEscalation"])
                    self.assertEqual(context["capabilities"], {"drop": ["ALL"]})

    def test_kubernetes_configuration_is_one_of_ours(self):
        documents = documents_of(ROOT / "conf/kubernetes/bloomery.yml")
        self.assertEqual([d["kind"] for d in documents], ["Service", "ConfigMap", "StatefulSet"])
        text = documents[1]["data"]["bloomery.conf"]
        path = pathlib.Path(self.start_server().directory) / "sample.conf"
        path.write_text(text, encoding="ascii")
        server = self.start_server(config_file=path)
        limit = server.connect().call("CONFIG", "GET", "maxmemory")[1]
        self.assertEqual(int(limit), 1 << 30)


class FailoverFilesTest(unittest.TestCase):
    """Runs the start scripts of conf/compose/failover.yml with stand-ins for the containers. The
    roles survive a restart only if the scripts keep the files that a failover has changed.
    """

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (document,) = documents_of(ROOT / "conf/compose/failover.yml")
        self.services, self.volumes = document["services"], document["volumes"]
        # Stand-ins. The one for the entrypoint passes the server's arguments to a health check,
        # which parses them like a start.
        check = f'shift; exec {SERVER} --health-check "$@" --port {free_port()}'
        for name, script in (("docker-entrypoint.sh", check), ("valkey-sentinel", 'echo "$@"')):
            (self.root / name).write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
            (self.root / name).chmod(0o755)

    def start(self, name):
        """Runs the command of a service. Returns what it printed, and the only file in its volume.
        """
        data = self.root / name
        data.mkdir(exist_ok=True)
        command = self.services[name]["command"]
        # Docker Compose replaces `$$` by `$`.
        words = [word.replace("$$", "$").replace("/data", str(data)) for word in command]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
            env={**os.environ, "PATH": f"{self.root}:{os.environ['PATH']}"},
        )  # fmt: skip
        self.assertEqual(done.stderr, "")
        (path,) = data.iterdir()
        return done.stdout, path

    def test_each_service_has_its_own_volume(self):
        used = [volume for service in self.services.values() for volume in service["volumes"]]
        self.assertEqual(sorted(used), sorted(f"{name}:/data" for name in self.volumes))
        self.assertEqual(len(self.volumes), len(self.services))

    def test_servers_keep_their_roles(self):
        for name, first in (
            ("server1", "# the first leader\n"), ("server2", "replicaof server1 6379\n"),
            ("server3", "replicaof server1 6379\n"),
        ):  # fmt: skip
            said, path = self.start(name)
            self.assertIn("Connection refused", said)
            self.assertEqual(path.read_text("ascii"), first)
            # The file as CONFIG REWRITE leaves it after another failover.
            path.write_text("replicaof server9 6379\n", encoding="ascii")
            self.start(name)
            self.assertEqual(path.read_text("ascii"), "replicaof server9 6379\n")

    def test_sentinels_keep_the_leader(self):
        for name in ("sentinel1", "sentinel2", "sentinel3"):
            said, path = self.start(name)
            self.assertEqual(said, f"{path}\n")
            text = path.read_text("ascii")
            self.assertIn("sentinel monitor bloom server1 6379 2\n", text)
            path.write_text(text.replace("server1", "server2"), encoding="ascii")
            self.start(name)
            self.assertIn("sentinel monitor bloom server2 6379 2\n", path.read_text("ascii"))


# try_failover.sh uses the ports at these offsets from the port in its argument.
PORTS = (0, 1, 2, 10, 11, 12)


class TryFailoverTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.port = free_port(PORTS)
        # The name of TMPDIR has spaces, which try_failover.sh must support.
        folder = tempfile.TemporaryDirectory(prefix="bloomery test ")
        self.addCleanup(folder.cleanup)
        self.script = subprocess.Popen(
            [ROOT / "scripts/try_failover.sh", str(self.port)],
            env={**os.environ, "BLOOMERY_SERVER": str(SERVER), "TMPDIR": folder.name},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self.addCleanup(self.script.stdout.close)
        self.addCleanup(self.end)

    def connect(self, port):
        connection = Connection(port)
        self.addCleanup(connection.close)
        return connection

    def end(self):
        self.script.send_signal(signal.SIGTERM)
        self.script.wait(DEADLINE_S)

    def test_commands_that_the_script_prints_work(self):
        said = ""
        while "Ctrl-C ends all of it." not in said:
            line = self.script.stdout.readline()
            self.assertTrue(line, said)
            said += line
        leader = self.connect(self.port)
        self.assertEqual(leader.call("BF.ADD", "seen", "item"), 1)
        self.assertEqual(leader.call("WAIT", "2", int(1000 * DEADLINE_S)), 2)
        os.kill(int(re.search(r"kill -9 (\d+)", said).group(1)), signal.SIGKILL)
        sentinel = self.connect(self.port + 10)
        ports = []

        def has_new_leader():
            ports[:] = [int(sentinel.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "bloom")[1])]
            return ports[0] != self.port

        wait_until(has_new_leader, "a failover")
        self.assertEqual(self.connect(ports[0]).call("BF.EXISTS", "seen", "item"), 1)
        self.end()
        for port in range(self.port + 1, self.port + 3):
            with self.assertRaises(OSError):
                Connection(port)


class TryFailoverRefusesTest(unittest.TestCase):
    def run_script(self, port, server=SERVER):
        return subprocess.run(
            [ROOT / "scripts/try_failover.sh", str(port)], capture_output=True, text=True,
            env={**os.environ, "BLOOMERY_SERVER": str(server)}, timeout=DEADLINE_S, check=False,
        )  # fmt: skip

    def test_wrong_port_is_refused(self):
        for word in ("x", "0", "00", "", "65001", "-1"):
            done = self.run_script(word)
            self.assertEqual(done.returncode, 2, word)
            self.assertIn("usage:", done.stderr)

    def test_taken_port_is_refused(self):
        distances = (0, 2, 12)
        taken = free_port({port - distance for port in PORTS for distance in distances})
        with socket.create_server(("127.0.0.1", taken)):
            for distance in distances:
                done = self.run_script(taken - distance)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"port {taken} is in use", done.stderr)

    def test_script_ends_when_a_server_cannot_start(self):
        # The script reads a port with a leading zero as a decimal number, not as an octal one.
        for port in (free_port(PORTS), f"0{random.randrange(8100, 9900)}"):
            done = self.run_script(port, server="/bin/false")
            self.assertEqual(done.returncode, 1)
            self.assertIn("has ended", done.stderr)


if __name__ == "__main__":
    unittest.main()
