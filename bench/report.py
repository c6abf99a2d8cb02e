#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures this server and others, and writes a report with the machine, the versions, the commands
and the ratios.

The other servers are redis-server, RedisBloom if its module is found (REDISBLOOM_MODULE names it),
and every server named by --peer.

`scripts/bench.sh report` calls this script. The report is report.md with its charts, in
build/report or the folder named by --to.
"""

import argparse
import datetime
import os
import pathlib
import platform
import re
import subprocess

import peers
import server_bench
from fixed_rate import CONNECTIONS
from server_bench import BATCH, CLIENTS, COMMANDS, KEYSPACE, OurServer, Server, redisbloom_module
from svg_chart import bar_chart

FILTER_ITEMS = 10_000_000


def first_line(command):
    """Returns the first line that a program prints, or the reason why it failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return (done.stdout.strip().splitlines() or [""])[0]
    except (OSError, subprocess.CalledProcessError) as fault:
        return f"({fault})"


def machine_facts():
    """Returns (property, value) pairs that describe the machine."""
    cpu = re.findall(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    memory = re.search(r"MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text())
    release = platform.freedesktop_os_release()["PRETTY_NAME"]
    return [
        ("processor", f"{cpu[0] if cpu else platform.machine()}, {os.cpu_count()} cores"),
        ("memory", f"{int(memory[1]) / (1 << 20):.1f} GiB"),
        ("system", f"{release}, Linux {platform.release()}"),
        ("load before", " ".join(f"{load:.2f}" for load in os.getloadavg())),
    ]


def versions():
    ours = os.environ.get("BLOOMERY_SERVER", "build/release/bloomery-server")
    module = redisbloom_module()
    return [
        ("bloomery", first_line([ours, "--version"])),
        ("commit", first_line(["git", "describe", "--always", "--dirty"])),
        ("compiler", first_line(["c++", "--version"])),
        ("redis-server", first_line(["redis-server", "--version"])),
        ("RedisBloom", module or "no module given: REDISBLOOM_MODULE=/path/to/redisbloom.so"),
        ("load generator", first_line(["redis-benchmark", "--version"])),
    ]


def table(head, rows):
    """Returns a table in Markdown. All cells must be strings."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def comparison(title, command, theirs, rows):
    """Returns a section of the report that compares this server with the server `theirs`. Each of
    `rows` is (name, pipeline depth, (rate, CPU ns) of this server, (rate, CPU ns) of `theirs`).
    """
    cells = [
        [name, str(pipeline), f"{our[0]:,.0f}", f"{their[0]:,.0f}", f"{our[1]:,.0f}",
         f"{their[1]:,.0f}", f"**{their[1] / our[1]:.2f}**"]
        for name, pipeline, our, their in rows
    ]  # fmt: skip
    head = ["", "pipeline", "ours, ops/s", f"{theirs}, ops/s", "ours, CPU ns",
            f"{theirs}, CPU ns", "times cheaper"]  # fmt: skip
    return f"## {title}\n\n`{command}`\n\n{table(head, cells)}"


def side_by_side(sections):
    """Returns one table with all servers. It has a row for each command and pipeline depth, and a
    column for each other server. A cell is the CPU time of this server divided by that of the other
    server. The parameter `sections` has the form that write_report() describes.
    """
    ratios = {}  # maps (command, pipeline depth) to {server: ratio of CPU times}
    for _, _, theirs, rows, _ in sections:
        for name, pipeline, our, their in rows or ():
            ratios.setdefault((name, pipeline), {})[theirs] = f"{our[1] / their[1]:.2f}"
    servers = list(dict.fromkeys(theirs for _, _, theirs, rows, _ in sections if rows))
    cells = [
        [name, str(pipeline), *(ratio.get(server, "") for server in servers)]
        for (name, pipeline), ratio in ratios.items()
    ]
    head = ["", "pipeline", *(f"ours over {server}" for server in servers)]
    return (
        "## Side by side\n\nServer CPU per operation of ours, over that of each other server; "
        "each ratio is from one run of both.\n\n" + table(head, cells)
    )


def chart(title, rows):
    bars = [
        (f"{name}, pipeline {pipeline}", their[1] / our[1]) for name, pipeline, our, their in rows
    ]
    return bar_chart(title, "CPU of the other server per operation, over ours", bars)


def command_line(words, options):
    """Returns the command line of redis-benchmark that Server.load runs, for the report. The word N
    in this command line means the pipeline depth.
    """
    counts = [server_bench.requests_for(pipeline, options.scale) for pipeline in options.pipelines]
    requests = " or ".join(map(str, counts))
    return f"redis-benchmark -c {CLIENTS} -P N -n {requests} -r {KEYSPACE} {' '.join(words)}"


def measure_commands(options):
    ours = OurServer(options)
    theirs = Server("redis", ["redis-server", "--loglevel", "warning"], options.pin)
    rows, filters = [], []
    try:
        for server in (ours, theirs):
            for name in ("SET", "SETBIT"):
                server.load(COMMANDS[name], int(1_000_000 * options.scale), 100, CLIENTS, KEYSPACE)
        ours.command("BF.RESERVE", "filter", "0.01", FILTER_ITEMS)
        for pipeline in options.pipelines:
            for name, words in COMMANDS.items():
                rows.append((name, pipeline,
                             *server_bench.compare(ours, theirs, words, words, pipeline, options)))
            words = ["BF.ADD", "filter", "item:__rand_int__"]
            our, their = server_bench.compare(
                ours, theirs, words, COMMANDS["SETBIT"], pipeline, options
            )
            filters.append(("BF.ADD / seven SETBITs", pipeline, our, (their[0] / 7, their[1] * 7)))
    finally:
        ours.stop()
        theirs.stop()
    return rows, filters


def measure_redisbloom(options, module):
    ours = OurServer(options)
    command = ["redis-server", "--loglevel", "warning", "--loadmodule", module]
    theirs = Server("redisbloom", command, options.pin)
    rows = []
    try:
        for server in (ours, theirs):
            server.command("BF.RESERVE", "filter", "0.01", FILTER_ITEMS)
        item = "item:__rand_int__"
        for pipeline in options.pipelines:
            for name in ("BF.ADD", "BF.EXISTS"):
                words = [name, "filter", item]
                rows.append((name, pipeline,
                             *server_bench.compare(ours, theirs, words, words, pipeline, options)))
        for name in ("BF.MADD", "BF.MEXISTS"):
            words = [name, "filter"] + [item] * BATCH
            small = argparse.Namespace(**{**vars(options), "scale": options.scale / BATCH})
            rows.append((f"{name} ×{BATCH}", 16,
                         *server_bench.compare(ours, theirs, words, words, 16, small)))
    finally:
        ours.stop()
        theirs.stop()
    return rows


def latency_table(name, rows):
    """Returns the section of the report with the latencies of one peer. peers.measure_latency()
    makes `rows`.
    """
    head = ["while", "requests a second"]
    for server in ("ours", name):
        head += [f"{server}, {label} ms" for _, label in peers.QUANTILES]
    return (
        f"## Latency at fixed rates, beside {name}\n\nOne I/O thread of ours, append log on with "
        "`everysec`, requests by the clock on "
        f"{CONNECTIONS} connections. The load generator shares the machine. A request is a BF.ADD "
        "where the server has filters, and a SET elsewhere.\n\n" + table(head, rows)
    )


def write_report(folder, facts, sections, latencies=()):
    """Writes report.md and its charts to the folder. Each of `sections` is (title, command line,
    other server, rows for comparison() or None if not measured, file name of the chart). Each of
    `latencies` is (name of the peer, rows for latency_table()).
    """
    folder.mkdir(parents=True, exist_ok=True)
    today = datetime.date.today().isoformat()
    parts = [f"# Bloomery beside redis-server, {today}\n"]
    parts.append(table(["", ""], [list(fact) for fact in facts]))
    parts.append(
        "Both servers run at once and take turns; figures are medians of the rounds. CPU is what\n"
        "the kernel accounts to all threads of a server. Machines are noisy: trust the ratios.\n"
    )
    parts.append(side_by_side(sections))
    for title, command, theirs, rows, file in sections:
        if rows is None:
            parts.append(f"## {title}\n\nNot measured: no module given.\n")
            continue
        (folder / file).write_text(chart(title, rows), encoding="utf-8")
        parts.append(comparison(title, command, theirs, rows))
        parts.append(f"![{title}]({file})\n")
    parts += [latency_table(name, rows) for name, rows in latencies]
    (folder / "report.md").write_text("\n".join(parts), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path("build/report"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the requests")
    parser.add_argument("--pin", type=int, nargs="+", help="processors for the servers")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND",
                        help="a server to compare with; port and directory are appended")
    options = parser.parse_args()
    try:
        named = [peers.parse_peer(text) for text in options.peer]
    except ValueError as fault:
        parser.error(str(fault))
    options.pipelines = [1, 16, 350]
    facts = machine_facts() + versions()
    sections, latencies = [], []
    for name, words in named:
        version, rows, latency = peers.measure(name, words, options)
        facts.append((name, f"{' '.join(words)} ({version})"))
        file = re.sub(r"\W+", "-", name.lower()) + "-peer.svg"
        line = command_line(["COMMAND"], options)
        sections.append((f"Beside {name}", line, name, rows, file))
        latencies.append((name, latency))
    commands, filters = measure_commands(options)
    module = redisbloom_module()
    write_report(options.to, facts, [
        ("Commands", command_line(["COMMAND"], options), "redis-server", commands, "commands.svg"),
        ("A filter, against a client's own", command_line(["BF.ADD", "filter", "ITEM"], options),
         "redis-server", filters, "filter.svg"),
        ("Filters of RedisBloom", command_line(["BF.COMMAND", "filter", "ITEM"], options),
         "RedisBloom", measure_redisbloom(options, module) if module else None, "redisbloom.svg"),
        *sections,
    ], latencies)  # fmt: skip
    print(options.to / "report.md")


if __name__ == "__main__":
    main()
