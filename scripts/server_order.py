# SPDX-License-Identifier: MIT
"""Defines which folders of server/ may include which others, for scripts/check_tree.py.

ORDER lists the folders from the lowest to the highest. Files in a folder may include files of the
same folder and of lower folders. Files directly in server/ assemble the server process and may
include everything.
"""

# Folders of server/, from the lowest to the highest. A sub-folder that is not listed belongs to the
# entry of its parent folder.
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
# Folders with commands on data. In server/ they may include only BELOW_DATA_COMMANDS, because they
# must not depend on files, replicas and sockets.
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
    """Returns why a file of server/ must not include another file of server/; None if it may."""
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
