#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks the protections that the linker and compiler of the release build add against exploits.

The test reads the binary, not the build flags, because a toolchain may ignore flags.
"""

import os
import pathlib
import platform
import re
import subprocess
import unittest

SERVER = os.environ["BLOOMERY_SERVER"]
ENDBR64 = b"\xf3\x0f\x1e\xfa"


def readelf(*options):
    return subprocess.run(
        ["readelf", "--wide", *options, SERVER], stdout=subprocess.PIPE, check=True, text=True
    ).stdout


@unittest.skipUnless(
    os.environ.get("BLOOMERY_BUILD_TYPE", "Release") == "Release"
    and "BLOOMERY_SANITIZED" not in os.environ,
    "only the release build is hardened",
)
class HardeningTest(unittest.TestCase):
    def test_program_is_position_independent(self):
        self.assertRegex(readelf("--file-header"), r"Type:\s+DYN")
        self.assertRegex(readelf("--dynamic"), r"FLAGS_1.*\bPIE\b")

    def test_addresses_of_functions_cannot_be_overwritten(self):
        self.assertRegex(readelf("--dynamic"), r"FLAGS_1.*\bNOW\b")
        self.assertIn("GNU_RELRO", readelf("--program-headers"))

    def test_no_memory_is_writable_and_executable(self):
        headers = readelf("--program-headers")
        stack = re.search(r"GNU_STACK.*", headers)[0]
        self.assertNotIn("E", stack.split()[6])
        self.assertNotRegex(headers, r"LOAD .* RWE ")

    def test_stacks_and_buffers_are_checked(self):
        symbols = readelf("--dyn-syms")
        self.assertIn("__stack_chk_fail", symbols)
        self.assertRegex(symbols, r"__(memcpy|memmove|memset|read|recv|fdelt|snprintf|poll)_chk")

    @unittest.skipUnless(platform.machine() == "x86_64", "the instruction is x86's")
    def test_jumps_have_marked_targets(self):
        # Counts ENDBR64 instructions, because the linker omits the program's IBT property: Debian's
        # crt1.o lacks it. Standard libraries alone have a few hundred of these instructions.
        self.assertGreater(pathlib.Path(SERVER).read_bytes().count(ENDBR64), 2000)


if __name__ == "__main__":
    unittest.main()
