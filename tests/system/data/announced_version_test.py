#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks that the server has all commands and options of the Redis version that it announces."""

import unittest

from harness import ServerTest

ANNOUNCED = "7.4.0"

# Commands of Redis 7.4 in the groups bitmap, cluster, connection, generic, pubsub, scripting,
# server, string and transactions. Each command is followed by the names of its options. Further
# lines of a command are indented.
COMMANDS = """
acl
acl|cat
acl|deluser
acl|dryrun
acl|genpass
acl|getuser
acl|help
acl|list
acl|load
acl|log: RESET
acl|save
acl|setuser
acl|users
acl|whoami
append
asking
auth
bgrewriteaof
bgsave: SCHEDULE
bitcount: BIT BYTE
bitfield: FAIL GET INCRBY OVERFLOW SAT SET WRAP
bitfield_ro: GET
bitop: AND NOT OR XOR
bitpos: BIT BYTE
client
client|caching: NO YES
client|getname
client|getredir
client|help
client|id
client|info
client|kill: ADDR ID LADDR MASTER MAXAGE NO NORMAL PUBSUB REPLICA SKIPME SLAVE TYPE USER YES
client|list: ID MASTER NORMAL PUBSUB REPLICA TYPE
client|no-evict: OFF ON
client|no-touch: OFF ON
client|pause: ALL WRITE
client|reply: OFF ON SKIP
client|setinfo: LIB-NAME LIB-VER
client|setname
client|tracking: BCAST NOLOOP OFF ON OPTIN OPTOUT PREFIX REDIRECT
client|trackinginfo
client|unblock: ERROR TIMEOUT
client|unpause
cluster
cluster|addslots
cluster|addslotsrange
cluster|bumpepoch
cluster|count-failure-reports
cluster|countkeysinslot
cluster|delslots
cluster|delslotsrange
cluster|failover: FORCE TAKEOVER
cluster|flushslots
cluster|forget
cluster|getkeysinslot
cluster|help
cluster|info
cluster|keyslot
cluster|links
cluster|meet
cluster|myid
cluster|myshardid
cluster|nodes
cluster|replicas
cluster|replicate
cluster|reset: HARD SOFT
cluster|saveconfig
cluster|set-config-epoch
cluster|setslot: IMPORTING MIGRATING NODE STABLE
cluster|shards
cluster|slaves
cluster|slots
command
command|count
command|docs
command|getkeys
command|getkeysandflags
command|help
command|info
command|list: ACLCAT FILTERBY MODULE PATTERN
config
config|get
config|help
config|resetstat
config|rewrite
config|set
copy: DB REPLACE
dbsize
debug
decr
decrby
del
discard
dump
echo
exec
exists
expire: GT LT NX XX
expireat: GT LT NX XX
expiretime
failover: ABORT FORCE TIMEOUT TO
flushall: ASYNC SYNC
flushdb: ASYNC SYNC
function
function|flush: ASYNC SYNC
function|help
function|kill
function|list: LIBRARYNAME WITHCODE
function|stats
get
getbit
getdel
getex: EX EXAT PERSIST PX PXAT
getrange
getset
hello: AUTH SETNAME
incr
incrby
incrbyfloat
info
keys
lastsave
latency
latency|doctor
latency|graph
latency|help
latency|histogram
latency|history
latency|latest
latency|reset
lcs: IDX LEN MINMATCHLEN WITHMATCHLEN
lolwut: VERSION
memory
memory|doctor
memory|help
memory|malloc-stats
memory|purge
memory|stats
memory|usage: SAMPLES
mget
migrate: AUTH AUTH2 COPY KEYS REPLACE
module
module|help
module|list
module|load
module|loadex: ARGS CONFIG
module|unload
monitor
move
mset
msetnx
multi
object
object|encoding
object|freq
object|help
object|idletime
object|refcount
persist
pexpire: GT LT NX XX
pexpireat: GT LT NX XX
pexpiretime
ping
psetex
psubscribe
psync
pttl
publish
pubsub
pubsub|channels
pubsub|help
pubsub|numpat
pubsub|numsub
pubsub|shardchannels
pubsub|shardnumsub
punsubscribe
quit
randomkey
readonly
readwrite
rename
renamenx
replconf
replicaof: NO ONE
reset
restore: ABSTTL FREQ IDLETIME REPLACE
role
save
scan: COUNT MATCH TYPE
script
script|exists
script|flush: ASYNC SYNC
script|help
script|kill
select
set: EX EXAT GET KEEPTTL NX PX PXAT XX
setbit
setex
setnx
setrange
shutdown: ABORT FORCE NOSAVE NOW SAVE
slaveof: NO ONE
slowlog
slowlog|get
slowlog|help
slowlog|len
slowlog|reset
spublish
ssubscribe
strlen
subscribe
substr
sunsubscribe
swapdb
sync
time
touch
ttl
type
unlink
unsubscribe
unwatch
wait
waitaof
watch
"""

# Commands of Redis 7.4 that this server lacks, grouped by the reason that docs/compatibility.md
# gives.
ABSENT = {
    "scripts and functions": """eval eval_ro evalsha evalsha_ro fcall fcall_ro function|delete
        function|dump function|load function|restore script|debug script|load""",
    "SORT": "sort sort_ro",
}


def parse_commands(text):
    """Returns a dict from each command to the set of its options."""
    commands = {}
    for line in text.strip().splitlines():
        if not line.startswith(" "):
            name, _, words = line.partition(":")
            commands[name] = set()
        else:
            words = line
        commands[name].update(words.split())
    return commands


def tokens_of(arguments):
    """Returns the names of options in the `arguments` of a reply to COMMAND DOCS, in upper case."""
    found = set()
    for argument in arguments:
        if b"token" in argument:
            found.add(argument[b"token"].decode().upper())
        found |= tokens_of(argument.get(b"arguments", []))
    return found


class AnnouncedVersionTest(ServerTest):
    def setUp(self):
        self.connection = self.start_server().connect()
        self.addCleanup(self.connection.close)
        self.hello = self.connection.call("HELLO", "3")

    def documented(self):
        commands = {}

        def add(documents):
            for name, document in documents.items():
                commands[name.decode()] = tokens_of(document.get(b"arguments", []))
                add(document.get(b"subcommands", {}))

        add(self.connection.call("COMMAND", "DOCS"))
        return commands

    def test_the_version_is_announced(self):
        self.assertEqual(self.hello[b"version"].decode(), ANNOUNCED)
        info = bytes(self.connection.call("INFO", "server")).decode()
        self.assertIn(f"redis_version:{ANNOUNCED}\r\n", info)

    def test_its_commands_and_options_are_here(self):
        documented = self.documented()
        expected = parse_commands(COMMANDS)
        self.assertGreater(len(expected), 150)
        for name, options in expected.items():
            with self.subTest(command=name):
                self.assertIn(name, documented)
                self.assertEqual(options - documented[name], set())

    def test_absent_commands_are_unknown(self):
        documented = self.documented()
        for names in ABSENT.values():
            self.assertEqual(set(names.split()) & documented.keys(), set())


if __name__ == "__main__":
    unittest.main()
