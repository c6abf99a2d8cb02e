#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A client program that keeps a deletable Bloom filter in two bitmaps: BITFIELD writes the filter
and a collision bitmap.

The filter is divided into regions. If an added item finds one of its bits already set, the bit's
region is marked in the collision bitmap. Deleting an item clears its bits in unmarked regions,
because no other item uses these bits (Rothenberg, Macapuna, Verdi, Magalhaes 2010, "The deletable
Bloom filter"). The program repeats all steps on bitmaps in its own memory. At the end these must
equal the server's bitmaps byte by byte. Argument: PORT.
"""

import hashlib
import sys

import redis

BITS = 1 << 14
HASHES = 7
# Number of items with which the filter's error rate is 1 %.
CAPACITY = 1700
BATCH = 100


def offsets(item):
    """Returns the item's bit offsets without duplicates, because two equal offsets of one item are
    not a collision."""
    digest = hashlib.blake2b(item.encode(), digest_size=4 * HASHES).digest()
    found = {int.from_bytes(digest[i : i + 4], "big") % BITS for i in range(0, len(digest), 4)}
    return sorted(found)


class ModelBitmap:
    def __init__(self):
        self.bits = set()

    def swap(self, offset, bit):
        before = offset in self.bits
        (self.bits.add if bit else self.bits.discard)(offset)
        return int(before)

    def to_bytes(self):
        size = max(self.bits, default=-1) // 8 + 1
        out = bytearray(size)
        for offset in self.bits:
            out[offset // 8] |= 0x80 >> offset % 8
        return bytes(out)


class DeletableFilter:
    def __init__(self, client, name, region_bits):
        self.client = client
        self.filter_key, self.collision_key = f"{name}:filter", f"{name}:collisions"
        self.region_bits = region_bits
        self.model, self.model_collisions = ModelBitmap(), ModelBitmap()

    def region(self, offset):
        return offset // self.region_bits

    def _bitfields(self, key, operation, offset_lists, *value):
        """Sends one BITFIELD for each item, all in one pipeline."""
        pipe = self.client.pipeline(transaction=False)
        for item_offsets in offset_lists:
            words = []
            for offset in item_offsets:
                words += [operation, "u1", f"#{offset}", *value]
            pipe.execute_command("BITFIELD", key, *words)
        return pipe.execute()

    def add_all(self, items):
        for start in range(0, len(items), BATCH):
            places = [offsets(item) for item in items[start : start + BATCH]]
            befores = self._bitfields(self.filter_key, "SET", places, 1)
            hit = set()
            for item_offsets, before in zip(places, befores):
                hit |= {self.region(o) for o, was_set in zip(item_offsets, before) if was_set}
                for offset in item_offsets:
                    if self.model.swap(offset, 1):
                        self.model_collisions.swap(self.region(offset), 1)
            if hit:
                self._bitfields(self.collision_key, "SET", [sorted(hit)], 1)

    def has_all(self, items):
        replies = self._bitfields(self.filter_key, "GET", [offsets(item) for item in items])
        return [all(reply) for reply in replies]

    def delete(self, item):
        """Clears the item's bits in unmarked regions. Returns True if the filter no longer finds
        the item.
        """
        places = offsets(item)
        (marks,) = self._bitfields(
            self.collision_key, "GET", [[self.region(offset) for offset in places]]
        )
        free = [offset for offset, marked in zip(places, marks) if not marked]
        if free:
            self._bitfields(self.filter_key, "SET", [free], 0)
        for offset in places:
            if self.region(offset) not in self.model_collisions.bits:
                self.model.swap(offset, 0)
        return bool(free)


def same_bits(ours, model):
    # The server's bitmap never shrinks: after its last bits are cleared, it ends with zero bytes.
    return ours.rstrip(b"\0") == model.rstrip(b"\0")


def run(client, region_bits, load):
    client.flushall()
    deletable = DeletableFilter(client, "fav", region_bits)
    items = [f"item:{number}" for number in range(int(CAPACITY * load))]
    deletable.add_all(items)
    assert all(deletable.has_all(items)), "an item got lost"
    gone, kept = items[::3], [item for i, item in enumerate(items) if i % 3]
    deleted = [deletable.delete(item) for item in gone]
    assert all(deletable.has_all(kept)), "a deletion took another item along"
    still_there = deletable.has_all(gone)
    for was_deleted, is_there in zip(deleted, still_there):
        assert was_deleted != is_there, "an item with a cleared bit is still found, or the reverse"
    assert same_bits(client.get(deletable.filter_key), deletable.model.to_bytes())
    marks = client.get(deletable.collision_key) or b""
    assert same_bits(marks, deletable.model_collisions.to_bytes())
    return sum(still_there) / len(gone)


def main():
    client = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]))
    residues = {
        (region_bits, load): run(client, region_bits, load)
        for region_bits in (10, 4, 1)
        for load in (0.25, 0.5, 1.0)
    }
    for (region_bits, load), residue in residues.items():
        print(f"regions of {region_bits} bits, load {load:.0%}: {residue:.1%} stay")
    assert residues[10, 0.25] < 0.01, "hardly anything collides at a quarter of the load"
    assert residues[1, 1.0] < 0.03, "with a mark per bit only the error rate stays"
    assert residues[10, 1.0] > residues[4, 1.0] > residues[1, 1.0], "finer regions free more"


if __name__ == "__main__":
    main()
