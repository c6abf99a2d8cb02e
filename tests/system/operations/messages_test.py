#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the messages of failed starts: docs/troubleshooting.md must quote them exactly. Also tests
the messages of bloomery-docs.
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import unittest
import urllib.request

from harness import DEADLINE_S, SERVER, ServerTest, free_port
from harness.preloads import process_faults
from harness.resp import encode

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "troubleshooting.md"
SECTION = "## The server does not start"
# Prefix of a command that runs without the rights of root, because root can read every directory.
AS_USER_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def quoted_messages():
    """Returns patterns of the messages in docs/troubleshooting.md: a list for each table row."""
    section = PAGE.read_text().split(SECTION, 1)[1].split("\n## ", 1)[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    return [[pattern_of(code) for code in re.findall(r"`([^`]+)`", row)] for row in rows]


def pattern_of(quoted):
    """Returns the pattern of a quoted message. An ellipsis matches any text within a line, and a
    number matches any number.
    """
    pattern = re.escape(quoted).replace("…", "[^\n]*")
    return re.sub(r"\d+", r"\\d+", pattern)


class StartMessagesTest(ServerTest):
    def setUp(self):
        self.begin()

    def begin(self):
        """Creates `self.directory`, a separate directory for each start."""
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-messages-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def refused(self, *options, prefix=(), directory=None):
        """Starts a server whose start must fail. Returns all its output."""
        command = [*prefix, SERVER, "--dir", directory or self.directory, "--bind", "127.0.0.1"]
        if "--port" not in options:
            command += ["--port", free_port()]
        done = subprocess.run(
            [str(word) for word in (*command, *options)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=DEADLINE_S,
            check=False,
        )
        said = done.stdout.decode()
        self.assertEqual(done.returncode, 1, said)
        return said

    def damaged_snapshot(self):
        (self.directory / "dump.rdb").write_bytes(b"REDIS0010\xff")
        return self.refused("--appendonly", "no")

    def taken_port(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            return self.refused("--port", taken.getsockname()[1])

    def closed_directory(self):
        closed = self.directory / "closed"
        closed.mkdir()
        self.directory.chmod(0o755)
        closed.chmod(0o644)
        return self.refused(prefix=AS_USER_NOBODY, directory=closed)

    def missing_certificate(self):
        missing = self.directory / "none.crt"
        return self.refused(
            "--tls-port", free_port(), "--tls-cert-file", missing, "--tls-key-file", missing
        )

    def fifo(self):
        path = self.directory / "fifo"
        os.mkfifo(path)
        return self.refused("--aclfile", path)

    def taken_socket(self):
        path = self.directory / "socket"
        with socket.socket(socket.AF_UNIX) as taken:
            taken.bind(str(path))
            taken.listen()
            return self.refused("--unixsocket", path)

    def foreign_group(self):
        self.directory.chmod(0o777)
        return self.refused(
            "--unixsocket", self.directory / "socket", "--unixsocketgroup", "root",
            "--unixsocketperm", "770", prefix=AS_USER_NOBODY,
        )  # fmt: skip

    def shared_directory(self):
        self.start_server(directory=self.directory)
        return self.refused()

    def limits(self):
        threads = self.refused(prefix=process_faults(THREADS_MAX=0))
        forks = self.refused("--daemonize", "yes", prefix=process_faults(FORKS_MAX=0))
        return threads + forks

    def misspelled(self):
        return self.refused("--max-memory", "1gb")

    def certificate_users(self):
        return self.refused("--tls-auth-clients-user", "CN")

    def unencrypted_cluster(self):
        return self.refused("--cluster-enabled", "yes", "--tls-cluster", "yes")

    def test_quoted_messages_are_printed_once(self):
        scenarios = [
            self.damaged_snapshot, self.misspelled, self.certificate_users,
            self.unencrypted_cluster, self.taken_port, self.closed_directory,
            self.missing_certificate, self.fifo, self.taken_socket, self.foreign_group,
            self.shared_directory, self.limits,
        ]  # fmt: skip
        rows = quoted_messages()
        # Each row of the page's table needs a scenario: a failing start that prints its messages.
        self.assertEqual(len(rows), len(scenarios), rows)
        for patterns, scenario in zip(rows, scenarios):
            with self.subTest(scenario=scenario.__name__):
                self.begin()
                said = scenario()
                for pattern in patterns:
                    self.assertEqual(len(re.findall(pattern, said)), 1, f"{pattern}\n{said}")

    def test_damaged_snapshot_names_the_next_step(self):
        said = self.damaged_snapshot()
        path = self.directory / "dump.rdb"
        self.assertIn(f"'{path}': offset ", said)
        self.assertIn(f"Next: `bloomery-server --check-rdb {path}`", said)

    def test_missing_database_names_the_option(self):
        log = self.directory / "appendonlydir"
        log.mkdir()
        name = "appendonly.aof.1.incr.aof"
        (log / "appendonly.aof.manifest").write_text(f"file {name} seq 1 type i\n")
        for words in (("SELECT", 9), ("COPY", "a", "b", "DB", 9)):
            (log / name).write_bytes(encode(*words))
            said = self.refused("--databases", "4", "--appendonly", "yes")
            self.assertRegex(said, "DB index.*`databases` is 4; set it")

    def test_names_of_own_files_are_refused(self):
        for option, name in (
            ("appendfilename", "a\\\\b"), ("appenddirname", "temp-5.rdb"),
            ("appenddirname", "temp-rewriteaof-5.aof"), ("dbfilename", ".bloomery.lock"),
        ):  # fmt: skip
            self.assertRegex(self.refused(f"--{option}", name), f"{option} can't be a ")

    def test_one_dash_is_explained(self):
        self.assertRegex(self.refused("-p", "7000"), "port .*--port 7000")


class ShutdownMessagesTest(ServerTest):
    def test_failed_shutdowns_are_quoted(self):
        page = " ".join(PAGE.read_text().split())
        quoted = re.findall("`(Can't shut down, [^`]*)`", page)
        for appendonly, quote in zip(("no", "yes"), quoted, strict=True):
            server = self.start_server("--appendonly", appendonly)
            server.expect_log("Error saving DB on disk|Can.t shut down")
            (pathlib.Path(server.directory) / "dump.rdb").mkdir()
            with server.connect() as client:
                client.call("SET", "key", "value")
                client.send(encode("SHUTDOWN", "SAVE"))
                server.wait_for_log(pattern_of(quote))


class ReadyLineTest(ServerTest):
    def test_address_of_the_dashboard_can_be_opened(self):
        server = self.start_server("--http-port", free_port())
        line = next(line for line in server.log if "Ready to accept connections" in line)
        address = re.search(r"http://127\.0\.0\.1:\d+/", line)[0]
        with urllib.request.urlopen(address + "healthz", timeout=DEADLINE_S) as answer:
            self.assertEqual(answer.status, 200)


class DocsProgramTest(unittest.TestCase):
    def run_docs(self, *words, stdout=subprocess.PIPE):
        program = SERVER.with_name("bloomery-docs")
        return subprocess.run(
            [program, *words], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
            timeout=DEADLINE_S, check=False,
        )  # fmt: skip

    def test_errors_are_one_line(self):
        with open("/dev/full", "wb") as full:
            done = [self.run_docs(stdout=full), self.run_docs("--help", stdout=full)]
        done += [self.run_docs("configuration", path) for path in ("/", "/none", "/dev/null")]
        for failed in done:
            with self.subTest(words=failed.args[1:]):
                self.assertEqual(failed.returncode, 1)
                self.assertRegex(failed.stderr, rb"\Abloomery-docs: [^\n]+\n\Z")
        unknown = self.run_docs("unknown")
        self.assertEqual((unknown.returncode, unknown.stdout), (1, b""))
        self.assertIn(b"usage", unknown.stderr)

    def test_help_is_no_error(self):
        helped = self.run_docs("--help")
        self.assertEqual((helped.returncode, helped.stderr), (0, b""))
        self.assertIn(b"usage", helped.stdout)


if __name__ == "__main__":
    unittest.main()
