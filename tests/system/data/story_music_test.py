#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the user story "music service": which of a user's hundred friends have heard a song?

Each friend has a filter of a hundred songs. At an error rate of 1 % the filter takes 128 bytes; the
theoretical minimum is 120. The filters of a hundred friends take about 12 KB. One command
(BF.KEXISTS) queries all of them in one round trip.
"""

import unittest

from harness.stories import StoryTest, allowed, scaled

FRIENDS = 100
SONGS = 100
RATE = 0.01


class MusicStoryTest(StoryTest):
    def setUp(self):
        super().setUp()
        self.friends = [f"songs:{number}" for number in range(FRIENDS)]
        catalogue = [f"song:{number}" for number in range(5000)]
        self.known = {friend: self.random.sample(catalogue, SONGS) for friend in self.friends}
        self.catalogue = catalogue

    def fill(self):
        self.send([("BF.RESERVE", friend, RATE, SONGS) for friend in self.friends])
        self.send([("BF.MADD", friend, *songs) for friend, songs in self.known.items()])

    def ask(self, keys, songs):
        return self.client.execute_command("BF.KEXISTS", len(keys), *keys, *songs)

    def test_a_hundred_filters_are_about_twelve_kilobytes(self):
        self.fill()
        bits = 0
        for friend in self.friends:
            stats = self.client.execute_command("BF.STATS", friend)
            bits += dict(zip(stats[::2], stats[1::2]))[b"bits"]
        self.assertLessEqual(bits / 8, 12_800)
        whole = sum(self.client.bf().info(friend).size for friend in self.friends)
        self.assertLessEqual(whole - bits / 8, 48 * FRIENDS, "bytes beside the bits")

    def test_one_round_trip_asks_all_friends(self):
        self.fill()
        wrong = asked = 0
        for _ in range(scaled(2000, 50)):
            song = self.random.choice(self.catalogue)
            answers = self.ask(self.friends, [song])
            self.assertEqual([len(answer) for answer in answers], [1] * FRIENDS)
            for friend, (answer,) in zip(self.friends, answers):
                if song in self.known[friend]:
                    self.assertEqual(answer, 1, (friend, song))
                else:
                    asked, wrong = asked + 1, wrong + answer
        self.assertLessEqual(wrong, allowed(asked, RATE))

    def test_a_hundred_songs_of_a_hundred_friends_at_once(self):
        self.fill()
        asked = wrong = 0
        for _ in range(scaled(100, 3)):
            songs = self.random.sample(self.catalogue, SONGS)
            before = self.client.info("stats")["total_commands_processed"]
            answers = self.ask(self.friends, songs)
            after = self.client.info("stats")["total_commands_processed"]
            self.assertEqual(after - before, 2, "the question and INFO")
            self.assertEqual(
                answers, self.send([("BF.MEXISTS", friend, *songs) for friend in self.friends])
            )
            for friend, answer in zip(self.friends, answers):
                known = set(self.known[friend])
                for song, reply in zip(songs, answer):
                    if song in known:
                        self.assertEqual(reply, 1, (friend, song))
                    else:
                        asked, wrong = asked + 1, wrong + reply
        self.assertLessEqual(wrong, allowed(asked, RATE))

    def test_a_friend_without_songs_knows_none(self):
        self.fill()
        song = self.known[self.friends[0]][0]
        self.assertEqual(self.ask(["songs:new", self.friends[0]], [song]), [[0], [1]])
        self.client.config_set("bf-exists-missing-key", "nil")
        self.assertEqual(self.ask(["songs:new", self.friends[0]], [song]), [[None], [1]])

    def test_a_new_song_reaches_all_friends_at_once(self):
        self.fill()
        command = ("BF.KADD", FRIENDS, *self.friends, "hit")
        answers = self.client.execute_command(*command)
        self.assertEqual(len(answers), FRIENDS)
        self.assertGreaterEqual(sum(answer == [1] for answer in answers), FRIENDS * 0.9)
        self.assertEqual(self.ask(self.friends, ["hit"]), [[1]] * FRIENDS)
        self.assertEqual(self.client.execute_command(*command), [[0]] * FRIENDS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
