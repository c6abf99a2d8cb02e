#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compares the replies to COMMAND with those of redis-server 7.0, for all commands that both
servers have."""

import unittest

from harness import ServerTest

# The fields of a command in COMMAND INFO, in order. The last field, subcommands, is omitted here
# and compared separately.
FIELDS = (
    "name",
    "arity",
    "flags",
    "first key",
    "last key",
    "step",
    "categories",
    "tips",
    "key specifications",
)
# Prefixes of the commands that only our server has: commands on filters, and commands that nodes
# of a cluster send to each other.
OURS_ONLY_PREFIXES = (b"bf.", b"clusterx")
# Version of the redis-server to compare with. Commands of later versions exist only in our server.
ORACLE_VERSION = (7, 0)
# Subcommands of DEBUG in our command table. The command table of Redis lists none of them.
DEBUG_WORDS = (
    b"change-repl-id", b"config-rewrite-force-all", b"digest", b"digest-value", b"error", b"help",
    b"loadaof", b"log", b"object", b"pause-cron", b"populate", b"protocol", b"reload",
    b"replybuffer", b"set-active-expire", b"sleep", b"stringmatch-len",
)
DEBUG = {b"debug|" + word for word in DEBUG_WORDS}

# Maps (command, field) to a deliberate difference: the elements that only our server has, and the
# elements that only Redis has.
DELIBERATE = {}


# Groups of commands that this server does not support: commands on other types of values, and
# scripts.
MISSING_GROUPS = {b"list", b"hash", b"set", b"sorted-set", b"stream", b"geo", b"hyperloglog",
                  b"scripting"}  # fmt: skip
# Further commands that we do not support.
MISSING = {b"sort", b"sort_ro"}


def command_table(connection):
    """Returns every command and subcommand by its full name."""
    table = {}

    def add(command):
        *fields, subcommands = command
        table[bytes(fields[0])] = dict(zip(FIELDS, fields))
        for subcommand in subcommands:
            add(subcommand)

    for command in connection.call("COMMAND"):
        add(command)
    return table


def without_note(specification):
    """Replaces the notes of a key specification, because each server words them differently. The
    result shows only whether notes exist."""
    words = list(specification)
    if words[0] == b"notes":
        words[1] = b"..." if words[1] else b""
    return words


class CommandTableTest(ServerTest):
    def setUp(self):
        self.server = self.start_server()
        self.ours = self.server.connect()
        self.addCleanup(self.ours.close)
        self.theirs = self.start_redis().connect()
        self.addCleanup(self.theirs.close)

    def shared_tables(self):
        ours, theirs = command_table(self.ours), command_table(self.theirs)
        own = {name for name in ours if not name.startswith(OURS_ONLY_PREFIXES)} - theirs.keys()
        self.assertEqual(own, DEBUG | self.newer_than_the_oracle())
        shared = ours.keys() & theirs.keys()
        self.assertGreater(len(shared), 100)
        return {name: (ours[name], theirs[name]) for name in sorted(shared)}

    def newer_than_the_oracle(self):
        """Returns the commands of our server that this redis-server lacks, because a later version
        of Redis added them.
        """
        connection = self.server.connect()
        self.addCleanup(connection.close)
        connection.call("HELLO", "3")
        documents = connection.call("COMMAND", "DOCS")
        newer = set()
        for name, document in documents.items():
            for full_name, (_, since) in self.flatten(name, document).items():
                if since is None or full_name.startswith(OURS_ONLY_PREFIXES):
                    continue
                if tuple(int(part) for part in since.split(b".")[:2]) > ORACLE_VERSION:
                    newer.add(full_name)
        self.assertIn(b"waitaof", newer)
        return newer

    def test_every_difference_to_redis_is_listed(self):
        found = set()
        for name, (ours, theirs) in self.shared_tables().items():
            for specifications in (ours, theirs):
                specifications["key specifications"] = [
                    without_note(one) for one in specifications["key specifications"]
                ]
            for field in FIELDS:
                mine, other = ours[field], theirs[field]
                if mine == other:
                    continue
                with self.subTest(command=name, field=field):
                    self.assertIn((name, field), DELIBERATE, f"ours {mine}, Redis {other}")
                    found.add((name, field))
                    more, less = set(mine) - set(other), set(other) - set(mine)
                    self.assertEqual((more, less), DELIBERATE[name, field])
        self.assertEqual(found, set(DELIBERATE), "a listed difference no longer exists")

    def test_replies_are_the_same_bytes(self):
        """The replies of both servers must have the same types, because client libraries
        distinguish strings from simple strings, and sets from arrays.
        """
        different = {name for name, _ in DELIBERATE}
        noted = {b"bitfield", b"getex", b"set"}
        for protocol in ("2", "3"):
            for connection in (self.ours, self.theirs):
                connection.call("HELLO", protocol)
            for name in self.shared_tables():
                if name in different | noted or self.has_subcommands(name):
                    continue
                raw = [c.call_raw("COMMAND", "INFO", name) for c in (self.ours, self.theirs)]
                self.assertEqual(raw[0], raw[1], name)

    def has_subcommands(self, name):
        ((*_, subcommands),) = self.ours.call("COMMAND", "INFO", name)
        return len(subcommands) > 0

    def test_groups_and_versions_are_those_of_redis(self):
        documents = []
        for connection in (self.ours, self.theirs):
            connection.call("HELLO", "3")
            documents.append(connection.call("COMMAND", "DOCS"))
        compared = 0
        for name in documents[0].keys() & documents[1].keys():
            ours, theirs = (self.flatten(name, one[name]) for one in documents)
            for full_name in ours.keys() & theirs.keys():
                with self.subTest(command=full_name):
                    self.assertEqual(ours[full_name], theirs[full_name])
                compared += 1
        self.assertGreater(compared, 100)

    def test_missing_commands_are_listed(self):
        """The commands of Redis that our server lacks must be those that docs/compatibility.md
        lists."""
        groups = []
        for connection in (self.ours, self.theirs):
            connection.call("HELLO", "3")
            flat = {}
            for name, document in connection.call("COMMAND", "DOCS").items():
                for full_name, (group, _) in self.flatten(name, document).items():
                    flat[full_name] = group
            groups.append(flat)
        missing = {
            name for name, group in groups[1].items()
            if name not in groups[0] and group not in MISSING_GROUPS
        }  # fmt: skip
        self.assertEqual(missing, MISSING)

    def flatten(self, name, document):
        """Returns the group and version of a command and of each of its subcommands."""
        flat = {name: (document[b"group"], document[b"since"])}
        for sub_name, one in document.get(b"subcommands", {}).items():
            # All HELP subcommands share one row of our command table, so all of them have the same
            # version. This version is not compared.
            version = None if sub_name.endswith(b"|help") else one[b"since"]
            flat[sub_name] = (one[b"group"], version)
        return flat


if __name__ == "__main__":
    unittest.main()
