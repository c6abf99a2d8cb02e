# SPDX-License-Identifier: MIT
"""Reads YAML for tests with Ruby, because Debian's Python has no YAML module."""

import json
import subprocess


def documents_in(text):
    """Returns the documents of a YAML text, except empty ones."""
    program = "puts YAML.load_stream(STDIN.read).compact.to_json"
    done = subprocess.run(
        ["ruby", "-ryaml", "-rjson", "-e", program], input=text.encode(), capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stderr.decode()}\n{text}"
    return json.loads(done.stdout)


def documents_of(path):
    return documents_in(path.read_text(encoding="utf-8"))
