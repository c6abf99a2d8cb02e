# SPDX-License-Identifier: MIT
"""Shared parts of story_*_test.py, which replay workloads of users. Sets the size of the workloads,
and limits their false positives.

By default each story runs for some seconds at a small size. At the full size of the users'
workloads a story takes minutes:
  BLOOMERY_STORY_SCALE=1 BLOOMERY_SERVER=build/release/bloomery-server \\
    /usr/bin/python3 tests/system/data/story_feed_test.py
"""

import math
import random

import redis
from harness import ServerTest, seed_from_environment
from harness.counts import count

SCALE = count("STORY_SCALE")
# Number of commands that a client in a story sends in one pipeline.
PIPELINE = 350


def scaled(full, least):
    """Converts a count of the full-size story to the current scale; returns at least `least`."""
    return max(least, int(full * SCALE))


def allowed(asked, rate):
    """Returns how many of `asked` answers may be false positives at this error rate: the expected
    number, plus four standard deviations, plus 3.
    """
    return asked * rate + 4 * math.sqrt(asked * rate) + 3


class StoryTest(ServerTest):
    """Base class of a story's test: starts a server, connects python3-redis, prints the seed."""

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
