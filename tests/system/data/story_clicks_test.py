#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests the user story "click log": a click counts at most once in ten minutes.

A client sends clicks to one filter with a window, by pipelines of 350 BF.ADD. One click in a
hundred repeats an earlier click. The server's wall clock is simulated, so a day takes seconds. An
exact model records when each click was last counted as new.
"""

import tempfile
import unittest

from harness import let_time_pass
from harness.preloads import SimulatedClock
from harness.stories import PIPELINE, SCALE, StoryTest, allowed, scaled

RATE = 0.001
WINDOW_S = 600
GENERATIONS = 4
START_MS = 1_790_000_000_000


class Clicks:
    """An exact model that records the position at which each click was last counted as new. A
    position is a time in milliseconds, or the number of clicks counted so far.
    """

    def __init__(self, test, window):
        self.test = test
        self.window = window
        self.most = window * (1 + 1 / GENERATIONS)
        self.counted_at = {}
        self.asked = self.wrong = self.repeats = 0

    def note(self, click, position, answer):
        at = self.counted_at.get(click)
        if at is not None and position - at < self.window:
            # A click within its window is never counted twice.
            self.test.assertEqual(answer, 0, (click, at, position))
            self.repeats += 1
        elif at is None or position - at > self.most:
            self.asked, self.wrong = self.asked + 1, self.wrong + 1 - answer
        if answer:
            self.counted_at[click] = position

    def check(self):
        self.test.assertLessEqual(self.wrong, allowed(self.asked, RATE))


class ClicksStoryTest(StoryTest):
    def setUp(self):
        self.clock = SimulatedClock(START_MS)
        self.addCleanup(self.clock.close)
        data = tempfile.TemporaryDirectory(prefix="bloomery-test-")
        self.addCleanup(data.cleanup)
        self.directory = data.name
        self.serve()

    def serve(self):
        self.server = self.start_server(
            "--appendonly", "yes", "--appendfsync", "no", "--enable-debug-command", "yes",
            prefix=self.clock.prefix, directory=self.directory,
        )  # fmt: skip
        self.client = self.new_client()

    def click(self, number, history):
        """Returns a new click or, with a chance of 1 %, one of the earlier clicks in `history`."""
        if history and self.random.random() < 0.01:
            return self.random.choice(history)
        return f"user:{self.random.randrange(10**6)}:banner:{number}"

    def run_clicks(self, clicks, count, history_size, position_of):
        history = []
        for start in range(0, count, PIPELINE):
            sent = [self.click(number, history) for number in range(start, start + PIPELINE)]
            answers = self.send([("BF.ADD", "clicks", click) for click in sent])
            for click, answer in zip(sent, answers):
                clicks.note(click, position_of(answer), answer)
            history = (history + sent)[-history_size:]

    def test_a_day_of_ten_minute_windows(self):
        windows = 144 if SCALE >= 1 else 20
        each = scaled(7000, 4 * PIPELINE) // PIPELINE * PIPELINE
        self.client.execute_command(
            "BF.RESERVE", "clicks", RATE, each, "WINDOW", WINDOW_S, "GENERATIONS", GENERATIONS
        )
        self.assertEqual(int(self.client.time()[0]), START_MS // 1000, "the clock is simulated")
        clicks = Clicks(self, WINDOW_S * 1000)
        step_ms = WINDOW_S * 1000 * PIPELINE // each
        sent = 0

        def position_of(_):
            nonlocal sent
            sent += 1
            if sent % PIPELINE == 0:
                now_ms = self.clock.now_ms
                self.clock.advance(step_ms)
                return now_ms
            return self.clock.now_ms

        self.run_clicks(clicks, windows * each, 3 * each // 2, position_of)
        clicks.check()
        self.assertGreater(clicks.repeats, windows * each // 300)
        # The filter holds the clicks of about one window (ten minutes), not those of the whole day.
        stats = self.client.execute_command("BF.STATS", "clicks")
        held = dict(zip(stats[::2], stats[1::2]))[b"items"]
        self.assertLess(held, each * 1.4)

    def test_clock_that_jumps_back_forgets_nothing(self):
        self.client.execute_command("BF.RESERVE", "clicks", RATE, 1000, "WINDOW", WINDOW_S)
        items = [f"click:{number}" for number in range(300)]
        self.send([("BF.ADD", "clicks", item) for item in items])
        counted = self.client.execute_command("BF.MEXISTS", "clicks", *items)
        self.clock.advance(-3600_000)
        let_time_pass(1.5, why="once a second the server checks filters that get no adds")
        for seconds in (0, 300, 299):
            self.clock.advance(seconds * 1000)
            self.assertEqual(
                self.client.execute_command("BF.MEXISTS", "clicks", *items), counted
            )
        self.clock.advance(WINDOW_S * 1250)
        self.assertEqual(sum(self.client.execute_command("BF.MEXISTS", "clicks", *items)), 0)
        # A day later the filter has forgotten all clicks, so the same clicks count again.
        self.clock.advance(86_400_000)
        self.assertGreater(sum(self.send([("BF.ADD", "clicks", item) for item in items])), 290)

    def test_crash_within_a_window_forgets_nothing(self):
        self.client.execute_command("BF.RESERVE", "clicks", RATE, 1000, "WINDOW", WINDOW_S)
        for number in range(300):
            self.client.execute_command("BF.ADD", "clicks", f"click:{number}")
            # The clock ends between two rotations: the server also rotates between commands.
            self.clock.advance(900)
        items = [f"click:{number}" for number in range(300)]
        before = self.client.execute_command("BF.MEXISTS", "clicks", *items)
        digest = self.client.execute_command("DEBUG", "DIGEST")
        self.server.crash()
        self.serve()
        self.assertEqual(self.client.execute_command("BF.MEXISTS", "clicks", *items), before)
        self.assertEqual(self.client.execute_command("DEBUG", "DIGEST"), digest)

    def test_windows_by_count(self):
        each = scaled(50_000, 2000)
        self.client.execute_command(
            "BF.RESERVE", "clicks", RATE, each, "WINDOW", each, "ITEMS", "GENERATIONS", GENERATIONS
        )
        clicks = Clicks(self, each)
        counted = 0

        def position_of(answer):
            nonlocal counted
            counted += answer
            return counted

        self.run_clicks(clicks, 10 * each, 3 * each // 2, position_of)
        clicks.check()
        self.assertGreater(clicks.repeats, each // 20)


if __name__ == "__main__":
    unittest.main(verbosity=2)
