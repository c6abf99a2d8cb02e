// SPDX-License-Identifier: MIT
// The dashboard: asks the server each second, draws what it says. It only reads.
"use strict";

const byId = (id) => document.getElementById(id);
const kSecondsShown = 120;
const kFiltersMax = 10000;
const kRowsShown = 200;
const kPollMs = 1000;

function bytesText(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (count >= 1024 && unit + 1 < units.length) {
    count /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? count : count.toFixed(2)} ${units[unit]}`;
}

const countText = (count) => Number(count).toLocaleString("en");
const exactText = (number) => String(Number(Number(number).toPrecision(6)));
const percentText = (share) => `${(100 * share).toFixed(1)} %`;

function rateText(rate) {
  if (rate === null || rate === undefined) return "–";
  return String(Number(Number(rate).toPrecision(3)));
}

function timeText(us) {
  if (us >= 1e6) return `${us / 1e6} s`;
  return us >= 1e3 ? `${us / 1e3} ms` : `${us} µs`;
}

function spanText(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60]];
  const unit = units.find(([, size]) => seconds >= 2 * size);
  return unit ? `${Math.floor(seconds / unit[1])} ${unit[0]}` : `${Math.floor(seconds)} s`;
}

async function ask(path, parameters = {}) {
  const mark = path.includes("?") ? "&" : "?";
  const response = await fetch(`${path}${mark}${new URLSearchParams(parameters)}`);
  const answer = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (answer.error !== undefined) throw new Error(answer.error);
  return answer;
}

// Each tile: name, value, whether it is bad.
function showTiles(id, tiles) {
  byId(id).replaceChildren(...tiles.map(([name, value, isBad]) => {
    const box = document.createElement("div");
    const label = document.createElement("dt");
    const text = document.createElement("dd");
    label.textContent = name;
    text.textContent = value;
    box.className = isBad ? "bad" : "";
    box.append(label, text);
    return box;
  }));
}

// Values from 0 to `most`, drawn from the left end to the right one of `slots` places.
function drawLine(id, values, most, slots = values.length) {
  const { width, height } = byId(id).viewBox.baseVal;
  const step = width / Math.max(slots - 1, 1);
  const first = slots - values.length;
  const points = values.map((value, i) => {
    const y = height - 4 - (most > 0 ? value / most : 0) * (height - 8);
    return `${((first + i) * step).toFixed(1)},${y.toFixed(1)}`;
  });
  byId(id).querySelector("polyline").setAttribute("points", points.join(" "));
}

// Overview.
const rates = [];
const slowest = [];
let before = null;

// The least bound, in microseconds, that so many of the calls since the last look kept; Infinity
// beyond the last one, null without calls.
function percentile(now, percentage) {
  const total = now.latency.total - (before ? before.latency.total : 0);
  if (total <= 0) return null;
  const at = now.latency.counts.findIndex((count, i) =>
    count - (before ? before.latency.counts[i] : 0) >= (total * percentage) / 100);
  return at < 0 ? Infinity : now.latency.bounds_us[at];
}

function latencyText(us, bounds) {
  if (us === null) return "–";
  return us === Infinity ? `> ${timeText(bounds.at(-1))}` : `≤ ${timeText(us)}`;
}

// Of the first look, which tells of all the time before, nothing.
function remember(values, value) {
  if (before && values.push(value) > kSecondsShown) values.shift();
}

function showTraffic(now) {
  const info = now.info;
  const done = before ? info.total_commands_processed - before.info.total_commands_processed : 0;
  const rate = done > 0 ? Math.round((done * 1e6) / (now.time_us - before.time_us)) : 0;
  const bounds = now.latency.bounds_us;
  const [half, most, nearlyAll] = [50, 99, 99.9].map((percentage) => percentile(now, percentage));
  remember(rates, rate);
  remember(slowest, Math.min(most || 0, bounds.at(-1)));
  const hits = Number(info.keyspace_hits);
  const lookups = hits + Number(info.keyspace_misses);
  showTiles("traffic", [
    ["Operations per second", countText(rate)],
    ["Latency, half of the calls", latencyText(half, bounds)],
    ["Latency, 99 %", latencyText(most, bounds)],
    ["Latency, 99.9 %", latencyText(nearlyAll, bounds)],
    ["Clients", `${countText(info.connected_clients)} of ${countText(info.maxclients)}`],
    ["Keyspace hits", lookups === 0 ? "–" : percentText(hits / lookups)],
    ["Connections refused", countText(info.rejected_connections), info.rejected_connections > 0],
  ]);
  const highest = Math.max(0, ...rates);
  drawLine("rate", rates, highest, kSecondsShown);
  byId("rate-max").textContent = countText(highest);
  const longest = Math.max(0, ...slowest);
  drawLine("slow", slowest, longest, kSecondsShown);
  byId("slow-max").textContent = timeText(longest);
}

function showMemory(info) {
  const used = Number(info.used_memory);
  const limit = Number(info.maxmemory);
  showTiles("memory", [
    ["Used", bytesText(used)],
    ["Limit", limit === 0 ? "none" : `${bytesText(limit)}, ${percentText(used / limit)} used`,
      limit !== 0 && used > 0.95 * limit],
    ["Highest so far", bytesText(Number(info.used_memory_peak))],
    ["Resident", bytesText(Number(info.used_memory_rss))],
    ["Filters' arrays", `${bytesText(Number(info.mem_filter_arrays_reserved))} reserved, ` +
      `${bytesText(Number(info.mem_filter_arrays_resident))} resident`],
    ["Keys evicted", countText(info.evicted_keys)],
  ]);
}

function saveText(info) {
  if (info.rdb_bgsave_in_progress === "1") return `being written, ${info.current_fork_perc} %`;
  if (info.rdb_saves === "0") return "none since the start";
  return `${spanText(Math.max(0, Date.now() / 1000 - info.rdb_last_save_time))} ago`;
}

function showPersistence(info) {
  const tiles = [
    ["Last snapshot", saveText(info)],
    ["Its state", info.rdb_last_bgsave_status, info.rdb_last_bgsave_status !== "ok"],
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

// "ip=10.0.0.1,port=6379,state=online,offset=14,lag=1"
const parts = (text) => Object.fromEntries(text.split(",").map((part) => part.split("=")));

function showOthers(info) {
  const tiles = [["Role", info.role === "slave" ? "replica" : "leader"]];
  if (info.role === "slave") {
    tiles.push(
      ["Leader", `${info.master_host}:${info.master_port}`],
      ["Link", info.master_link_status, info.master_link_status !== "up"],
      ["Leader heard", info.master_last_io_seconds_ago < 0 ? "–" : `${info.master_last_io_seconds_ago} s ago`],
      ["Full sync", info.master_sync_in_progress === "1" ? `${info.master_sync_perc || "0"} %` : "none under way"]);
  }
  tiles.push(["Replicas", countText(info.connected_slaves)]);
  for (let i = 0; info[`slave${i}`]; i += 1) {
    const replica = parts(info[`slave${i}`]);
    tiles.push([`${replica.ip}:${replica.port}`, `${replica.state}, ${replica.lag} s behind`,
      replica.state !== "online" || replica.lag > 10]);
  }
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
  byId("others-title").textContent = info.cluster_enabled === "1" ? "Replication and cluster" : "Replication";
  showTiles("others", tiles);
}

function setText(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

function showState(text, isBad) {
  setText("state", text);
  byId("state").className = isBad ? "bad" : "";
}

function showOverview(now) {
  const info = now.info;
  byId("server").textContent = `Version ${info.bloomery_version}, ` +
    `${info.role === "slave" ? "replica" : "leader"} on port ${info.tcp_port}, up ${spanText(info.uptime_in_seconds)}`;
  showState(now.unready === "" ? "Ready" : now.unready, now.unready !== "");
  showTraffic(now);
  showMemory(info);
  showPersistence(info);
  showOthers(info);
  before = now;
}

async function refreshOverview() {
  try {
    showOverview(await ask("/api/overview"));
  } catch (error) {
    showState(`No answer: ${error.message}`, true);
  }
  setTimeout(refreshOverview, kPollMs);
}

// Filters.
let asked = 0; // the last request for the list; older ones are dropped
let opened = null; // the filter that is shown closely, with its database
const rows = new Map(); // by id
async function readFilters(match, db, mine) {
  const found = new Map();
  let cursor = "0";
  let pages = 0;
  do {
    pages += 1;
    const page = await ask("/api/filters", { cursor, match, db });
    if (mine !== asked) return null;
    for (const filter of page.filters) found.set(filter.id, filter);
    cursor = page.cursor;
  } while (cursor !== "0" && found.size < kFiltersMax);
  return { filters: [...found.values()], pages, isWhole: cursor === "0" };
}

function gauge(share) {
  const box = document.createElement("span");
  const filled = document.createElement("i");
  box.className = "gauge";
  filled.style.width = `${100 * share}%`;
  box.append(filled);
  const text = document.createElement("span");
  text.className = "share";
  text.textContent = percentText(share);
  return [box, text];
}

function tableRow(cells) {
  const row = document.createElement("tr");
  for (const [content, kind = ""] of cells) {
    const place = document.createElement("td");
    place.className = kind;
    place.append(...(Array.isArray(content) ? content : [content]));
    row.append(place);
  }
  return row;
}

function filterRow(filter, db) {
  const name = document.createElement("button");
  name.type = "button";
  name.textContent = filter.key === "" ? "(empty name)" : filter.key;
  name.title = filter.key;
  name.addEventListener("click", () => openFilter(filter, db));
  const fill = filter["fill ratio"];
  return tableRow([
    [name], [filter.layout], [countText(filter.items), "number"],
    [countText(filter.capacity), "number"], [gauge(fill), "number"],
    [rateText(filter["predicted error rate"]), "number"], [bytesText(filter.bytes), "number"],
    [countText(filter.layers), "number"],
  ]);
}

function sorted(filters, by) {
  if (by === "key") return filters.sort((a, b) => (a.key < b.key ? -1 : 1));
  return filters.sort((a, b) => b[by] - a[by] || (a.key < b.key ? -1 : 1));
}

// A row that says the same stays, and with it the reader's place in it.
function showRows(filters, db) {
  const focused = document.activeElement.closest("#filters tr");
  const focusedId = [...rows].find(([, old]) => old.row === focused)?.[0];
  const shown = new Map();
  for (const filter of filters) {
    const text = JSON.stringify([db, filter]);
    const old = rows.get(filter.id);
    shown.set(filter.id, old && old.text === text ? old : { text, row: filterRow(filter, db) });
  }
  const isSame = shown.size === rows.size &&
    [...shown.values()].every(({ row }, i) => byId("filters").children[i] === row);
  rows.clear();
  for (const [id, one] of shown) rows.set(id, one);
  if (isSame) return;
  byId("filters").replaceChildren(...[...shown.values()].map(({ row }) => row));
  if (focusedId !== undefined) shown.get(focusedId)?.row.querySelector("button").focus();
}

async function refreshFilters() {
  const form = new FormData(byId("search"));
  const mine = (asked += 1);
  const db = form.get("db") || "0";
  let match = form.get("match") || "*";
  if (!/[*?[\\]/.test(match)) match = `*${match}*`;
  let note = "";
  let pages = 1;
  try {
    const list = await readFilters(match, db, mine);
    if (list === null) return 1;
    pages = list.pages;
    const shown = sorted(list.filters, form.get("sort")).slice(0, kRowsShown);
    showRows(shown, db);
    const more = list.isWhole ? "" : "; there are more, a pattern narrows the search";
    note = `${countText(list.filters.length)} filters, ${countText(shown.length)} shown${more}`;
    if (list.filters.length === 0) note = `No filter of database ${db} matches ${match}`;
  } catch (error) {
    if (mine !== asked) return 1;
    note = error.message;
  }
  setText("filters-note", note);
  return pages;
}

// A second for each page, so that many filters are not read all the time.
async function pollFilters() {
  const pages = await refreshFilters();
  await refreshDetail();
  setTimeout(pollFilters, kPollMs * pages);
}

// One filter: its layers side by side, as wide as they have bits, in the generations they belong to.
function generationsOf(stats) {
  if (!stats.window) return [{ name: "", layers: stats.layers }];
  let at = 0;
  return stats.window.alive.map((one, i) => {
    const layers = stats.layers.slice(at, (at += one.layers));
    return { name: `generation ${i + 1} of ${stats.window.alive.length}, `, layers };
  });
}

function drawLayers(generations, most) {
  byId("drawing").replaceChildren(...generations.map(({ layers }) => {
    const group = document.createElement("div");
    group.className = "generation";
    for (const layer of layers) {
      const box = document.createElement("div");
      const filled = document.createElement("i");
      box.className = "layer";
      // The square root keeps the first layers of a filter that has grown often in sight.
      box.style.flexGrow = Math.sqrt(layer.bits / most);
      filled.style.height = `${100 * layer["fill ratio"]}%`;
      box.append(filled);
      group.append(box);
    }
    return group;
  }));
}

function layerRows(generations) {
  let serial = 0;
  return generations.flatMap(({ name, layers }) => layers.map((layer) => {
    serial += 1;
    const fill = layer["fill ratio"];
    return tableRow([
      [`${name}layer ${serial}`], [countText(layer.items), "number"],
      [countText(layer.capacity), "number"], [gauge(fill), "number"],
      [countText(layer["hash count"]), "number"],
      [rateText(layer["predicted error rate"]), "number"],
    ]);
  }));
}

function showStats(stats) {
  const left = stats["items left"];
  const next = stats["next layer bytes"];
  const growth = left === null || left === undefined ? "" : `; ${countText(left)} more fit before it ` +
    (next === null ? "is full" : `takes another layer of ${bytesText(next)}`);
  byId("detail-note").textContent = `${countText(stats.items)} of ${countText(stats.capacity)} items in ` +
    `${bytesText(stats.bytes)}, predicted error ${rateText(stats["predicted error rate"])}` +
    ` of ${rateText(stats["error rate"])} asked for${growth}`;
  const generations = generationsOf(stats);
  drawLayers(generations, Math.max(...stats.layers.map((layer) => layer.bits)));
  byId("drawing-note").textContent = (stats.layers.length === 1 ? "1 layer" : `${stats.layers.length} layers`) +
    (generations.length > 1 ? ` in ${generations.length} generations, the oldest on the left` : "") +
    ", as wide as the root of their bits, filled as their bits are set; the dashed line is one half";
  byId("layers").replaceChildren(...layerRows(generations));
}

function showNoStats(note) {
  byId("detail-note").textContent = note;
  byId("drawing").replaceChildren();
  byId("drawing-note").textContent = "";
  byId("layers").replaceChildren();
}

async function refreshDetail() {
  if (opened === null || opened.isGone) return;
  const mine = opened;
  try {
    // An id is a part of an address as it stands; JSON could not carry the bytes of every key.
    const stats = await ask(`/api/filter?key=${mine.filter.id}`, { db: mine.db });
    if (mine !== opened) return;
    const text = JSON.stringify(stats);
    if (text !== mine.text) showStats(stats);
    mine.text = text;
  } catch (error) {
    if (mine !== opened) return;
    mine.isGone = true; // deleted, or not to be seen: asking again would not help
    showNoStats(error.message);
  }
}

async function openFilter(filter, db) {
  const mine = { filter, db, text: "" };
  opened = mine;
  byId("detail-title").textContent = filter.key;
  showNoStats(""); // those of another filter would stand below this one's name
  await refreshDetail();
  if (mine !== opened) return;
  byId("detail").hidden = false;
  byId("detail").focus();
}

function closeFilter() {
  if (opened === null) return;
  const row = rows.get(opened.filter.id)?.row;
  opened = null;
  byId("detail").hidden = true;
  (row?.querySelector("button") || byId("search").elements[0]).focus();
}

// Planner.
let planned = 0;
function showPlan({ plan, curve }, wanted) {
  const tiles = [
    ["Bits per item", exactText(plan["bits per item"])],
    ["Memory", bytesText(plan.bytes)],
    ["Bytes", countText(plan.bytes)],
    ["Hash count", countText(plan["hash count"])],
    ["Cache lines per lookup", countText(plan["cache lines per lookup"])],
    ["Error rate of the first layer", exactText(plan["error rate of the first layer"])],
    ["Layout", plan.layout],
    ["Disk", bytesText(plan["disk bytes"])],
  ];
  if (plan.generations !== undefined) tiles.push(["Generations", countText(plan.generations)]);
  if (plan["cell bits"] !== undefined) tiles.push(["Bits of a cell", countText(plan["cell bits"])]);
  showTiles("planned", tiles);
  const rate = Number(wanted.error_rate);
  const most = Math.max(rate, ...curve.map(([, error]) => error));
  drawLine("curve", [0, ...curve.map(([, error]) => error)], most);
  const y = 160 - 4 - (rate / most) * 152;
  byId("curve-asked").setAttribute("y1", y);
  byId("curve-asked").setAttribute("y2", y);
  byId("curve-max").textContent = rateText(most);
  const capacity = curve[curve.length / 2 - 1][0];
  byId("curve-half").textContent = `${countText(capacity)} items`;
  byId("curve-end").textContent = countText(curve.at(-1)[0]);
  byId("curve-note").textContent = `At ${countText(capacity)} items the error rate is ` +
    `${rateText(curve[curve.length / 2 - 1][1])}, at twice as many ${rateText(curve.at(-1)[1])}. ` +
    "The dashed lines are the capacity and the error rate asked for" +
    (plan.scaling ? "; behind its capacity the filter has grown." : ".");
}

async function refreshPlan() {
  const wanted = Object.fromEntries(new FormData(byId("plan")));
  const mine = (planned += 1);
  byId("plan-window").hidden = wanted.kind !== "windowed";
  try {
    const answer = await ask("/api/plan", wanted);
    if (mine !== planned) return;
    showPlan(answer, wanted);
    byId("plan-figure").hidden = false;
    byId("plan-error").textContent = "";
  } catch (error) {
    if (mine !== planned) return;
    byId("plan-error").textContent = error.message;
    byId("planned").replaceChildren();
    byId("plan-figure").hidden = true;
  }
}

for (const [id, kind, act] of [["search", "input", refreshFilters], ["plan", "change", refreshPlan]]) {
  byId(id).addEventListener(kind, act);
  byId(id).addEventListener("submit", (event) => {
    event.preventDefault();
    act();
  });
}
byId("detail-close").addEventListener("click", closeFilter);
byId("detail").addEventListener("keydown", (event) => event.key === "Escape" && closeFilter());
refreshOverview();
pollFilters();
refreshPlan();
