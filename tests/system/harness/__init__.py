# SPDX-License-Identifier: MIT
"""The building blocks of the system tests.

Each folder of tests has a symbolic link to this package, so that a test file also runs by itself.
This file exports the names that most tests need. Tests import other names from the modules below.

| module | building block |
| --- | --- |
| settings, counts | settings from the environment: programs, seed, size of a test |
| process, server_case | a server process, and the test case that owns servers |
| waiting, ports | waiting for a condition, and free ports |
| resp, info | a raw client that keeps the bytes of each reply, and the fields of INFO |
| tls, tls_files | servers and connections with certificates |
| preloads | libraries that change the time, processes and threads of a server |
| disks, network, cutting_proxy | disks that fill or lose power, networks and links that are cut |
| mode_matrix | the features of the server, and a test of each pair |
| write_load | writers that know what a server must hold |
| command_stream, server_stream, reply_matching | random commands, to compare with redis-server |
| replication, replication_peer, scripted_leader | replicas, real and simulated |
| sentinel, sentinel_writers | a leader, its replicas and redis-sentinel, and their clients |
| etcd, cluster, cluster_load, cluster_writers, shard_writer | clusters, and writers to them |
| node, pages, web_tools | Node clients, the programs of docs/, programs that serve HTTP |
| browser | the dashboard in Chromium |
| stories, vector_checks | shared parts of users' stories and of tests with other servers' files |
| debian_root | a bare Debian, to install into |
| yaml_files | what a YAML file holds |
| soak_load | the load of scripts/soak.sh |
"""

from harness.ports import free_port, free_port_with_bus
from harness.process import Process, ignores_interrupts, process_state
from harness.server_case import ServerTest
from harness.settings import (
    CLUSTER_TOOL,
    ROOT,
    SANITIZED,
    SERVER,
    SERVER_IS_REDIS,
    SYSTEM_TESTS,
    seed_from_environment,
)
from harness.waiting import DEADLINE_S, SLOW, let_time_pass, pace, wait_until, wait_until_loaded

__all__ = [
    "CLUSTER_TOOL",
    "DEADLINE_S",
    "ROOT",
    "SANITIZED",
    "SERVER",
    "SERVER_IS_REDIS",
    "SLOW",
    "SYSTEM_TESTS",
    "Process",
    "ServerTest",
    "free_port",
    "free_port_with_bus",
    "ignores_interrupts",
    "let_time_pass",
    "pace",
    "process_state",
    "seed_from_environment",
    "wait_until",
    "wait_until_loaded",
]
