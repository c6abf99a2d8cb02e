#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks the alert rules and the Grafana dashboard of conf/ with promtool and a real Prometheus.

Prometheus scrapes a leader, its replica and a node of a cluster."""

import http.client
import json
import pathlib
import re
import shutil
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

from harness import DEADLINE_S, ROOT, free_port, wait_until
from harness.cluster import ClusterTest
from harness.web_tools import ToolsTest

RULES = ROOT / "conf" / "prometheus-alerts.yml"
DASHBOARD = ROOT / "conf" / "grafana-dashboard.json"
RULE_TESTS = pathlib.Path(__file__).parent / "prometheus" / "alerts.yml"
# Metrics that Prometheus itself adds when it scrapes.
OF_PROMETHEUS = {"up"}
NAME = re.compile(r"\b(?:redis|bloomery|bf_bloom)_\w+\b|\bup\b")
REJECTED = "BloomeryConnectionsRejected"
CONFIG = """
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [RULES]
scrape_configs:
  - job_name: bloomery
    static_configs: [{targets: TARGETS}]
  - job_name: guarded-bloomery
    basic_auth: {username: default, password: secret}
    static_configs: [{targets: GUARDED}]
"""


def rules_text():
    return RULES.read_text(encoding="utf-8")


def panels():
    with open(DASHBOARD, encoding="utf-8") as file:
        return json.load(file)["panels"]


def expressions():
    return [target["expr"] for panel in panels() for target in panel.get("targets", [])]


def without_variables(expression):
    return (expression.replace("$__rate_interval", "1m").replace("$job", "bloomery")
            .replace("$instance", ".*"))  # fmt: skip


class MonitoringTest(ClusterTest, ToolsTest):
    def program(self, name):
        found = shutil.which(name)
        if found is None:
            self.skipTest(f"there is no {name}: run scripts/install_deps.sh test")
        return found

    def make_events(self):
        with self.leader.connect() as client:
            client.call("BF.RESERVE", "f", "0.01", "100")
            client.call("BF.MADD", "f", *(str(i) for i in range(95)))
            client.call("SET", "a", "1", "EX", "1000")
            client.call("GET", "a")
            client.call("NOSUCH")
            client.call("BGSAVE")

    def get(self, port, path):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
        self.addCleanup(connection.close)
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()

    def readiness(self, port):
        return self.get(port, "/readyz")

    def metric_names(self, port):
        lines = self.get(port, "/metrics")[1].splitlines()
        return {re.match(r"\w+", line).group() for line in lines if not line.startswith("#")}

    # The methods below start and query Prometheus.
    def start_prometheus(self, ports, guarded):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-prometheus-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        config = CONFIG.replace("RULES", str(RULES))
        config = config.replace("TARGETS", json.dumps([f"127.0.0.1:{port}" for port in ports]))
        config = config.replace("GUARDED", json.dumps([f"127.0.0.1:{guarded}"]))
        (folder / "prometheus.yml").write_text(config, encoding="ascii")
        port = free_port()
        self.api = f"http://127.0.0.1:{port}/api/v1/"
        self.start_tool(
            [self.program("prometheus"), f"--config.file={folder / 'prometheus.yml'}",
             f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}",
             "--log.level=error"],
            f"http://127.0.0.1:{port}/-/ready",
        )  # fmt: skip

    def ask(self, path, **parameters):
        url = f"{self.api}{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            self.fail(f"{parameters}: {error.read().decode()}")

    def health_of_targets(self):
        targets = self.ask("targets")["activeTargets"]
        return {target["scrapeUrl"]: target["lastError"] or target["health"] for target in targets}

    def firing(self):
        alerts = self.ask("alerts")["alerts"]
        return {
            alert["labels"]["alertname"]: alert for alert in alerts if alert["state"] == "firing"
        }


class RulesTest(MonitoringTest):
    def test_promtool_accepts_the_rules(self):
        self.run_client([self.program("promtool"), "check", "rules", RULES])

    def test_each_alert_has_a_unit_test(self):
        self.run_client([self.program("promtool"), "test", "rules", RULE_TESTS])
        alerts = set(re.findall(r"alert: (\w+)", rules_text()))
        self.assertGreaterEqual(len(alerts), 15)
        tested = set(re.findall(r'alertname="(\w+)"', RULE_TESTS.read_text(encoding="utf-8")))
        self.assertEqual(alerts, tested)


class DashboardFileTest(unittest.TestCase):
    def test_panels_do_not_overlap(self):
        taken = {}
        for panel in panels():
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((x, y), taken, f"{panel['title']} {taken.get((x, y))}")
                    taken[x, y] = panel["title"]
        ids = [panel["id"] for panel in panels()]
        self.assertEqual(len(ids), len(set(ids)))

    def test_each_query_goes_to_the_chosen_servers(self):
        with open(DASHBOARD, encoding="utf-8") as file:
            variables = {one["name"] for one in json.load(file)["templating"]["list"]}
        for expression in expressions():
            names = len(NAME.findall(expression))
            self.assertEqual(expression.count('{job="$job",instance=~"$instance"}'), names)
            used = set(re.findall(r"\$(\w+)", expression)) - {"__rate_interval"}
            self.assertLessEqual(used, variables, expression)


class ScrapeTest(MonitoringTest):
    def test_a_real_prometheus(self):
        self.program("prometheus")
        self.etcd = self.start_etcd()
        ports = [free_port() for _ in range(4)]
        self.leader = self.start_server(
            "--http-port", ports[0], "--appendonly", "yes", "--maxmemory", "1gb",
            "--maxclients", "20",
        )  # fmt: skip
        self.start_server("--http-port", ports[1], "--replicaof", f"127.0.0.1 {self.leader.port}")
        node = self.start_node(self.etcd, 0, "--http-port", ports[2])
        self.assertEqual(self.readiness(ports[2])[0], 503)
        self.assertIn("topology", self.readiness(ports[2])[1])
        self.put_topology([node], 1)
        self.wait_for_state(node)
        wait_until(
            lambda: self.readiness(ports[2])[0] == 200, lambda: self.readiness(ports[2])
        )
        self.start_server("--http-port", ports[3], "--requirepass", "secret")
        self.make_events()
        self.start_prometheus(ports[:3], ports[3])
        wait_until(
            lambda: set(self.health_of_targets().values()) == {"up"},
            self.health_of_targets,
        )  # fmt: skip
        self.check_names(ports[:3])
        self.check_an_alert()
        self.check_queries()

    def check_names(self, ports):
        exposed = set().union(*(self.metric_names(port) for port in ports)) | OF_PROMETHEUS
        for text in [*re.findall(r"expr: (.*)", rules_text()), *expressions()]:
            names = set(NAME.findall(text))
            self.assertTrue(names, text)
            self.assertEqual(names - exposed, set(), text)

    def check_an_alert(self):
        """Checks that the alert REJECTED fires if more clients connect than maxclients allows."""
        self.assertNotIn(REJECTED, self.firing())
        self.leader.expect_log("maxclients|max number of clients")
        clients = []
        for _ in range(25):
            client = self.leader.connect()
            self.addCleanup(client.close)
            clients.append(client)
        wait_until(lambda: REJECTED in self.firing(), "the alert fires")
        for client in clients:
            client.close()
        alert = self.firing()[REJECTED]
        address = alert["labels"]["instance"]
        self.assertEqual(alert["labels"]["severity"], "page")
        self.assertEqual(alert["annotations"]["summary"], f"{address} has rejected clients")
        for rule in self.ask("rules")["groups"][0]["rules"]:
            self.assertEqual(rule["health"], "ok", rule)

    def check_queries(self):
        """Checks that each query of the Grafana dashboard returns data."""
        self.make_events()
        for expression in expressions():
            query = without_variables(expression)
            wait_until(
                lambda asked=query: self.ask("query", query=asked)["result"],
                f"an answer to {query}",
            )  # fmt: skip


class NodeReadinessTest(MonitoringTest):
    """Tests the metrics of a cluster's leader that may no longer acknowledge writes, because etcd
    and the leader's replica are unreachable.
    """

    def test_a_permit_that_has_ended(self):
        self.etcd = self.start_etcd()
        ports = [free_port() for _ in range(2)]
        leader, replica = (
            self.start_node(self.etcd, i, "--http-port", port) for i, port in enumerate(ports)
        )
        for server in (leader, replica):
            server.expect_log(".*")
        self.put_topology([leader, replica], 1)
        self.wait_for_replicas([leader, replica], 1)
        for port in ports:
            wait_until(lambda at=port: self.readiness(at)[0] == 200, f"{port} is ready")
        for stopped in (*self.etcd.members, replica):
            stopped.suspend()
            self.addCleanup(stopped.resume)
        wait_until(lambda: self.readiness(ports[0])[0] == 503, "the permit ends")
        self.assertIn("permit", self.readiness(ports[0])[1])
        metrics = self.get(ports[0], "/metrics")[1]
        self.assertIn("\nbloomery_ready 0\n", metrics)
        wait_until(
            lambda: "\nbloomery_cluster_etcd_up 0\n" in self.get(ports[0], "/metrics")[1],
            "etcd is called down",
        )  # fmt: skip
        for resumed in (replica, *self.etcd.members):
            resumed.resume()
        for port in ports:
            wait_until(lambda at=port: self.readiness(at)[0] == 200, f"{port} is ready again")


if __name__ == "__main__":
    unittest.main()
