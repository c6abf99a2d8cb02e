#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests options that name a FIFO instead of a file: opening the FIFO must not block the server."""

import os
import pathlib
import subprocess
import unittest

from harness import CLUSTER_TOOL, DEADLINE_S, SERVER, free_port
from harness.resp import ErrorReply
from harness.tls import TlsTest

CLUSTER = ("--cluster-enabled", "yes", "--cluster-etcd", "https://127.0.0.1:1")
TLS_OPTIONS = (
    "tls-cert-file",
    "tls-key-file",
    "tls-client-cert-file",
    "tls-client-key-file",
    "tls-ca-cert-file",
    "tls-dh-params-file",
)


class SpecialFilesTest(TlsTest):
    def setUp(self):
        folder = self.folder_of_test()
        self.fifo = str(folder / "fifo")
        os.mkfifo(self.fifo)

    def folder_of_test(self):
        folder = pathlib.Path(self.files.path(self.id().rpartition(".")[2]))
        folder.mkdir()
        return folder

    def ended(self, command, folder=None):
        """Runs a program that must end by itself and with an error; returns its output."""
        done = subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=DEADLINE_S,
            check=False,
        )
        said = done.stdout.decode()
        self.assertEqual(done.returncode, 1, said)
        return said

    def refused(self, folder, *options):
        return self.ended([SERVER, *options, "--dir", folder, "--port", free_port()], folder)


class StartTest(SpecialFilesTest):
    def check_option(self, option, *more, kind="FIFO"):
        folder = pathlib.Path(self.fifo).parent
        with self.subTest(option=option):
            said = self.refused(folder, *more, f"--{option}", self.fifo)
            self.assertRegex(said, f"'{self.fifo}': .*{kind}.*{option} .*regular file")

    def test_options(self):
        tls = self.files.server_options(free_port())
        certificate = ["--tls-client-cert-file", self.files.path("client.crt")]
        key = ["--tls-client-key-file", self.files.path("client.key")]
        for option in TLS_OPTIONS:
            self.check_option(option, *tls, *certificate, *key)
        self.check_option("aclfile")
        self.check_option("cluster-etcd-ca-file", *CLUSTER)
        self.check_option("cluster-etcd-cert-file", "--cluster-etcd-key-file", "key.pem", *CLUSTER)
        self.check_option("logfile", kind="FIFO without reader")

    def test_a_directory_of_authorities(self):
        folder = pathlib.Path(self.fifo).parent
        os.mkfifo(folder / "0123abcd.0")
        tls = self.files.server_options(free_port())
        said = self.refused(folder, *tls, "--tls-ca-cert-dir", folder)
        self.assertRegex(said, "0123abcd.0': .*FIFO.*tls-ca-cert-dir .*regular file")

    def test_an_included_file(self):
        folder = pathlib.Path(self.fifo).parent
        config = folder / "server.conf"
        config.write_text(f"include {self.fifo}\n", encoding="ascii")
        said = self.ended([SERVER, config, "--dir", folder, "--port", free_port()])
        self.assertRegex(said, "FIFO.*include .*regular file")

    def test_files_of_the_data_directory(self):
        log = "appendonlydir/appendonly.aof.manifest"
        for name, options in (
            ("dump.rdb", ["--appendonly", "no"]),
            (log, ["--appendonly", "yes"]),
            (".bloomery.lock", []),
            ("cluster.json", CLUSTER),
        ):
            with self.subTest(name=name):
                folder = pathlib.Path(self.fifo).parent / name.replace("/", "-")
                (folder / name).parent.mkdir(parents=True)
                os.mkfifo(folder / name)
                said = self.refused(folder, *options)
                self.assertRegex(said, rf"'.*{name}': .*FIFO.* not a regular file")

    def test_a_pid_file_is_left_alone(self):
        server = self.start_server("--pidfile", self.fifo)
        server.expect_log("No PID file: ")
        server.wait_for_log(f"No PID file: .*'{self.fifo}': .*FIFO without reader")
        server.process.terminate()
        self.assertEqual(server.wait_for_exit(), 0)
        self.assertTrue(pathlib.Path(self.fifo).is_fifo(), "the server has removed it")

    def test_the_configuration_may_come_through_a_pipe(self):
        """The configuration file may be a pipe, such as `<(command)` of a shell."""
        reading, writing = os.pipe()
        os.write(writing, f"port {free_port()}\nbind 127.0.0.1\naclfile {self.fifo}\n".encode())
        os.close(writing)
        done = subprocess.run(
            [SERVER, f"/dev/fd/{reading}", "--dir", pathlib.Path(self.fifo).parent],
            pass_fds=[reading],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=DEADLINE_S,
            check=False,
        )
        os.close(reading)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout.decode(), "aclfile .*regular file")


class ServingTest(SpecialFilesTest):
    def assert_error(self, reply, text):
        self.assertIsInstance(reply, ErrorReply)
        self.assertRegex(reply.text, text)

    def test_config_set(self):
        server = self.start_tls_server("--io-threads", 1)
        server.expect_log("Failed to load")
        server.expect_log("Unable to update TLS configuration|Failed to configure TLS")
        with server.connect() as connection, server.connect() as other:
            for option in TLS_OPTIONS:
                words = [option, self.fifo]
                if option == "tls-client-cert-file":
                    words += ["tls-client-key-file", self.files.path("client.key")]
                if option == "tls-client-key-file":
                    words += ["tls-client-cert-file", self.files.path("client.crt")]
                self.assert_error(connection.call("CONFIG", "SET", *words), "TLS")
                self.assertEqual(other.call("PING"), b"PONG")
                server.wait_for_log(f"{option} .*regular file")
        self.assertEqual(self.connect_tls().call("PING"), b"PONG", "the old files still count")

    def test_acl_load(self):
        path = pathlib.Path(self.fifo).parent / "users.acl"
        path.write_text("user default on nopass ~* &* +@all\n", encoding="ascii")
        server = self.start_server("--aclfile", path, "--io-threads", 1)
        path.unlink()
        os.mkfifo(path)
        with server.connect() as connection, server.connect() as other:
            self.assert_error(connection.call("ACL", "LOAD"), "FIFO.*aclfile .*regular file")
            self.assertEqual(other.call("PING"), b"PONG")

    def test_config_rewrite(self):
        path = pathlib.Path(self.fifo).parent / "server.conf"
        path.write_text("hz 20\n", encoding="ascii")
        server = self.start_server("--io-threads", 1, config_file=path)
        server.expect_log("CONFIG REWRITE failed")
        path.unlink()
        os.mkfifo(path)
        with server.connect() as connection, server.connect() as other:
            self.assert_error(connection.call("CONFIG", "REWRITE"), "FIFO")
            self.assertEqual(other.call("PING"), b"PONG")


class ToolTest(SpecialFilesTest):
    def refused_by_tool(self, *options):
        return self.ended([CLUSTER_TOOL, "--etcd", "https://127.0.0.1:1", *options])

    def test_files_of_the_cluster_tool(self):
        said = self.refused_by_tool("--cacert", self.fifo, "status")
        self.assertRegex(said, "FIFO.*--cacert .*regular file")

    def test_a_password_may_come_through_a_pipe(self):
        reading, writing = os.pipe()
        os.write(writing, b"\n")
        os.close(writing)
        done = subprocess.run(
            [CLUSTER_TOOL, "--etcd", "http://127.0.0.1:1", "--user", "a",
             "--password-file", f"/dev/fd/{reading}", "status"],
            pass_fds=[reading],
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )  # fmt: skip
        os.close(reading)
        self.assertIn(b"has no password", done.stderr)


if __name__ == "__main__":
    unittest.main()
