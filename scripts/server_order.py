# SPDX-License-Identifier: MIT
"""Defines the order of the folders of server/, from the lowest up, and the folders outside it.

A folder may include itself and the folders before it. Files directly in server/ compose the process
and may include everything.
"""

# A sub-folder that is not listed belongs to the entry of its parent.
ORDER = (
    "config",
    "latency",
    "process",
    "transport",
    "bulk",
    "acl",
    "cluster",
    "pubsub",
    "session",
    "dispatch",
    "durability",
    "replication/stream",
    "replication/leader",
    "replication/replica",
    "replication/roles",
    "cluster/node",
    "commands/bitmap",
    "commands/strings",
    "commands/bloom",
    "commands/keys",
    "commands",
    "commands/server/info",
    "commands/server",
    "commands/connection",
    "loop",
    "net",
    "listener",
    "admin",
)
# Within server/, commands on data may include these folders and the commands on data before them.
# They must not depend on files, replicas and sockets.
DATA_COMMANDS = ("commands/bitmap", "commands/strings", "commands/bloom", "commands/keys")
BELOW_DATA_COMMANDS = ("dispatch", *DATA_COMMANDS)


def floor_of(path):
    """Returns the entry of ORDER that a file of server/ belongs to; None if it belongs to no entry.
    """
    folder = "/".join(path.parts[1:-1])
    while folder and folder not in ORDER:
        folder = folder.rpartition("/")[0]
    return folder or None


def is_composer(path):
    return len(path.parts) == 2


def fault(path, include):
    """Returns the error in an include between files of server/; None if the include is allowed."""
    if is_composer(path):
        return None
    if is_composer(include):
        return "only server.h and main may include it"
    own, other = floor_of(path), floor_of(include)
    for folder, file in ((own, path), (other, include)):
        if folder is None:
            return f"{file.parent} has no place in ORDER in scripts/server_order.py"
    if ORDER.index(other) > ORDER.index(own):
        return f"{other}/ is higher than {own}/"
    if own in DATA_COMMANDS and other not in BELOW_DATA_COMMANDS:
        return f"of server/, commands on data include {', '.join(BELOW_DATA_COMMANDS)} only"
    return None
