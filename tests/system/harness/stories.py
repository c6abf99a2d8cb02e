# SPDX-License-Identifier: MIT
"""Shared parts of the users' stories (story_*_test.py): their size, and the allowed error rate.

By default each story runs for some seconds at a small size. In the users' full size it takes
minutes:
  BLOOMERY_STORY_SCALE=1 BLOOMERY_SERVER=build/release/bloomery-server \\
    /usr/bin/python3 tests/system/data/story_feed_test.py
"""

import math
import random

import redis
from harness import ServerTest, seed_from_environment
from harness.counts import count

SCALE = count("STORY_SCALE")
# Commands that a client in a story sends at once.
PIPELINE = 350


def scaled(full, least):
    """Returns a count of the full story at the current scale."""
    return max(least, int(full * SCALE))


def allowed(asked, rate):
    """Returns how many of `asked` answers may be wrong at this rate: the mean, plus four standard
    deviations and three.
    """
    return asked * rate + 4 * math.sqrt(asked * rate) + 3


class StoryTest(ServerTest):
    """One story: a server, python3-redis, and a seed that is printed."""

    OPTIONS = ()

    @classmethod
    def setUpClass(cls):
        cls.random = random.Random(seed_from_environment())

    def setUp(self):
        self.server = self.start_server(*self.OPTIONS)
        self.client = self.new_client()

    def new_client(self):
        client = redis.Redis(host="127.0.0.1", port=self.server.port)
        self.addCleanup(client.close)
        return client

    def send(self, commands):
        """Sends the commands in pipelines of PIPELINE commands, and returns the replies."""
        replies = []
        for start in range(0, len(commands), PIPELINE):
            with self.client.pipeline(transaction=False) as pipeline:
                for command in commands[start : start + PIPELINE]:
                    pipeline.execute_command(*command)
                replies += pipeline.execute()
        return replies
