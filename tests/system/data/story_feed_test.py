#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the user story "feed": users repeatedly hide posts of their feed and unhide them.

Each user has a deletable filter of hidden posts, and a bitmap. If BF.ADD of a post answers 1, the
filter holds the post until BF.DEL. If BF.ADD answers 0, the post is a false positive, and the
bitmap holds it instead. A feed shows the posts that are neither in the filter nor in the bitmap.
The model is an exact set of the hidden posts of each user.
"""

import unittest

from harness.stories import StoryTest, allowed, scaled

RATE = 0.01
POSTS = 1000  # number of posts in a feed, hidden ones included
ROUNDS = 6


class Reader:
    """A user, and the exact set of the posts that the user has hidden."""

    def __init__(self, number):
        self.key = f"hidden:{number}"
        self.rest = f"rest:{number}"
        self.in_filter = set()
        self.in_rest = set()

    def hidden(self):
        return self.in_filter | self.in_rest


class FeedStoryTest(StoryTest):
    def flip(self, readers, each):
        """Takes random posts of each user, hides the visible ones and unhides the hidden ones.
        Returns how many BF.ADD commands answered 0.
        """
        commands, notes = [], []
        for reader in readers:
            hidden = reader.hidden()
            for post in self.random.sample(range(POSTS), each):
                word = "BF.DEL" if post in hidden else "BF.ADD"
                if post in reader.in_rest:
                    commands.append(("SETBIT", reader.rest, post, 0))
                else:
                    commands.append((word, reader.key, post))
                notes.append((reader, post))
        missed = []
        for (word, *_), (reader, post), reply in zip(commands, notes, self.send(commands)):
            if word == "SETBIT":
                reader.in_rest.remove(post)
            elif word == "BF.DEL":
                self.delete(reader, post, *reply)
            elif reply == 1:
                reader.in_filter.add(post)
            else:
                missed.append((reader, post))
        self.send([("SETBIT", reader.rest, post, 1) for reader, post in missed])
        for reader, post in missed:
            reader.in_rest.add(post)
        return len(missed)

    def delete(self, reader, post, reply):
        self.assertIn(reply, self.DELETIONS, (reader.key, post))
        if reply == 1:
            reader.in_filter.remove(post)

    def shown(self, reader):
        """Returns the posts that the feed shows to this user."""
        with self.client.pipeline(transaction=False) as pipeline:
            pipeline.execute_command("BF.MEXISTS", reader.key, *range(POSTS))
            pipeline.get(reader.rest)
            found, bits = pipeline.execute()
        rest = {post for post in range(len(bits or b"") * 8) if bits[post // 8] >> 7 - post % 8 & 1}
        self.assertEqual(rest, reader.in_rest)
        return {post for post in range(POSTS) if not found[post] and post not in rest}

    def run_story(self, options, lost_rate):
        readers = [Reader(number) for number in range(scaled(10_000, 40))]
        hidden_each = 100  # ten thousand users (full size) hide a million posts
        self.send([("BF.RESERVE", r.key, RATE, hidden_each, *options) for r in readers])
        flipped = missed = 0
        for turn in range(ROUNDS):
            each = hidden_each if turn == 0 else hidden_each // 2
            missed += self.flip(readers, each)
            flipped += each * len(readers)
            wrong = asked = 0
            for reader in readers:
                shown = self.shown(reader)
                self.assertFalse(shown & reader.hidden(), reader.key)
                visible = POSTS - len(reader.hidden())
                asked, wrong = asked + visible, wrong + visible - len(shown)
            self.assertLessEqual(wrong, allowed(asked, lost_rate), f"round {turn}")
        self.assertLessEqual(missed, allowed(flipped, lost_rate))
        return readers

    def test_fingerprints(self):
        self.DELETIONS = (1,)
        readers = self.run_story(("DELETABLE",), RATE)
        # Finally every user unhides all posts. Then every filter must be empty.
        self.send([("BF.DEL", r.key, post) for r in readers for post in sorted(r.in_filter)])
        cards = self.send([("BF.CARD", reader.key) for reader in readers])
        self.assertEqual(cards, [0] * len(readers))
        found = self.send([("BF.MEXISTS", reader.key, *range(POSTS)) for reader in readers])
        self.assertEqual(sum(map(sum, found)), 0)

    def test_regions(self):
        # BF.DEL cannot delete an item that shares all its bits with other items. It answers -1, and
        # the post stays hidden.
        self.DELETIONS = (1, -1)
        self.run_story(("DELETABLE", "REGIONS", 10), RATE)

    def test_feeds_survive_a_restart(self):
        self.DELETIONS = (1,)
        options = ("--appendonly", "yes", "--appendfsync", "no", "--enable-debug-command", "yes")
        self.server = self.start_server(*options)
        self.client = self.new_client()
        readers = self.run_story(("DELETABLE",), RATE)
        digest = self.client.execute_command("DEBUG", "DIGEST")
        self.client.execute_command("DEBUG", "LOADAOF")
        self.assertEqual(self.client.execute_command("DEBUG", "DIGEST"), digest)
        for reader in readers:
            self.assertFalse(self.shown(reader) & reader.hidden(), reader.key)


if __name__ == "__main__":
    unittest.main(verbosity=2)
