# SPDX-License-Identifier: MIT
"""Reads the fields of INFO and of CLUSTER INFO."""


def parse_info(reply):
    """Returns the fields of a reply of INFO or CLUSTER INFO as a dictionary of texts."""
    return dict(line.split(":", 1) for line in reply.decode().split("\r\n") if ":" in line)


def info(connection, section="replication"):
    """Returns the fields of one section of INFO as a dictionary of texts."""
    return parse_info(connection.call("INFO", section))
