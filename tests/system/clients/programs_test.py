#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs programs of Redis users, in several languages, that build filters from bitmaps.
Each program under programs/ checks itself and ends with 0 if every check passed.
"""

import pathlib
import unittest

from harness import ServerTest

PROGRAMS = pathlib.Path(__file__).parent / "programs"


class ProgramsTest(ServerTest):
    def check(self, interpreter, program, *, servers=1):
        ports = [self.start_server().port for _ in range(servers)]
        print(self.run_client([*interpreter, PROGRAMS / program, *ports]), end="")

    def test_email_limit(self):
        self.check(["ruby", "-W0"], "email_limit.rb")

    def test_bkdr_filter(self):
        self.check(["php"], "bkdr_filter.php", servers=2)

    def test_songs_of_friends(self):
        self.check(["php"], "songs_of_friends.php")

    def test_deletable_filter(self):
        self.check(["/usr/bin/python3"], "deletable_filter.py")


if __name__ == "__main__":
    unittest.main()
