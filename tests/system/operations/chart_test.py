#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the Helm chart of conf/helm, rendered by the template engine that Helm uses.

The Kubernetes objects of the chart must refer to each other correctly. A server must start with the
configuration files that the pods get.
"""

import json
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import unittest
import urllib.request

from harness import DEADLINE_S, ROOT, SERVER, ServerTest, free_port, wait_until
from harness.yaml_files import documents_in, documents_of

CHART = ROOT / "conf/helm/bloomery"
RENDERER = ROOT / "tests/system/operations/helm_render/main.go"
LIBRARIES = pathlib.Path("/usr/share/gocode")

ETCD = ["http://etcd-0:2379", "http://etcd-1:2379"]
VARIANTS = {
    "default": {},
    "everything": {
        "auth": {"enabled": True, "password": "secret"},
        "replica": {"enabled": True, "replicas": 3, "minReplicasToWrite": 1},
        "commonLabels": {"team": "search"}, "podAnnotations": {"note": "x"},
        "podLabels": {"tier": "cache"}, "bloomeryConfig": "hz 20\nmaxclients 777",
        "nodeSelector": {"disk": "ssd"}, "tolerations": [{"operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}}, "priorityClassName": "high",
        "imagePullSecrets": [{"name": "registry"}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}],
        "serviceAccount": {"create": True, "annotations": {"a": "b"}},
        "service": {"annotations": {"c": "d"}},
        "dataStorage": {"className": "fast", "annotations": {"e": "f"}},
        "metrics": {"serviceMonitor": {"enabled": True, "additionalLabels": {"release": "p"}}},
        "podDisruptionBudget": {"enabled": True},
        "networkPolicy": {"enabled": True, "clientLabels": {"uses": "bloom"}},
    },
    "cluster": {"cluster": {"enabled": True, "etcd": ETCD}},
    "bare": {"metrics": {"enabled": False}, "dataStorage": {"enabled": False},
             "networkPolicy": {"enabled": True}, "image": {"registry": "r.example", "tag": "9"}},
    "own secret": {"auth": {"enabled": True, "existingSecret": "theirs"}},
}  # fmt: skip


def merged(defaults, changes):
    """Merges `changes` into `defaults` as Helm does: merges maps key by key, and replaces all other
    values.
    """
    if not (isinstance(defaults, dict) and isinstance(changes, dict)):
        return changes
    return {**defaults, **{key: merged(defaults.get(key), changes[key]) for key in changes}}


class ChartTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-chart-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        (cls.values,) = documents_of(CHART / "values.yaml")
        (cls.chart,) = documents_of(CHART / "Chart.yaml")
        cls.why_not = ""
        if not shutil.which("go") or not LIBRARIES.exists():
            cls.why_not = "there is no Go with sprig: run scripts/install_deps.sh test"
            return
        subprocess.run(
            ["go", "build", "-o", cls.folder / "render", RENDERER], check=True,
            env={**os.environ, "GO111MODULE": "off", "GOPATH": str(LIBRARIES),
                 "GOCACHE": str(cls.folder / "cache")},
        )  # fmt: skip

    def setUp(self):
        super().setUp()
        if self.why_not:
            self.skipTest(self.why_not)

    def render(self, changes, *, release="rel"):
        """Renders the chart. Returns (0, YAML documents) or (exit status, error message)."""
        data = {
            "Values": merged(self.values, changes),
            "Release": {"Name": release, "Namespace": "ns", "Service": "Helm"},
            "Chart": {"Name": self.chart["name"], "Version": self.chart["version"],
                      "AppVersion": self.chart["appVersion"]},
        }  # fmt: skip
        files = {
            path.name: path.read_text("ascii") for path in (CHART / "templates").iterdir()
        }  # fmt: skip
        done = subprocess.run(
            [self.folder / "render"], input=json.dumps({"files": files, "data": data}), text=True,
            capture_output=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            return done.returncode, done.stderr
        documents = []
        for name, text in sorted(json.loads(done.stdout).items()):
            if name.endswith(".yaml"):
                documents += documents_in(text)
        return 0, documents

    def documents(self, changes, **options):
        status, documents = self.render(changes, **options)
        self.assertEqual(status, 0, documents)
        return documents

    def one(self, documents, kind, name="rel-bloomery"):
        (found,) = [
            one for one in documents if (one["kind"], one["metadata"]["name"]) == (kind, name)
        ]
        return found

    def test_every_variant_is_whole(self):
        for name, changes in VARIANTS.items():
            with self.subTest(variant=name):
                self.check(self.documents(changes))

    def check(self, documents):
        names = [(one["kind"], one["metadata"]["name"]) for one in documents]
        self.assertEqual(len(names), len(set(names)))
        stateful = self.one(documents, "StatefulSet")
        template = stateful["spec"]["template"]
        labels = template["metadata"]["labels"]
        self.assertIn(("Service", stateful["spec"]["serviceName"]), names)
        for one in documents:
            self.assertIn("apiVersion", one)
            self.assertLessEqual(len(one["metadata"]["name"]), 63)
            self.assertEqual(one["metadata"]["labels"]["app.kubernetes.io/instance"], "rel")
            for selector in self.selectors(one):
                selector.pop("statefulset.kubernetes.io/pod-name", None)
                self.assertLessEqual(selector.items(), labels.items(), one)
        (container,) = template["spec"]["containers"]
        volumes = {volume["name"] for volume in template["spec"]["volumes"]}
        volumes |= {
            claim["metadata"]["name"] for claim in stateful["spec"].get("volumeClaimTemplates", [])
        }
        self.assertEqual({mount["name"] for mount in container["volumeMounts"]}, volumes)
        ports = {port["name"] for port in container["ports"]}
        for one in documents:
            if one["kind"] == "Service":
                targets = {port["targetPort"] for port in one["spec"]["ports"]}
                self.assertLessEqual(targets, ports)
            if one["kind"] == "NetworkPolicy":
                named = {port["port"] for rule in one["spec"]["ingress"] for port in rule["ports"]}
                self.assertEqual(named, ports)
        for variable in container.get("env", []):
            secret = variable["valueFrom"]["secretKeyRef"]["name"]
            self.assertTrue(secret == "theirs" or ("Secret", secret) in names)

    @staticmethod
    def selectors(one):
        spec = one.get("spec", {})
        if one["kind"] == "Service":
            yield dict(spec["selector"])
        elif one["kind"] in ("StatefulSet", "PodDisruptionBudget"):
            yield dict(spec["selector"]["matchLabels"])
        elif one["kind"] == "NetworkPolicy":
            yield dict(spec["podSelector"]["matchLabels"])

    def test_monitor_finds_one_service(self):
        documents = self.documents(VARIANTS["everything"])
        wanted = self.one(documents, "ServiceMonitor")["spec"]["selector"]["matchLabels"]
        found = [
            one["metadata"]["name"] for one in documents
            if one["kind"] == "Service" and wanted.items() <= one["metadata"]["labels"].items()
        ]  # fmt: skip
        self.assertEqual(found, ["rel-bloomery-headless"])

    def test_replicas_and_image(self):
        for variant, count in (("default", 1), ("everything", 4), ("cluster", 6)):
            stateful = self.one(self.documents(VARIANTS[variant]), "StatefulSet")
            self.assertEqual(stateful["spec"]["replicas"], count)
        stateful = self.one(self.documents(VARIANTS["bare"]), "StatefulSet")
        (container,) = stateful["spec"]["template"]["spec"]["containers"]
        self.assertEqual(container["image"], "r.example/bloomery:9")

    def test_numbers_of_a_values_file_stay_numbers(self):
        # A values file has numbers, which Helm reads as floating point.
        for tag, shown in ((1.2, "1.2"), (20260101, "20260101"), ("1.10", "1.10")):
            documents = self.documents({
                "maxmemory": 4000000000, "image": {"tag": tag},
                "terminationGracePeriodSeconds": 1000000,
                "podDisruptionBudget": {"maxUnavailable": "10%"},
            })  # fmt: skip
            config = self.one(documents, "ConfigMap")["data"]["bloomery.conf"]
            self.assertIn("maxmemory 4000000000\n", config)
            pod = self.one(documents, "StatefulSet")["spec"]["template"]["spec"]
            self.assertEqual(pod["containers"][0]["image"], f"bloomery:{shown}")
            self.assertEqual(pod["terminationGracePeriodSeconds"], 1000000)
            budget = self.one(documents, "PodDisruptionBudget")["spec"]
            self.assertEqual(budget["maxUnavailable"], "10%")

    def test_long_names_are_cut(self):
        changes = merged(VARIANTS["everything"], {"fullnameOverride": "n" * 63})
        for values in (VARIANTS["everything"], changes):
            for one in self.documents(values, release="r" * 53):
                self.assertLessEqual(len(one["metadata"]["name"]), 63)
                if one["kind"] == "StatefulSet":
                    # Kubernetes labels the pods with this name and a hash of ten characters.
                    self.assertLessEqual(len(one["metadata"]["name"]), 52)

    def test_monitor_sends_the_password(self):
        for variant, secret in (("everything", "rel-bloomery"), ("own secret", "theirs")):
            changes = {"metrics": {"serviceMonitor": {"enabled": True}}}
            documents = self.documents(merged(VARIANTS[variant], changes))
            (endpoint,) = self.one(documents, "ServiceMonitor")["spec"]["endpoints"]
            self.assertEqual(endpoint["basicAuth"]["password"], {"name": secret, "key": "password"})
            user = endpoint["basicAuth"]["username"]
            self.assertEqual(self.one(documents, "Secret", user["name"])["stringData"],
                             {user["key"]: "default"})  # fmt: skip
        (endpoint,) = self.one(self.documents(changes), "ServiceMonitor")["spec"]["endpoints"]
        self.assertNotIn("basicAuth", endpoint)

    def test_cluster_is_as_the_sample(self):
        (sample,) = [one for one in documents_of(ROOT / "conf/kubernetes/cluster.yml")
                     if one["kind"] == "StatefulSet"]  # fmt: skip
        documents = self.documents(VARIANTS["cluster"])
        self.assertEqual(self.one(documents, "PodDisruptionBudget")["spec"]["maxUnavailable"], 1)
        stateful = self.one(documents, "StatefulSet")
        for member in ("minReadySeconds", "podManagementPolicy"):
            self.assertEqual(stateful["spec"][member], sample["spec"][member])
        ours, theirs = [one["spec"]["template"]["spec"]["containers"][0]["lifecycle"]
                        for one in (stateful, sample)]  # fmt: skip
        self.assertEqual(ours, theirs)

    def test_release_that_names_the_chart_is_not_doubled(self):
        self.one(self.documents({}, release="bloomery"), "StatefulSet", "bloomery")

    def test_values_that_exclude_each_other_are_refused(self):
        for changes, reason in (
            ({"cluster": {"enabled": True}}, "cluster.etcd needs"),
            ({"cluster": {"enabled": True, "etcd": ETCD}, "replica": {"enabled": True}},
             "exclude each other"),
            ({"auth": {"enabled": True}}, "auth.existingSecret"),
        ):  # fmt: skip
            status, said = self.render(changes)
            self.assertEqual(status, 1)
            self.assertIn(reason, said)

    # The tests below run the scripts that write a pod's files.

    def start_script(self, changes, pod, *, data=None, password="secret"):
        """Runs start.sh of the chart as a pod does, but in a folder of the test. Returns the path
        of the configuration file that the script writes.
        """
        config = self.one(self.documents(changes), "ConfigMap")["data"]
        place = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        data = data or place / "data"
        for folder in (data, place / "etc", place / "bin"):
            folder.mkdir(exist_ok=True)
        for name, text in (("hostname", f"echo {pod}"), ("bloomery-server", "exit 0")):
            (place / "bin" / name).write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
            (place / "bin" / name).chmod(0o755)
        for name, text in config.items():
            text = text.replace("/data", str(data)).replace("/etc/bloomery", str(place / "etc"))
            (place / "etc" / name).write_text(text, encoding="ascii")
        subprocess.run(
            ["sh", place / "etc/start.sh"], check=True, timeout=DEADLINE_S,
            env={"PATH": f"{place}/bin:/usr/bin:/bin", "BLOOMERY_PASSWORD": password},
        )  # fmt: skip
        return data / "bloomery.conf"

    def test_server_starts_with_each_file(self):
        for variant in ("default", "everything", "bare"):
            path = self.start_script(VARIANTS[variant], "rel-bloomery-0")
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
            options = ["--http-port", free_port()] if variant != "bare" else []
            server = self.start_server(*options, config_file=path)
            with server.connect() as client:
                if variant == "everything":
                    self.assertEqual(client.call("AUTH", "secret"), b"OK")
                    answer = client.call("CONFIG", "GET", "min-replicas-to-write")
                    self.assertEqual(answer[1], b"1")
                    self.assertEqual(client.call("CONFIG", "GET", "maxclients")[1], b"777")
                self.assertEqual(client.call("CONFIG", "GET", "maxmemory")[1], b"1073741824")

    def test_any_password_reaches_the_server(self):
        password = "a\"b\\c 'd' $HOME %s \\n#&"
        path = self.start_script(
            {**VARIANTS["own secret"], "metrics": {"enabled": False}}, "rel-bloomery-0",
            password=password,
        )  # fmt: skip
        server = self.start_server(config_file=path)
        with server.connect() as client:
            self.assertEqual(client.call("AUTH", password), b"OK")
            self.assertEqual(client.call("CONFIG", "GET", "masterauth")[1], password.encode())

    def test_cluster_file_has_only_known_options(self):
        path = self.start_script(VARIANTS["cluster"], "rel-bloomery-2")
        text = path.read_text("ascii")
        self.assertIn(f"cluster-etcd {' '.join(ETCD)}\n", text)
        self.assertIn("cluster-announce-hostname rel-bloomery-2.rel-bloomery-headless.ns.svc", text)
        done = subprocess.run(
            [SERVER, "--health-check", path, "--port", str(free_port()), "--http-port", "0"],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        self.assertEqual(done.stderr, "")

    def test_role_outlives_the_pod(self):
        changes = {"replica": {"enabled": True}}
        leader = "replicaof rel-bloomery-0.rel-bloomery-headless.ns.svc 6379\n"
        self.assertNotIn("replicaof", self.start_script(changes, "rel-bloomery-0").read_text())
        path = self.start_script(changes, "rel-bloomery-1")
        self.assertTrue(path.read_text().endswith(leader))
        # A promoted server has removed `replicaof` from its configuration file. The next start of
        # the pod must not add the line again.
        path.write_text(path.read_text().replace(leader, ""))
        again = self.start_script(changes, "rel-bloomery-1", data=path.parent)
        self.assertNotIn("replicaof", again.read_text())
        # Sentinel has made pod 0 a replica. The next start of the pod must keep the `replicaof`
        # line.
        path = self.start_script(changes, "rel-bloomery-0")
        path.write_text(path.read_text() + "replicaof elsewhere 6379\n")
        again = self.start_script(changes, "rel-bloomery-0", data=path.parent)
        self.assertTrue(again.read_text().endswith("replicaof elsewhere 6379\n"))

    def container(self, changes):
        stateful = self.one(self.documents(changes), "StatefulSet")
        (container,) = stateful["spec"]["template"]["spec"]["containers"]
        return container

    def test_ready_server_is_not_waited_for(self):
        """The probes accept the configuration file that the pod's start script wrote."""
        changes = VARIANTS["bare"]
        path = self.start_script(changes, "rel-bloomery-0")
        container = self.container(changes)
        server = self.start_server(config_file=path)
        for probe in ("livenessProbe", "readinessProbe"):
            program, *words = container[probe]["exec"]["command"]
            self.assertEqual(program, SERVER.name)
            words = [str(path) if word == "/data/bloomery.conf" else word for word in words]
            command = [SERVER, *words, "--port", str(server.port)]
            wait_until(
                lambda command=command: subprocess.run(command, check=False).returncode == 0, probe
            )

    def test_readiness_is_asked_at_the_http_port(self):
        port = free_port()
        changes = {"metrics": {"port": port}}
        container = self.container(changes)
        wanted = {"path": "/readyz", "port": "metrics"}
        self.assertEqual(container["readinessProbe"]["httpGet"], wanted)
        self.assertIn({"name": "metrics", "containerPort": port}, container["ports"])
        self.start_server(config_file=self.start_script(changes, "rel-bloomery-0"))
        url = f"http://127.0.0.1:{port}{wanted['path']}"
        with urllib.request.urlopen(url, timeout=DEADLINE_S) as reply:
            self.assertEqual(reply.status, 200)
        for config in ("http-tls yes", "hz 20\n  http-bind 127.0.0.1"):
            probe = self.container({"bloomeryConfig": config})["readinessProbe"]
            self.assertEqual(list(probe), ["exec", "periodSeconds", "timeoutSeconds"])


if __name__ == "__main__":
    unittest.main()
