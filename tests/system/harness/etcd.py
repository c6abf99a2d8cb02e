# SPDX-License-Identifier: MIT
"""Starts etcd clusters for the system tests, in a temporary folder.

Members listen on free ports of 127.0.0.1. They end with the test. If the test process dies, the
kernel kills them.

    etcd = self.start_etcd(members=3)      # in a test case that derives from EtcdTest
    etcd.endpoints                         # ["http://127.0.0.1:…", …]
    etcd.leader().suspend()
"""

import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness.ports import free_port
from harness.process import suspend
from harness.waiting import DEADLINE_S, wait_until

PR_SET_PDEATHSIG = 1
# The heartbeat interval and the election timeout are half of etcd's defaults, so that a new leader
# is elected soon.
HEARTBEAT_MS = 50
ELECTION_MS = 500


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Member:
    """One etcd process. It may be killed, suspended and restarted with its data."""

    def __init__(self, name, folder, tls, host, client_auth):
        self.name = name
        self.folder = folder
        self.tls = tls
        self.host = host
        self.client_auth = client_auth
        self.client_port = free_port()
        self.peer_port = free_port()
        self.process = None

    @property
    def endpoint(self):
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.client_port}"

    @property
    def peer_url(self):
        return f"http://{self.host}:{self.peer_port}"

    def start(self, initial_cluster):
        words = [
            "etcd", "--name", self.name, "--data-dir", self.folder / self.name,
            "--listen-client-urls", self.endpoint, "--advertise-client-urls", self.endpoint,
            "--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url,
            "--initial-cluster", initial_cluster, "--initial-cluster-token", self.folder.name,
            "--heartbeat-interval", HEARTBEAT_MS, "--election-timeout", ELECTION_MS,
            "--logger", "zap", "--unsafe-no-fsync",
        ]  # fmt: skip
        if "--unsafe-no-fsync" not in etcd_help():
            words.remove("--unsafe-no-fsync")
        if self.tls:
            words += ["--cert-file", self.tls.path("server.crt"),
                      "--key-file", self.tls.path("server.key")]  # fmt: skip
        if self.client_auth:
            words += ["--client-cert-auth", "--trusted-ca-file", self.tls.path("ca.crt")]
        with open(self.folder / f"{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "ETCD_UNSUPPORTED_ARCH": os.uname().machine},
                preexec_fn=die_with_parent,
            )  # fmt: skip

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def suspend(self):
        suspend(self.process.pid)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        if self.is_running():
            self.process.kill()
        if self.process is not None:
            self.process.wait()


class Etcd:
    """A cluster of etcd members."""

    def __init__(self, members, tls=None, host="127.0.0.1", client_auth=False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-etcd-"))
        self.tls = tls
        self.root = None  # "root:PASSWORD" if authentication is enabled
        self.members = [
            Member(f"m{i}", self.folder, tls, host, client_auth) for i in range(members)
        ]
        self.start()

    @property
    def endpoints(self):
        return [member.endpoint for member in self.members]

    def start(self):
        """Starts each member that is not running, and waits until all members answer."""
        for member in self.members:
            if not member.is_running():
                member.start(",".join(f"{each.name}={each.peer_url}" for each in self.members))
        for member in self.members:
            wait_until(
                lambda one=member: self._has_started(one),
                lambda one=member: f"the start of {one.name}, in\n{self._log_of(one)}\n",
            )

    def _log_of(self, member):
        return (self.folder / f"{member.name}.log").read_text(errors="replace")[-3000:]

    def _has_started(self, member):
        if not member.is_running():
            raise AssertionError(f"{member.name} of etcd has ended:\n{self._log_of(member)}")
        return self.status(member) is not None

    def save(self, path):
        """Saves a backup of etcd's data to `path`."""
        self.control("snapshot", "save", path, member=self.members[0])

    def restore(self, path=None):
        """Replaces etcd's data by the backup at `path`, or deletes them if `path` is None.
        REQUIRES: the cluster has one member.
        """
        (member,) = self.members
        member.kill()
        shutil.rmtree(self.folder / member.name)
        if path is not None:
            subprocess.run(
                ["etcdctl", "snapshot", "restore", path, "--data-dir", self.folder / member.name,
                 "--name", member.name, "--initial-cluster", f"{member.name}={member.peer_url}",
                 "--initial-cluster-token", self.folder.name,
                 "--initial-advertise-peer-urls", member.peer_url],
                env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, check=True,
                timeout=DEADLINE_S,
            )  # fmt: skip
        self.start()

    def stop(self):
        for member in self.members:
            member.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def control(self, *words, member=None, check=True):
        """Runs etcdctl and returns its output. Returns None if etcdctl failed and `check` is false.
        """
        endpoints = member.endpoint if member else ",".join(self.endpoints)
        # Health checks (`check` is false) have short timeouts, because their callers retry. Other
        # commands may take long, especially when etcd hashes a password.
        patience = ("5s", "2s") if not check else ("25s", "10s")
        command = ["etcdctl", "--endpoints", endpoints, f"--command-timeout={patience[0]}",
                   f"--dial-timeout={patience[1]}"]  # fmt: skip
        if self.tls:
            command += ["--cacert", self.tls.path("ca.crt")]
        if self.members[0].client_auth:
            command += ["--cert", self.tls.path("client.crt"), "--key", self.tls.path("client.key")]
        if self.root:
            command += ["--user", self.root]
        done = subprocess.run(
            command + [str(word) for word in words], env={**os.environ, "ETCDCTL_API": "3"},
            capture_output=True, check=False, timeout=DEADLINE_S,
        )  # fmt: skip
        if done.returncode != 0:
            if not check:
                return None
            raise AssertionError(f"etcdctl {words}: {done.stderr.decode()}")
        return done.stdout.decode()

    def status(self, member):
        """Returns a member's status; None if the member does not answer or knows no leader."""
        text = self.control("endpoint", "status", "-w", "json", member=member, check=False)
        if not text or not (statuses := json.loads(text)):
            return None
        status = statuses[0]["Status"]
        return status if status.get("leader") else None

    def leader(self):
        """Waits until a running member reports that it is the leader, and returns that member. A
        suspended member cannot report.
        """
        found = []

        def is_led():
            for member in self.members:
                status = self.status(member) if member.is_running() else None
                if status and status["leader"] == status["header"]["member_id"]:
                    found.append(member)
                    return True
            return False

        wait_until(is_led, "a leader of etcd")
        return found[0]

    def followers(self, leader):
        return [member for member in self.members if member is not leader]

    def enable_auth(self, password):
        """Creates the users root (all rights) and bloomery (keys below bloomery/), both with
        `password`.
        """
        self.control("user", "add", f"root:{password}")
        self.control("user", "grant-role", "root", "root")
        self.control("role", "add", "bloomery")
        self.control("role", "grant-permission", "bloomery", "--prefix=true", "readwrite",
                     "bloomery/")  # fmt: skip
        self.control("user", "add", f"bloomery:{password}")
        self.control("user", "grant-role", "bloomery", "bloomery")
        self.control("auth", "enable")
        self.root = f"root:{password}"


def etcd_help():
    """Returns the output of `etcd --help`; the options differ from version to version."""
    if not hasattr(etcd_help, "text"):
        done = subprocess.run(["etcd", "--help"], capture_output=True, check=False)
        etcd_help.text = (done.stdout + done.stderr).decode()
    return etcd_help.text


class EtcdTest(unittest.TestCase):
    """A test case that starts clusters of etcd and stops them at its end."""

    def start_etcd(self, members=1, tls=None, host="127.0.0.1", client_auth=False):
        """Starts a cluster of etcd. With `client_auth`, it requires the certificate `client`."""
        etcd = Etcd(members, tls, host, client_auth)
        self.addCleanup(etcd.stop)
        return etcd
