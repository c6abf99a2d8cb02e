# SPDX-License-Identifier: MIT
"""Models of RedisBloom and of valkey-bloom as replicas. They apply a stream of commands as these
modules do, and reject every argument that the modules do not know.

foreign_replica_test.py compares the models with files that the modules wrote themselves."""

import math
import struct

MASK = (1 << 64) - 1


class Refused(Exception):
    """Raised if the module of a replica would reject a command of its leader. A real leader would
    not notice the error, because replicas send it no replies.
    """


def murmur_64(data, seed):
    factor, shift = 0xC6A4A7935BD1E995, 47
    value = seed ^ (len(data) * factor & MASK)
    whole = len(data) // 8 * 8
    for (block,) in struct.iter_unpack("<Q", data[:whole]):
        block = block * factor & MASK
        block ^= block >> shift
        value = (value ^ (block * factor & MASK)) * factor & MASK
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * factor & MASK
    value ^= value >> shift
    value = value * factor & MASK
    return value ^ value >> shift


def _rotate(value, bits):
    return (value << bits | value >> (64 - bits)) & MASK


def sip_13(key, message):
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D,
         k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]  # fmt: skip

    def mix():
        v[0] = v[0] + v[1] & MASK
        v[2] = v[2] + v[3] & MASK
        v[1] = _rotate(v[1], 13) ^ v[0]
        v[3] = _rotate(v[3], 16) ^ v[2]
        v[0] = _rotate(v[0], 32)
        v[2] = v[2] + v[1] & MASK
        v[0] = v[0] + v[3] & MASK
        v[1] = _rotate(v[1], 17) ^ v[2]
        v[3] = _rotate(v[3], 21) ^ v[0]
        v[2] = _rotate(v[2], 32)

    whole = len(message) // 8 * 8
    tail = message[whole:].ljust(7, b"\0") + bytes([len(message) & 0xFF])
    for (block,) in struct.iter_unpack("<Q", message[:whole] + tail):
        v[3] ^= block
        mix()
        v[0] ^= block
    v[2] ^= 0xFF
    for _ in range(3):
        mix()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


class Layer:
    """One layer of a filter: a bit array, with the fields that the modules store for it."""

    def __init__(self, capacity, error, hashes, size, items=0):
        self.capacity, self.error, self.hashes, self.items = capacity, error, hashes, items
        self.bits = bytearray(size)

    def has(self, probes):
        return all(self.bits[bit >> 3] & 1 << (bit & 7) for bit in probes)

    def mark(self, probes):
        for bit in probes:
            self.bits[bit >> 3] |= 1 << (bit & 7)
        self.items += 1


class Filter:
    """Base class of RedisBloom's and valkey-bloom's filters. With `growth` 0 the filter never
    grows.
    """

    def __init__(self, growth):
        self.growth = growth
        self.layers = []

    def add(self, item):
        hashes = self.hash(item)
        if any(layer.has(self.probes(layer, hashes)) for layer in self.layers):
            return
        last = self.layers[-1]
        if last.items >= last.capacity:
            if self.growth == 0:
                raise Refused("non scaling filter is full")
            self.layers.append(self.next_layer(last))
            last = self.layers[-1]
        last.mark(self.probes(last, hashes))


class RedisBloomFilter(Filter):
    NOT_ROUNDED, HASHES_64_BITS, NOT_SCALING = 1, 4, 8

    def __init__(self, growth):
        super().__init__(growth)
        self.stored_growth = growth or 2

    @classmethod
    def make(cls, capacity, error, growth):
        made = cls(growth)
        made.layers.append(cls.layer(capacity, error * 0.5 if growth else error))
        return made

    @staticmethod
    def bits_per_item(error):
        return abs(math.log(error) / 0.480453013918201)

    @classmethod
    def layer(cls, capacity, error):
        per_item = cls.bits_per_item(error)
        bits = max(1, int(capacity * per_item))
        hashes = math.ceil(0.693147180559945 * per_item)
        return Layer(capacity, error, hashes, (bits + 63) // 64 * 8)

    def next_layer(self, last):
        return self.layer(last.capacity * self.growth, last.error * 0.5)

    @staticmethod
    def hash(item):
        first = murmur_64(item, 0xC6A4A7935BD1E995)
        return first, murmur_64(item, first)

    @staticmethod
    def probes(layer, hashes):
        first, step = hashes
        return [(first + i * step & MASK) % (len(layer.bits) * 8) for i in range(layer.hashes)]

    def header(self):
        options = self.NOT_ROUNDED | self.HASHES_64_BITS | (0 if self.growth else self.NOT_SCALING)
        out = [struct.pack("<QIII", sum(layer.items for layer in self.layers), len(self.layers),
                           options, self.stored_growth)]  # fmt: skip
        for layer in self.layers:
            size = len(layer.bits)
            out.append(struct.pack("<QQQddIQB", size, size * 8, layer.items, layer.error,
                                   self.bits_per_item(layer.error), layer.hashes,
                                   layer.capacity, 0))  # fmt: skip
        return b"".join(out)

    @classmethod
    def from_header(cls, header):
        """Creates a filter from the first chunk of BF.SCANDUMP, with the checks of RedisBloom
        2.8.20.
        """
        if len(header) < 20:
            raise Refused("received bad data")
        total, count, options, growth = struct.unpack_from("<QIII", header)
        if count == 0 or len(header) != 20 + 53 * count:
            raise Refused("received bad data")
        if options & ~cls.NOT_SCALING != cls.NOT_ROUNDED | cls.HASHES_64_BITS:
            raise Refused("this model has no older forms")
        made = cls(0 if options & cls.NOT_SCALING else growth)
        made.stored_growth = growth
        for fields in struct.iter_unpack("<QQQddIQB", header[20:]):
            size, bits, items, error, per_item, hashes, capacity, exponent = fields
            is_sound = 0 < error < 1 and exponent == 0 and bits == size * 8 != 0
            if not is_sound or hashes != math.ceil(0.693147180559945 * per_item):
                raise Refused("received bad data")
            made.layers.append(Layer(capacity, error, hashes, size, items))
        if total != sum(layer.items for layer in made.layers):
            raise Refused("received bad data")
        return made

    def load_chunk(self, iterator, data):
        position = iterator - len(data) - 1
        if iterator <= 0 or iterator < len(data):
            raise Refused("received bad data")
        for layer in self.layers:
            if position < len(layer.bits):
                if position + len(data) > len(layer.bits):
                    raise Refused("invalid chunk - Too big for current filter")
                layer.bits[position : position + len(data)] = data
                return
            position -= len(layer.bits)
        raise Refused("invalid offset - no link found")


class ValkeyBloomFilter(Filter):
    def __init__(self, capacity, error, growth, tightening, seed):
        super().__init__(growth)
        self.error, self.tightening, self.seed = error, tightening, seed
        self.layers.append(self.layer(capacity, error))

    @staticmethod
    def layer(capacity, error):
        ln2 = math.log(2)
        size = math.ceil(capacity * math.log(error) / (-8.0 * (ln2 * ln2)))
        return Layer(capacity, error, max(1, math.floor(size * 8 / capacity * ln2 + 0.5)), size)

    def next_layer(self, last):
        error = self.error * self.tightening ** len(self.layers)
        return self.layer(last.capacity * self.growth, error)

    def hash(self, item):
        message = struct.pack("<Q", len(item)) + item
        return sip_13(self.seed[:16], message), sip_13(self.seed[16:], message)

    @staticmethod
    def probes(layer, hashes):
        first, step = hashes
        count = len(layer.bits) * 8
        later = [(first + i * step & MASK) % 0xFFFFFFFFFFFFFFC5 % count
                 for i in range(2, layer.hashes)]  # fmt: skip
        return [first % count, step % count][: layer.hashes] + later


class Replica:
    """A replica that applies commands and rejects those that are not in `commands`."""

    def __init__(self):
        self.filters = {}
        self.strings = {}
        self.commands = {
            "DEL": (2, None, self.delete),
            "SET": (3, None, self.set),
            "PEXPIREAT": (3, 3, lambda *_: None),
            "BF.ADD": (3, 3, lambda key, item: self.add_all(key, [item])),
            "BF.MADD": (3, None, lambda key, *items: self.add_all(key, items)),
            "BF.INSERT": (4, None, self.insert),
        }

    def apply(self, words):
        name = words[0].decode().upper()
        least, most, handler = self.commands.get(name, (0, None, None))
        if handler is None:
            raise Refused(f"unknown command {words}")
        if len(words) < least or (most is not None and len(words) > most):
            raise Refused(f"wrong number of arguments {words}")
        handler(*words[1:])

    def delete(self, *keys):
        for key in keys:
            self.filters.pop(key, None)
            self.strings.pop(key, None)

    def set(self, key, value, *_):
        self.delete(key)
        self.strings[key] = value

    def put(self, key, made):
        if key in self.filters or key in self.strings:
            raise Refused(f"item exists {key}")
        self.filters[key] = made

    def add_all(self, key, items):
        if key not in self.filters:
            # The module would create the missing filter with the replica's configuration, which may
            # differ from the leader's. So the stream must create each filter first.
            raise Refused(f"an add to a filter that is not there: {key}")
        for item in items:
            self.filters[key].add(item)


class RedisBloomReplica(Replica):
    def __init__(self):
        super().__init__()
        self.commands["BF.RESERVE"] = (4, 7, self.reserve)
        self.commands["BF.LOADCHUNK"] = (4, 4, self.load_chunk)

    def reserve(self, key, error, capacity, *options):
        words = [option.upper() for option in options]
        if words not in ([], [b"NONSCALING"]) and words[:1] != [b"EXPANSION"]:
            raise Refused(f"options that are passed over or refused: {options}")
        growth = 2 if not words else 0 if words == [b"NONSCALING"] else int(words[1])
        self.put(key, RedisBloomFilter.make(int(capacity), float(error), growth))

    def insert(self, key, *words):
        known = {b"CAPACITY", b"ERROR", b"EXPANSION", b"NONSCALING"}
        options, items = self.split(words, known, {b"NONSCALING"})
        if not items:
            raise Refused("wrong number of arguments: no ITEMS")
        if key not in self.filters:
            growth = 0 if b"NONSCALING" in options else int(options[b"EXPANSION"])
            capacity, error = int(options[b"CAPACITY"]), float(options[b"ERROR"])
            self.put(key, RedisBloomFilter.make(capacity, error, growth))
        self.add_all(key, items)

    @staticmethod
    def split(words, known, without_value):
        """Splits the arguments of BF.INSERT. Returns a dictionary of the options, and a list of the
        items after the word ITEMS.
        """
        options, rest = {}, list(words)
        while rest and rest[0].upper() != b"ITEMS":
            name = rest.pop(0).upper()
            if name not in known:
                raise Refused(f"Unknown argument received: {name}")
            options[name] = None if name in without_value else rest.pop(0)
        return options, rest[1:]

    def load_chunk(self, key, iterator, data):
        if key in self.filters:
            return self.filters[key].load_chunk(int(iterator), data)
        if int(iterator) != 1:
            raise Refused("not found")
        self.put(key, RedisBloomFilter.from_header(data))


class ValkeyBloomReplica(Replica):
    def insert(self, key, *words):
        known = {b"CAPACITY", b"ERROR", b"EXPANSION", b"NONSCALING", b"TIGHTENING", b"SEED"}
        options, items = RedisBloomReplica.split(words, known, {b"NONSCALING"})
        if key not in self.filters:
            growth = 0 if b"NONSCALING" in options else int(options[b"EXPANSION"])
            if len(options[b"SEED"]) != 32:
                raise Refused("invalid seed")
            self.put(key, ValkeyBloomFilter(int(options[b"CAPACITY"]), float(options[b"ERROR"]),
                                            growth, float(options[b"TIGHTENING"]),
                                            options[b"SEED"]))  # fmt: skip
        self.add_all(key, items)
