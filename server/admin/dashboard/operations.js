// SPDX-License-Identifier: MIT
// The last hour in charts, and lists of what needs an operator: commands, clients, replicas, disks.

import { Chart } from "/charts.js";
import { byId, setText, showRows, showTiles } from "/dom.js";
import { isBehind, replicasOf, replicaText, roleText } from "/header.js";
import { askRepeatedly, isRefusal } from "/server.js";
import {
  bytesText, clockText, countText, linesOf, momentText, percentText, shortClockText, shortText, spanText, timeText,
} from "/texts.js";

const kPoints = 300; // a chart is not wide enough for more
const kHourMs = 3600 * 1000;
const kCommandsShown = 5;
const kClientsShown = 50;

const perSecond = (text) => (value) => `${text(value)}/s`;
// An idle second has no percentiles.
const percentileText = (us) => (us > 0 ? timeText(us) : "–");
const processorsText = (share) => `${Number((100 * share).toPrecision(3))} %`;

// Each chart has an element, a title, series with the names of figures, and a format of values.
const kinds = [
  { id: "chart-operations", title: "Operations per second", series: { operations: "operations" },
    options: { yText: perSecond(shortText) } },
  { id: "chart-latency", title: "Latency of commands: percentiles", isWorst: true,
    series: { p50: "p50", p99: "p99", "p99.9": "p99.9" },
    options: { yText: percentileText, isLogarithmic: true } },
  { id: "chart-network", title: "Network", series: { "input bytes": "in", "output bytes": "out" },
    options: { yText: perSecond(bytesText), isBinary: true } },
  { id: "chart-cpu", title: "CPU, of one processor", series: { processors: "used" },
    options: { yText: processorsText } },
  { id: "chart-memory", title: "Memory", series: { used: "used", resident: "resident" },
    options: { yText: bytesText, isBinary: true } },
  { id: "chart-lag", title: "Bytes the last replica is behind", isWorst: true,
    series: { "replica lag bytes": "behind" }, options: { yText: bytesText, isBinary: true } },
];
const charts = new Map(); // by id
let commandChart = null;
let names = [];
let moments = []; // [time in ms, figure, …] of each second
let commands = { ends_ms: [], commands: {} };
let info = null;

// The end of the time axis, and its start, which the user has chosen.
function span() {
  const to = moments.length > 0 ? moments.at(-1)[0] : Date.now();
  const chosen = Number(byId("range").value);
  if (chosen > 0) return { from: to - chosen * 1000, to };
  const age = moments.length > 0 ? to - moments[0][0] : 0;
  const fits = [120, 300, 900, 3600].find((seconds) => age <= seconds * 1000) ?? 3600;
  return { from: to - fits * 1000, to };
}

function timeTicks({ from, to }) {
  const steps = [15, 30, 60, 120, 300, 600, 900].map((seconds) => seconds * 1000);
  const step = steps.find((one) => (to - from) / one <= 6) ?? steps.at(-1);
  const ticks = [];
  for (let at = Math.ceil(from / step) * step; at < to; at += step) ticks.push(at);
  return ticks;
}

// Returns at most kPoints points. Each one is the mean or the maximum of several seconds.
function thinned(rows, column, isWorst) {
  const size = Math.max(1, Math.ceil(rows.length / kPoints));
  const values = [];
  for (let i = 0; i < rows.length; i += size) {
    const part = rows.slice(i, i + size).map((row) => row[column]);
    values.push(isWorst ? Math.max(...part) : part.reduce((a, b) => a + b, 0) / part.length);
  }
  return values;
}

function showCharts() {
  const ends = span();
  const shown = moments.filter(([time]) => time >= ends.from);
  const size = Math.max(1, Math.ceil(shown.length / kPoints));
  const xs = shown.filter((_, i) => i % size === 0).map(([time]) => time);
  const axis = { ...ends, xs, xTicks: timeTicks(ends) };
  for (const { id, series, isWorst } of kinds) {
    const lines = Object.entries(series).map(([figure, name]) =>
      ({ name, values: thinned(shown, 1 + names.indexOf(figure), isWorst) }));
    charts.get(id).show({ ...axis, series: lines });
  }
  byId("figure-lag").hidden = info === null || replicasOf(info).length === 0;
}

export async function refreshHistory() {
  try {
    const after = moments.length > 0 ? moments.at(-1)[0] : 0;
    const answer = await askRepeatedly("/api/history", { after });
    names = answer.names;
    const all = [...moments, ...answer.rows];
    moments = all.filter(([time]) => time > all.at(-1)[0] - kHourMs);
    // After a restart of the server or a change of its clock, the history starts again.
    const isOrdered = moments.every(([time], i) => i === 0 || time > moments[i - 1][0]);
    if (!isOrdered) moments = [];
    byId("charts-note").textContent = "";
    showCharts();
  } catch (error) {
    if (isRefusal(error)) byId("charts-note").textContent = error.message;
  }
}

function showCommands() {
  const { ends_ms: ends, commands: all } = commands;
  const sums = Object.entries(all).map(([name, { calls, p99 }]) => {
    const worst = p99.reduce((best, us, i) => (us > p99[best] ? i : best), 0);
    return { name, calls, sum: calls.reduce((a, b) => a + b, 0), us: p99[worst], atMs: ends[worst] };
  });
  const total = sums.reduce((sum, { sum: calls }) => sum + calls, 0);
  sums.sort((a, b) => b.sum - a.sum);
  showRows("commands", ["Command", "Calls", "Share", "p99, highest", "When"], sums.map((one) => [
    one.name.toUpperCase().replace("|", " "), [countText(one.sum), "number"],
    [percentText(one.sum / total), "number"], [timeText(one.us), "number"],
    [shortClockText(one.atMs), "number"],
  ]), "No command in the last hour");
  const limits = span();
  const from = ends.findIndex((end) => end >= limits.from);
  const xs = from < 0 ? [] : ends.slice(from);
  commandChart.show({
    ...limits, xs, xTicks: timeTicks(limits),
    series: sums.slice(0, kCommandsShown).map(({ name, calls }) =>
      ({ name: name.toUpperCase().replace("|", " "), values: calls.slice(calls.length - xs.length).map((count) => count / 10) })),
  });
}

const fieldsOf = (line) => Object.fromEntries(line.split(" ").map((field) => {
  const at = field.indexOf("=");
  return [field.slice(0, at), field.slice(at + 1)];
}));

function showClients(text) {
  const clients = linesOf(text).map(fieldsOf);
  clients.sort((a, b) => b["tot-cmds"] - a["tot-cmds"]);
  showRows("clients", ["Client", "User", "Connected", "Idle", "Commands", "Last", "Memory"],
    clients.slice(0, kClientsShown).map((one) => [
      one.name === "" ? one.addr : `${one.name} (${one.addr})`, one.user,
      [spanText(one.age), "number"], [spanText(one.idle), "number"],
      [countText(one["tot-cmds"]), "number"], one.cmd.toUpperCase().replace("|", " "),
      [bytesText(Number(one["tot-mem"])), "number"],
    ]), "No client is connected");
  setText("clients-note", clients.length > kClientsShown
    ? `${countText(clients.length)} clients, the ${kClientsShown} busiest are shown` : "");
}

function showSlow(slow) {
  showRows("slow", ["When", "Took", "Command", "Client"], [...slow].sort((a, b) => b[2] - a[2]).slice(0, 20)
    .map(([, seconds, us, words, address]) => [
      momentText(1000 * seconds), [timeText(us), "number"], [words.join(" "), "words"], address,
    ]), "No slow command");
}

function showLog(lines) {
  // "123:M 20 Nov 2026 09:37:03.456 # text"
  const parted = lines.map((line) => /^\S+ (\d+ \S+ \d+ [\d:]+)\S* # (.*)$/s.exec(line) ?? [line, "", line]);
  showRows("log", ["When", "Message"], parted.reverse().slice(0, 20).map(([, when, text]) =>
    [when, [text, "words"]]), "No warning since the start");
}

function showNodes(text) {
  const nodes = linesOf(text).map((line) => {
    const [id, address, flags, leader, , , , link, ...slots] = line.split(" ");
    return [id.slice(0, 8), address.split(",")[0], flags.replace("myself,", "this, "),
      leader === "-" ? "–" : leader.slice(0, 8), link,
      [slots.filter((one) => !one.startsWith("[")).join(", ") || "–", "words"],
      [slots.filter((one) => one.startsWith("[")).join(" ") || "none", "words"]];
  });
  showRows("nodes", ["Node", "Address", "Flags", "Leader", "Link", "Slots", "Moves"], nodes, "No node");
}

// A list that the user may not read shows a text instead.
async function fill(id, path, show) {
  try {
    show(await askRepeatedly(path));
    byId(`${id}-error`).textContent = "";
  } catch (error) {
    if (isRefusal(error)) byId(`${id}-error`).textContent = error.message;
  }
}

export async function refreshLists(slow) {
  setText("slow-error", slow === null ? "The user may not read the slow log" : "");
  if (slow !== null) showSlow(slow);
  await fill("commands", "/api/commands", (answer) => {
    commands = answer;
    showCommands();
  });
  await fill("clients", "/api/clients", showClients);
  await fill("log", "/api/log", showLog);
  const isCluster = info !== null && info.cluster_enabled === "1";
  byId("section-nodes").hidden = !isCluster;
  if (isCluster) await fill("nodes", "/api/nodes", showNodes);
}

function saveText() {
  if (info.rdb_bgsave_in_progress === "1") return `being written, ${info.current_fork_perc} %`;
  if (info.rdb_saves === "0") return "none since the start";
  return `${spanText(Math.max(0, Date.now() / 1000 - info.rdb_last_save_time))} ago`;
}

function showPersistence() {
  const tiles = [
    ["Last snapshot", saveText()],
    ["Last snapshot's state", info.rdb_last_bgsave_status, info.rdb_last_bgsave_status !== "ok"],
    ["Changes since", countText(info.rdb_changes_since_last_save)],
    ["Append log", info.aof_enabled === "1" ? "on" : "off"],
  ];
  if (info.aof_enabled === "1") {
    const rewrite = info.aof_rewrite_in_progress === "1" ? "under way" : info.aof_last_bgrewrite_status;
    tiles.push(
      ["Last write", info.aof_last_write_status, info.aof_last_write_status !== "ok"],
      ["Log size", bytesText(Number(info.aof_current_size))],
      ["Last rewrite", rewrite, rewrite === "err"],
      ["Delayed syncs", countText(info.aof_delayed_fsync)]);
  }
  if (info.loading === "1") {
    tiles.unshift(["Loading", `${info.loading_loaded_perc} %, ${info.loading_eta_seconds} s left`]);
  }
  showTiles("persistence", tiles);
}

function showMemory() {
  const used = Number(info.used_memory);
  const limit = Number(info.maxmemory);
  showTiles("memory", [
    ["Used", bytesText(used)],
    ["Limit", limit === 0 ? "none" : `${bytesText(limit)}, ${percentText(used / limit)} used`,
      limit !== 0 && used > 0.95 * limit],
    ["Highest so far", bytesText(Number(info.used_memory_peak))],
    ["Resident", bytesText(Number(info.used_memory_rss))],
    ["Filters' arrays outside the heap", `${bytesText(Number(info.mem_filter_arrays_reserved))} reserved, ` +
      `${bytesText(Number(info.mem_filter_arrays_resident))} resident`],
    ["Keys evicted", countText(info.evicted_keys)],
    ["Clients", `${countText(info.connected_clients)} of ${countText(info.maxclients)}`],
    ["Connections refused", countText(info.rejected_connections), info.rejected_connections > 0],
  ]);
}

function showOthers() {
  const tiles = [["Role", roleText(info)]];
  if (info.role === "slave") {
    tiles.push(
      ["Leader", `${info.master_host}:${info.master_port}`],
      ["Link", info.master_link_status, info.master_link_status !== "up"],
      ["Leader heard", info.master_last_io_seconds_ago < 0 ? "–" : `${info.master_last_io_seconds_ago} s ago`],
      ["Full sync", info.master_sync_in_progress === "1" ? `${info.master_sync_perc || "0"} %` : "none under way"]);
  }
  tiles.push(["Replicas", countText(info.connected_slaves)]);
  for (const replica of replicasOf(info)) tiles.push([replica.name, replicaText(replica), isBehind(replica)]);
  tiles.push(["Stream offset", countText(info.master_repl_offset)]);
  if (info.cluster_enabled === "1") {
    tiles.push(
      ["Cluster", info.cluster_state, info.cluster_state !== "ok"],
      ["Slots served", `${countText(info.cluster_slots_ok)} of 16,384`, info.cluster_slots_ok !== "16384"],
      ["Shards and nodes", `${info.cluster_size} / ${info.cluster_known_nodes}`],
      ["Epoch", countText(info.cluster_my_epoch)]);
  }
  if (info.cluster_etcd) {
    tiles.push(["etcd", info.cluster_etcd, info.cluster_etcd !== "up"],
      ["Permit", `${countText(info.cluster_permit_ms)} ms`]);
  }
  setText("others-title", info.cluster_enabled === "1" ? "Replication and cluster" : "Replication");
  showTiles("others", tiles);
}

export function showOverview(now) {
  info = now.info;
  showMemory();
  showPersistence();
  showOthers();
}

export function startOperations() {
  const xText = (ms) => (ms % 60000 === 0 ? shortClockText(ms) : clockText(ms));
  const time = { xText, readText: clockText };
  for (const { id, title, options } of kinds) {
    charts.set(id, new Chart(byId(id), { title, ...time, ...options }));
  }
  commandChart = new Chart(byId("chart-commands"),
    { title: "Operations per command", ...time, yText: perSecond(shortText) });
  byId("range").addEventListener("change", () => {
    if (names.length > 0) showCharts();
    showCommands();
  });
}
