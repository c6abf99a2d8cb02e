# SPDX-License-Identifier: MIT
"""The exact model of a filter: the items that it must find, and how many it counts.

A filter may find items that were never added, so the model remembers the answer to each add. If an
add answered 1, the filter has counted the item. From then on the filter must find the item until it
is deleted or until its window has passed.
"""

import copy

from harness import wait_until
from harness.mode_matrix.cell_run import KEY_PREFIX

GENERATIONS = 4
# Number of items that the test queries but never adds.
ABSENT_ITEMS = 200
# Limit on false positives among ABSENT_ITEMS. A correct filter has far fewer false positives.
ABSENT_FOUND_MAX = ABSENT_ITEMS // 5
# A union by BF.MERGE with FORCE holds more items than planned for its size. So a union has more
# false positives than other filters.
UNION_FOUND_MAX = ABSENT_ITEMS // 2


class Items:
    """The items of one filter, and the replies to their adds."""

    def __init__(self):
        self.counted = {}  # Maps each counted item to (time of its add, items counted before it).
        self.repeated = set()  # The items whose add answered 0.
        self.count = 0  # The number of items that were ever counted.

    def clear(self):
        self.__init__()

    def add(self, item, answer, now_ms):
        assert answer in (0, 1), answer
        if answer:
            self.counted.pop(item, None)
            self.counted[item] = (now_ms, self.count)
            self.count += 1
        else:
            self.repeated.add(item)

    def delete(self, item, answer):
        assert answer in (1, -1), f"{item} was counted, and BF.DEL answers {answer}"
        if answer == 1:
            del self.counted[item]


class FilterModel:
    """Models a filter and a copy of the filter that gets further items. If the kind of filter
    supports unions, also models the union of the two.
    """

    STEP_MS = 1_000_000  # simulated time of a step, in which a time window rotates one generation

    def __init__(self, run, words, *, window_s=None, window_items=None, deletable=False):
        self.rng = run.rng
        self.clock = run.clock
        self.words = words
        self.window_s = window_s
        self.window_items = window_items
        self.deletable = deletable
        self.forgets = deletable or window_s or window_items
        self.fresh = 0
        self.items = {f"{KEY_PREFIX}:filter": Items()}
        self.union = f"{KEY_PREFIX}:union"
        self.union_items = []

    def keys(self):
        return [*self.items, *([self.union] if self.union_items else [])]

    def begin(self, client):
        (key,) = self.items
        if self.words:
            assert client.run("BF.RESERVE", key, *self.words) == b"OK"
        self.madd(client, key, self.new_items(20))
        client.run("COPY", key, f"{key}:copy")
        self.items[f"{key}:copy"] = copy.deepcopy(self.items[key])

    def new_items(self, count):
        self.fresh += count
        return [f"item:{number}" for number in range(self.fresh - count, self.fresh)]

    def some_items(self, key, count):
        """Returns at most `count` random items that were added to the filter `key` before."""
        known = [*self.items[key].counted, *self.items[key].repeated]
        return self.rng.sample(known, min(count, len(known)))

    def record(self, key, items, answers):
        for item, answer in zip(items, answers, strict=True):
            self.items[key].add(item, answer, self.clock.now_ms)

    def madd(self, client, key, items):
        self.record(key, items, client.run("BF.MADD", key, *items))

    def write(self, client):
        steps = [self.add_many, self.add_one, self.insert, self.add_in_transaction]
        if self.deletable:
            steps.append(self.delete)
        if self.rng.random() < 0.2:
            self.clear_copy(client)
        self.add_to_both(client)
        for key in self.items:
            for step in self.rng.sample(steps, len(steps)):
                step(client, key)
        if not self.forgets:
            self.merge(client)
        if self.window_items:
            for key in self.items:
                self.repeat_an_item_of_a_full_generation(client, key)

    def add_many(self, client, key):
        items = self.new_items(20) + self.some_items(key, 5)
        self.rng.shuffle(items)
        self.madd(client, key, items)

    def add_one(self, client, key):
        for item in self.new_items(1) + self.some_items(key, 1):
            self.record(key, [item], [client.run("BF.ADD", key, item)])

    def insert(self, client, key):
        items = self.some_items(key, 3) + self.new_items(5)
        self.record(key, items, client.run("BF.INSERT", key, "NOCREATE", "ITEMS", *items))

    def add_in_transaction(self, client, key):
        items = self.new_items(4)
        answers = client.run_transaction(
            ("BF.ADD", key, items[0]), ("BF.MADD", key, *items[1:])
        )  # fmt: skip
        self.record(key, items, [answers[0], *answers[1]])

    def clear_copy(self, client):
        _, key = self.items
        assert client.run("BF.CLEAR", key) == b"OK"
        self.items[key].clear()

    def add_to_both(self, client):
        items = self.new_items(3)
        replies = client.run("BF.KADD", len(self.items), *self.items, *items)
        for key, answers in zip(self.items, replies, strict=True):
            self.record(key, items, answers)

    def merge(self, client):
        client.run("DEL", self.union)
        self.union_items = []
        # The two filters have the same settings, so BF.MERGE can unite them even if one has more
        # layers than the other.
        reply = client.call("BF.MERGE", self.union, *self.items, "FORCE")
        assert reply == b"OK", reply
        found = (self.found_items(items) for items in self.items.values())
        self.union_items = list({item: None for items in found for item in items})

    def repeat_an_item_of_a_full_generation(self, client, key):
        items = self.items[key]
        size = self.window_items // GENERATIONS
        while items.count % size:
            self.madd(client, key, self.new_items(size - items.count % size))
        self.madd(client, key, [next(reversed(items.counted))])

    def delete(self, client, key):
        counted = list(self.items[key].counted)
        for item in self.rng.sample(counted, min(4, len(counted))):
            (answer,) = client.run("BF.DEL", key, item)
            self.items[key].delete(item, answer)

    # The methods below compute the valid replies to reads, and check the server's replies.

    def found_items(self, items):
        """Returns the items that the filter must find."""
        if self.window_s:
            since = self.clock.now_ms - 1000 * self.window_s
            return [item for item, (at_ms, _) in items.counted.items() if at_ms > since]
        if self.window_items:
            since = items.count - self.window_items
            return [item for item, (_, number) in items.counted.items() if number >= since]
        if self.deletable:
            return list(items.counted)
        return [*items.counted, *items.repeated]

    def cardinalities(self, items):
        """Returns the smallest and the largest valid reply to BF.CARD. A filter whose window is a
        number of items may still hold up to one generation of older items.
        """
        if self.window_items:
            most = self.window_items * (GENERATIONS + 1) // GENERATIONS
            return len(self.found_items(items)), min(items.count, most)
        if self.window_s:
            since = self.clock.now_ms - 1000 * self.window_s * (GENERATIONS + 1) // GENERATIONS
            counted = sum(at_ms > since for at_ms, _ in items.counted.values())
            return counted, counted
        return len(items.counted), len(items.counted)

    def check(self, client):
        for key, items in self.items.items():
            self.check_answers(client, key, self.found_items(items))
            self.check_cardinality(client, key)
        if self.union_items:
            self.check_answers(client, self.union, self.union_items, UNION_FOUND_MAX)

    def check_answers(self, client, key, wanted, absent_max=ABSENT_FOUND_MAX):
        answers = client.run("BF.MEXISTS", key, *wanted)
        lost = [item for item, answer in zip(wanted, answers, strict=True) if answer != 1]
        assert not lost, f"{key} lost {len(lost)} of {len(wanted)} items: {lost[:9]}"
        absent = [f"absent:{number}" for number in range(ABSENT_ITEMS)]
        found = sum(client.run("BF.MEXISTS", key, *absent))
        assert found <= absent_max, f"{key} finds {found} absent items"

    def check_cardinality(self, client, key):
        least, most = self.cardinalities(self.items[key])

        def is_right():
            return least <= client.run("BF.CARD", key) <= most

        if self.window_s:
            wait_until(is_right, f"the window of {key} drops all but {least} items")
        else:
            count = client.run("BF.CARD", key)
            assert is_right(), f"{key} counts {count} items, not {least} to {most}"
