# SPDX-License-Identifier: MIT
"""Finds the code blocks on the pages of docs/ and runs them as programs."""

import pathlib
import re
import subprocess

from harness.node import MODULES
from harness.settings import ROOT
from harness.waiting import DEADLINE_S

PORT = "7000"
# Maps the language of a code block to the command that runs the block. {} stands for the path of
# the block's file without its extension.
PROGRAMS = {
    "sh": ["sh", "-e", "{}.sh"],
    "python": ["/usr/bin/python3", "{}.py"],
    "javascript": ["node", "{}.mjs"],
    "ruby": ["ruby", "{}.rb"],
    "php": ["php", "{}.php"],
}


def blocks_of(path):
    """Returns a pair (language, text) for each code block of the page at `path`."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def reasons_of(path):
    """Returns (language, text, reason) for each code block of the page at `path`. `reason` says why
    no test runs the block; it is "" for a block that is run.
    """
    text = (ROOT / path).read_text(encoding="utf-8")
    return [
        (language, block, reason)
        for reason, language, block in re.findall(
            r"(?:^<!-- not run: ([^\n]+) -->\n)?^```(\w*)\n(.*?)^```$",
            text, re.MULTILINE | re.DOTALL,
        )
    ]  # fmt: skip


def run_program(folder, language, text, name="example"):
    """Runs a code block and returns its output. Errors: AssertionError if its exit code is not 0.
    """
    command = [word.format(folder / name) for word in PROGRAMS[language]]
    pathlib.Path(command[-1]).write_text(text, encoding="utf-8")
    if language == "javascript":
        # Links the Node client library into the folder, under the name by which the page installs
        # it.
        library = "ioredis5" if "ioredis" in text else "redis5"
        modules = folder / "node_modules"
        modules.unlink(missing_ok=True)
        modules.symlink_to(MODULES / f"node_modules_{library}" / "node_modules")
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE_S, cwd=folder, check=False
    )
    if done.returncode != 0:
        raise AssertionError(f"{text}\n{done.stdout}\n{done.stderr}")
    return done.stdout
