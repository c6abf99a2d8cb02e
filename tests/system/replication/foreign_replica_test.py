#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests our server as the leader of other servers: Debian's redis-server without a module, and
models of RedisBloom and valkey-bloom. The models reject commands that these modules do not know.
The unit test tests/server/replication/leader/foreign_replicas_test.cpp covers which of these
replicas the leader serves or disconnects.
"""

import random
import struct
import unittest

from harness import seed_from_environment, wait_until
from harness.foreign_models import RedisBloomReplica, ValkeyBloomReplica
from harness.info import info
from harness.replication import DEBUG, ReplicaTest, digest
from harness.replication_peer import RawReplica
from harness.resp import ErrorReply
from harness.vector_checks import VECTORS

# Commands that occur in the streams of all servers and change no data.
FRAMES = (b"SELECT", b"MULTI", b"EXEC", b"PING", b"REPLCONF")
# Filters of tests/vectors (see its README): error rate, capacity, options, prefix and number of
# items.
VECTOR_FILTERS = {
    "tiny": ("0.01", "100", (), "item", 50),
    "scaled": ("0.01", "10", ("EXPANSION", "2"), "scaled", 200),
    "nonscaling": ("0.01", "50", ("NONSCALING",), "ns", 50),
    "tight": ("0.0001", "1000", (), "tight", 500),
    "empty": ("0.01", "100", (), "", 0),
}
FIXED_SEED = bytes.fromhex("590FF522EA7811DAA714D8093B3E7BD91D898A733E988887307F97CD28073383")
LAYER_FIELDS = "<QQQddIQB"  # format of a layer's fields in the header of BF.SCANDUMP


def apply_words(model, *words):
    model.apply([word if isinstance(word, bytes) else word.encode() for word in words])


def crc_64(data):
    """Returns the CRC-64 checksum of a DUMP payload."""
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x95AC9329AC4BC9B5 if value & 1 else 0)
    return value


class ModelTest(unittest.TestCase):
    """Compares the models of RedisBloom and valkey-bloom with files that these modules wrote."""

    def add_items(self, model, name):
        *_, prefix, count = VECTOR_FILTERS[name]
        for number in range(count):
            apply_words(model, "BF.ADD", name, f"{prefix}:{number}")
        return model.filters[name.encode()]

    def test_redisbloom(self):
        model = RedisBloomReplica()
        for name, (rate, capacity, options, *_) in VECTOR_FILTERS.items():
            apply_words(model, "BF.RESERVE", name, rate, capacity, *options)
            made = self.add_items(model, name)
            folder = VECTORS / "redisbloom" / "scandump" / name
            header, *arrays = [path.read_bytes() for path in sorted(folder.iterdir())]
            self.assertEqual(made.header(), header, name)
            self.assertEqual([bytes(layer.bits) for layer in made.layers], arrays, name)

    def test_valkey_bloom(self):
        model = ValkeyBloomReplica()
        for name, (rate, capacity, options, *_) in VECTOR_FILTERS.items():
            apply_words(model, "BF.INSERT", name, "ERROR", rate, "CAPACITY", capacity,
                        "TIGHTENING", "0.5", "SEED", FIXED_SEED,
                        *(options or ("EXPANSION", "2")))  # fmt: skip
            made = self.add_items(model, name)
            payload = [struct.pack("<BIddBQ", 1, made.growth, made.error, made.tightening, 0,
                                   len(made.layers))]  # fmt: skip
            for layer in made.layers:
                blob = struct.pack("<BQI", 1, len(layer.bits), layer.hashes)
                blob += made.seed + bytes(layer.bits)
                payload.append(struct.pack("<Q", len(blob)) + blob)
                payload.append(struct.pack("<qq", layer.items, layer.capacity))
            file = VECTORS / "valkey-bloom" / "load" / f"{name}.bin"
            self.assertEqual(b"".join(payload), file.read_bytes(), name)


class ForeignReplicaTest(ReplicaTest):
    def start_leader(self, *options):
        self.leader = self.start_server(*DEBUG, *options)
        return self.connect(self.leader)

    def expect_disconnection(self, reason):
        self.leader.expect_log(f"is disconnected: .*{reason}")
        self.leader.expect_log("is refused: ")


class ModelReplicaTest(ForeignReplicaTest):
    def attach(self):
        replica = RawReplica(self.leader.port)
        self.addCleanup(replica.close)
        replica.full_sync()
        return replica

    def apply_stream(self, client, replica, model):
        """Applies all commands that the leader has sent so far to the model. The model raises an
        error for a command that the module would reject.
        """
        client.call("SET", "end", "of the stream")
        while True:
            words = replica.read_command()
            if words[0] in FRAMES:
                continue
            model.apply(words)
            if words[:2] == [b"SET", b"end"]:
                return

    def chunks(self, client, key):
        """Returns the header of BF.SCANDUMP, and the concatenated bit arrays of all layers."""
        iterator, header = client.call("BF.SCANDUMP", key, 0)
        arrays = []
        while iterator:
            iterator, chunk = client.call("BF.SCANDUMP", key, iterator)
            arrays.append(chunk)
        return header, b"".join(arrays)

    def random_commands(self, rng, count):
        """Yields random commands on filters whose options RedisBloom and valkey-bloom support."""
        for _ in range(count):
            key = f"f{rng.randrange(12)}"
            items = [rng.randrange(2000) for _ in range(rng.randrange(1, 40))]
            rate = rng.choice(["0.01", "0.2", "0.001", repr(rng.uniform(1e-6, 0.25))])
            growth = rng.choice([("EXPANSION", rng.randrange(1, 5)), ("NONSCALING",), ()])
            capacity = rng.randrange(1, 60)
            yield rng.choice([
                ("BF.RESERVE", key, rate, capacity, *growth),
                ("BF.RESERVE", key, rate, capacity, *growth, "EX", 1000),
                ("BF.INSERT", key, "CAPACITY", capacity, "ERROR", rate, *growth, "ITEMS", *items),
                ("BF.INSERT", key, "PX", 1_000_000, "ITEMS", *items),
                ("BF.ADD", key, items[0]),
                ("BF.MADD", key, *items),
                ("BF.KADD", 2, key, "other", *items),
                ("BF.CLEAR", key),
                ("DEL", key),
            ])  # fmt: skip

    def run_model(self, layout, model):
        """Starts a leader whose filters have the layout `layout`, and applies its stream to the
        model. A Bloomery replica whose bf-layout differs must have the same data as the leader.
        The leader must still have these data after a change of its bf-layout and a reload of its
        append log. Returns a client of the leader.
        """
        client = self.start_leader("--bf-layout", layout, "--appendonly", "yes")
        replica = self.attach()
        own = self.connect(self.start_server(*DEBUG, "--bf-layout", "native"))
        self.follow(own, self.leader.port)
        self.wait_for_link(own)
        rng = random.Random(seed_from_environment())
        # The key's name is EXPANSION, which is also an option of BF.RESERVE. RedisBloom would parse
        # such a key as the option.
        client.call("BF.RESERVE", "EXPANSION", "0.01", 10)
        for command in self.random_commands(rng, 400):
            client.call(*command)
        self.apply_stream(client, replica, model)
        self.wait_until_equal_offsets(client, own)
        wanted = digest(client)
        self.assertEqual(digest(own), wanted)
        client.call("CONFIG", "SET", "bf-layout", "native")
        self.assertEqual(client.call("DEBUG", "LOADAOF"), b"OK")
        self.assertEqual(digest(client), wanted)
        self.assertGreater(len(model.filters), 5)
        self.assertGreater(max(len(made.layers) for made in model.filters.values()), 2)
        return client

    def test_redisbloom_has_the_same_bits(self):
        model = RedisBloomReplica()
        client = self.run_model("redisbloom", model)
        for key, made in model.filters.items():
            header, arrays = self.chunks(client, key)
            self.assertEqual(made.header(), header, key)
            self.assertEqual(b"".join(bytes(layer.bits) for layer in made.layers), arrays, key)

    def test_valkey_bloom_has_the_same_bits(self):
        model = ValkeyBloomReplica()
        client = self.run_model("valkey-bloom", model)
        for key, made in model.filters.items():
            header, arrays = self.chunks(client, key)
            size = struct.calcsize(LAYER_FIELDS)
            layers = header[20 : 20 + size * len(made.layers)]
            for layer, fields in zip(made.layers, struct.iter_unpack(LAYER_FIELDS, layers)):
                _, bits, items, _, _, hashes, capacity, _ = fields
                self.assertEqual((bits, items, hashes, capacity),
                                 (len(layer.bits) * 8, layer.items, layer.hashes, layer.capacity))
            self.assertEqual(b"".join(bytes(layer.bits) for layer in made.layers), arrays, key)

    def test_an_old_header_is_journalled_as_a_new_one(self):
        client = self.start_leader("--bf-layout", "redisbloom")
        client.call("BF.MADD", "made", *range(50))
        header, arrays = self.chunks(client, "made")
        # Makes a header of RedisBloom 2.2 or older, which has 32-bit capacities.
        old = header[:64] + header[64:68] + header[72:]
        self.assertEqual(len(old), 20 + 49)
        model = RedisBloomReplica()
        client.call("DEL", "made")
        replica = self.attach()
        self.assertEqual(client.call("BF.LOADCHUNK", "loaded", 1, old), b"OK")
        self.assertEqual(client.call("BF.LOADCHUNK", "loaded", 1 + len(arrays), arrays), b"OK")
        self.apply_stream(client, replica, model)
        self.assertEqual(model.filters[b"loaded"].header(), header)
        self.assertEqual(bytes(model.filters[b"loaded"].layers[0].bits), arrays)

    def test_union_causes_a_new_snapshot(self):
        client = self.start_leader("--bf-layout", "redisbloom")
        self.expect_disconnection("does not know")
        client.call("BF.MADD", "a", 1, 2)
        client.call("BF.MADD", "b", 3, 4)
        replica = self.attach()
        client.call("SET", "before", "1")
        offset = int(info(client)["master_repl_offset"])
        self.assertEqual(client.call("BF.MERGE", "a", "b", "FORCE"), b"OK")
        with self.assertRaises((EOFError, ConnectionResetError)):
            while True:
                replica.read_command()
        again = RawReplica(self.leader.port)
        self.addCleanup(again.close)
        self.assertTrue(again.psync(replica.id, offset + 1).startswith(b"+FULLRESYNC"))


class RedisServerTest(ForeignReplicaTest):
    """Debian's redis-server, whose process would end if it loaded a snapshot with a filter."""

    def start_pair(self, *options):
        client = self.start_leader(*options)
        self.redis = self.start_redis("--replicaof", f"127.0.0.1 {self.leader.port}")
        self.redis.expect_log(r".*")
        return client, self.connect(self.redis)

    def wait_for_value(self, redis, key, value):
        wait_until(lambda: redis.call("GET", key) == value, f"{key} of the replica")

    def test_it_follows_until_there_is_a_filter(self):
        client, redis = self.start_pair("--min-replicas-to-write", "0")
        self.wait_for_link(redis)
        client.call("SET", "a", "1")
        self.assertEqual(client.call("WAIT", 1, 0), 1)
        self.wait_for_value(redis, "a", b"1")
        self.expect_disconnection("layout native.* seen ")
        self.assertEqual(client.call("BF.ADD", "seen", "x"), 1)
        self.assertEqual(client.call("WAIT", 1, 200), 0)
        self.leader.wait_for_log("is disconnected: .*filters of the layout native")
        self.leader.wait_for_log("is refused: .*filters of the layout native")
        self.redis.wait_for_log("-NOMASTERLINK .*filters of the layout native")
        self.assertEqual(info(client)["connected_slaves"], "0")
        self.assertEqual(client.call("ROLE")[2], [])
        client.call("CONFIG", "SET", "min-replicas-to-write", 1)
        self.assertIsInstance(client.call("SET", "b", "2"), ErrorReply)
        client.call("CONFIG", "SET", "min-replicas-to-write", 0)
        self.assertEqual(redis.call("GET", "a"), b"1")
        self.assertEqual(info(redis)["master_link_status"], "down")
        # The leader serves the replica again when the last filter is deleted.
        client.call("DEL", "seen")
        client.call("SET", "c", "3")
        self.wait_for_value(redis, "c", b"3")
        self.assertEqual(client.call("WAIT", 1, 0), 1)

    def test_it_is_never_served(self):
        client, redis = self.start_pair("--replica-foreign", "no")
        self.leader.expect_log("is refused: ")
        self.leader.wait_for_log("is refused: .*replica-foreign no")
        self.redis.wait_for_log("-NOMASTERLINK .*replica-foreign no")
        self.assertEqual(info(client)["connected_slaves"], "0")
        self.assertEqual(redis.call("PING"), b"PONG")
        client.call("SET", "a", "1")
        self.assertEqual(client.call("CONFIG", "SET", "replica-foreign", "strings"), b"OK")
        self.wait_for_value(redis, "a", b"1")

    def test_a_restored_value_of_a_newer_server(self):
        client, redis = self.start_pair()
        self.wait_for_link(redis)
        # Makes a DUMP payload of the string "v", with the version of Redis 7.4.
        payload = bytes.fromhex("000176") + struct.pack("<H", 12)
        payload += struct.pack("<Q", crc_64(payload))
        self.assertEqual(client.call("RESTORE", "a", 0, payload), b"OK")
        self.wait_for_value(redis, "a", b"v")


if __name__ == "__main__":
    unittest.main(verbosity=2)
