# SPDX-License-Identifier: MIT
"""The floors of server/: the order of its folders, from the lowest up, and what stands outside it.

A folder may include itself and the folders before it. Files that lie in server/ itself compose the
process and may include everything.
"""

# A sub-folder without a place of its own has that of the folder around it.
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
    "replication/follower",
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
# Of server/, commands on data may include these, and the commands on data before them: what the
# others know of files, replicas and sockets is not theirs.
DATA_COMMANDS = ("commands/bitmap", "commands/strings", "commands/bloom", "commands/keys")
BELOW_DATA_COMMANDS = ("dispatch", *DATA_COMMANDS)


def floor_of(path):
    """The entry of ORDER that a file of server/ belongs to; None when it has none."""
    folder = "/".join(path.parts[1:-1])
    while folder and folder not in ORDER:
        folder = folder.rpartition("/")[0]
    return folder or None


def is_composer(path):
    return len(path.parts) == 2


def fault(path, include):
    """What is wrong with a file of server/ that includes another one; None when nothing is."""
    if is_composer(path):
        return None
    if is_composer(include):
        return "what server.h composes may not know it"
    own, other = floor_of(path), floor_of(include)
    for folder, file in ((own, path), (other, include)):
        if folder is None:
            return f"{file.parent} has no place in ORDER in scripts/server_order.py"
    if ORDER.index(other) > ORDER.index(own):
        return f"{other}/ stands above {own}/"
    if own in DATA_COMMANDS and other not in BELOW_DATA_COMMANDS:
        return f"of server/, commands on data include {', '.join(BELOW_DATA_COMMANDS)} only"
    return None
