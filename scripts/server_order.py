# SPDX-License-Identifier: MIT
"""Defines the order in which the folders of server/ may include each other, for
scripts/check_tree.py.

server/CMakeLists.txt lists the libraries that each library links. A file may include files of these
libraries, and of all libraries below them. INSIDE orders the sub-folders of a library. Files
directly in server/ assemble the server from the libraries, so they may include everything.
"""

import pathlib
import re

CMAKE = pathlib.Path(__file__).resolve().parent.parent / "server" / "CMakeLists.txt"

# The sub-folders of each library, from the lowest to the highest. An entry "" is the position of
# the files directly in the library's folder. Without this entry, these files are above all
# sub-folders.
INSIDE = {
    "base": ("config", "config/rows", "log", "latency", "metrics", "process", "transport"),
    "cluster": ("", "election"),
    "session": ("acl", "pubsub"),
    "durability": ("data", "log", "saves", "loading"),
    "replication": ("stream", "leader", "replica"),
    "commands": ("", "strings", "bloom", "keys", "info", "replication", "server", "connection"),
    "net": ("loop",),
    "admin": ("figures", "history"),
}
# Folders with commands on data. In server/ they may include only BELOW_DATA_COMMANDS, because they
# must not depend on files, replicas and sockets.
DATA_COMMANDS = ("commands/strings", "commands/bloom", "commands/keys")
BELOW_DATA_COMMANDS = ("dispatch", *DATA_COMMANDS)
# Headers that all files in commands/ share. FAMILIES declares all command families, and every file
# that defines a family includes it. So files in DATA_COMMANDS may include these headers too.
FAMILIES = "server/commands/families.h"
SHARED = (FAMILIES, "server/commands/pair_writer.h")


def read_libraries(text):
    """Returns {library: set of the libraries that it may use}, from server/CMakeLists.txt."""
    allowed = {}
    for name, direct in re.findall(r"^bloomery_server_library\((\w+)([^)]*)\)", text, re.M):
        below = set()
        for other in direct.replace("bloomery_", "").split():
            if other not in allowed:
                raise SystemExit(f"server/CMakeLists.txt: {name} uses {other} before its line")
            below |= {other} | allowed[other]
        allowed[name] = below
    return allowed


LIBRARIES = read_libraries(CMAKE.read_text(encoding="utf-8"))


def place_of(path):
    """Returns (library, folder) of a file in server/. The folder is the innermost folder of INSIDE
    that contains the file; "" if there is none.
    """
    library, folder = path.parts[1], "/".join(path.parts[2:-1])
    order = INSIDE.get(library, ())
    while folder and folder not in order:
        folder = folder.rpartition("/")[0]
    return library, folder


def level(library, folder):
    order = INSIDE.get(library, ())
    return order.index(folder) if folder in order else len(order)


def is_composer(path):
    return len(path.parts) == 2


def fault(path, include):
    """Returns why a file of server/ must not include another file of server/; None if it may."""
    if is_composer(path):
        return None
    if is_composer(include):
        return "only files directly in server/ may include it"
    (library, folder), (other, other_folder) = place_of(path), place_of(include)
    for name, file in ((library, path), (other, include)):
        if name not in LIBRARIES:
            return f"{file.parent} is no library of server/CMakeLists.txt"
    if library != other and other not in LIBRARIES[library]:
        return f"{other}/ is higher than {library}/"
    if library == other and level(library, folder) < level(other, other_folder):
        return f"{other}/{other_folder} is higher than {library}/{folder}"
    own = f"{library}/{folder}"
    if own in DATA_COMMANDS and str(include) not in SHARED:
        if other != "dispatch" and f"{other}/{other_folder}" not in BELOW_DATA_COMMANDS:
            return f"of server/, commands on data include {', '.join(BELOW_DATA_COMMANDS)} only"
    return None
