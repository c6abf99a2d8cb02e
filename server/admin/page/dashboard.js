// SPDX-License-Identifier: MIT
// The dashboard: asks the server each second, draws what it says. It only reads.
"use strict";

const byId = (id) => document.getElementById(id);
const kSecondsShown = 120;
const kFiltersMax = 10000;
const kRowsShown = 200;

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
const rateText = (rate) => (rate === null || rate === undefined ? "–" : Number(rate).toPrecision(3));
const percentText = (share) => `${(100 * share).toFixed(1)} %`;

async function ask(path, parameters = {}) {
  const response = await fetch(`${path}?${new URLSearchParams(parameters)}`);
  const answer = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function tile(list, name, value) {
  const box = document.createElement("div");
  const label = document.createElement("dt");
  const text = document.createElement("dd");
  label.textContent = name;
  text.textContent = value;
  box.append(label, text);
  list.append(box);
}

// Overview.
const rates = [];
let before = null;

function percentile(now, percentage) {
  const counts = now.latency.counts.map((count, i) => count - (before ? before.latency.counts[i] : 0));
  const total = now.latency.total - (before ? before.latency.total : 0);
  if (total <= 0) return "–";
  const at = counts.findIndex((count) => count >= (total * percentage) / 100);
  const bounds = now.latency.bounds_us;
  return at < 0 ? `> ${countText(bounds.at(-1))} µs` : `≤ ${countText(bounds[at])} µs`;
}

function replicationText(info) {
  if (info.role === "slave") {
    return `replica of ${info.master_host}:${info.master_port}, link ${info.master_link_status}`;
  }
  return `leader, ${info.connected_slaves} replicas`;
}

function drawLine(id, values, most, width, height) {
  const step = width / Math.max(values.length - 1, 1);
  const points = values.map((value, i) => {
    const y = height - 4 - (most > 0 ? value / most : 0) * (height - 8);
    return `${(i * step).toFixed(1)},${y.toFixed(1)}`;
  });
  byId(id).querySelector("polyline").setAttribute("points", points.join(" "));
}

function showOverview(now) {
  const info = now.info;
  const seconds = before ? (now.time_us - before.time_us) / 1e6 : 0;
  const done = (fields) => Number(fields.total_commands_processed);
  const rate = seconds > 0 ? Math.max(0, Math.round((done(info) - done(before.info)) / seconds)) : 0;
  rates.push(rate);
  if (rates.length > kSecondsShown) rates.shift();
  const most = Math.max(...rates);
  byId("server").textContent = `${info.bloomery_version || ""} ${info.role} on port ${info.tcp_port}, ` +
    `up ${countText(info.uptime_in_seconds)} s`;
  byId("state").textContent = now.unready === "" ? "Ready" : now.unready;
  byId("state").className = now.unready === "" ? "" : "bad";
  const list = byId("tiles");
  list.replaceChildren();
  tile(list, "Operations per second", countText(rate));
  tile(list, "Latency, half of the calls", percentile(now, 50));
  tile(list, "Latency, 99 %", percentile(now, 99));
  tile(list, "Latency, 99.9 %", percentile(now, 99.9));
  tile(list, "Memory used", bytesText(Number(info.used_memory)));
  const limit = Number(info.maxmemory);
  tile(list, "Memory limit", limit === 0 ? "none" : bytesText(limit));
  tile(list, "Clients", countText(info.connected_clients));
  tile(list, "Keyspace hits and misses", `${countText(info.keyspace_hits)} / ${countText(info.keyspace_misses)}`);
  tile(list, "Append log", info.aof_enabled === "1" ? `on, ${info.aof_last_write_status}` : "off");
  tile(list, "Last snapshot", `${info.rdb_last_bgsave_status}, ${countText(info.rdb_changes_since_last_save)} changes since`);
  tile(list, "Replication", replicationText(info));
  tile(list, "Cluster", info.cluster_enabled === "1" ? "on" : "off");
  drawLine("rate", rates, most, 600, 120);
  byId("rate-max").textContent = countText(most);
  before = now;
}

async function refreshOverview() {
  try {
    showOverview(await ask("/api/overview"));
  } catch (error) {
    byId("state").textContent = `No answer: ${error.message}`;
    byId("state").className = "bad";
  }
  setTimeout(refreshOverview, 1000);
}

// Filters.
let asked = 0; // the last request for the list; older ones are dropped

async function readFilters(match, db, mine) {
  const found = new Map();
  let cursor = "0";
  do {
    const page = await ask("/api/filters", { cursor, match, db });
    if (mine !== asked) return null;
    for (const filter of page.filters) found.set(filter.id, filter);
    cursor = page.cursor;
  } while (cursor !== "0" && found.size < kFiltersMax);
  return { filters: [...found.values()], isWhole: cursor === "0" };
}

function filterRow(filter) {
  const row = document.createElement("tr");
  const cell = (content, kind = "") => {
    const place = document.createElement("td");
    place.className = kind;
    place.append(content);
    row.append(place);
  };
  const name = document.createElement("button");
  name.type = "button";
  name.textContent = filter.key;
  name.title = filter.key;
  name.addEventListener("click", () => showFilter(filter));
  cell(name);
  cell(filter.layout);
  cell(countText(filter.items), "number");
  cell(countText(filter.capacity), "number");
  const fill = document.createElement("meter");
  fill.value = filter["fill ratio"];
  fill.setAttribute("aria-label", `fill of ${filter.key}`);
  const both = document.createElement("span");
  both.append(fill, ` ${percentText(filter["fill ratio"])}`);
  cell(both);
  cell(rateText(filter["predicted error rate"]), "number");
  cell(bytesText(filter.bytes), "number");
  cell(countText(filter.layers), "number");
  return row;
}

function sorted(filters, by) {
  if (by === "key") return filters.sort((a, b) => (a.key < b.key ? -1 : 1));
  return filters.sort((a, b) => b[by] - a[by]);
}

async function refreshFilters(isPoll) {
  const form = new FormData(byId("search"));
  const mine = (asked += 1);
  let match = form.get("match") || "*";
  if (!/[*?[\\]/.test(match)) match = `*${match}*`;
  try {
    const list = await readFilters(match, form.get("db") || "0", mine);
    if (list === null) return;
    const shown = sorted(list.filters, form.get("sort")).slice(0, kRowsShown);
    // Rows that a reader is inside of stay until he leaves them.
    if (isPoll && byId("filters").contains(document.activeElement)) return;
    byId("filters").replaceChildren(...shown.map(filterRow));
    const more = list.isWhole ? "" : "; there are more, a pattern narrows the search";
    const note = `${countText(list.filters.length)} filters, ${countText(shown.length)} shown${more}`;
    if (byId("filters-note").textContent !== note) byId("filters-note").textContent = note;
  } catch (error) {
    byId("filters-note").textContent = error.message;
  }
}

function bar(share) {
  const name = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(name, "svg");
  drawing.setAttribute("viewBox", "0 0 100 4");
  drawing.setAttribute("preserveAspectRatio", "none");
  drawing.setAttribute("aria-hidden", "true");
  const filled = document.createElementNS(name, "rect");
  filled.setAttribute("width", String(100 * share));
  filled.setAttribute("height", "4");
  drawing.append(filled);
  return drawing;
}

function layerItem(title, text, share) {
  const item = document.createElement("li");
  const head = document.createElement("strong");
  head.textContent = title;
  item.append(head, ` ${text}`, bar(share));
  return item;
}

function generationOf(stats, index) {
  if (!stats.window) return "";
  let end = 0;
  for (let i = 0; i < stats.window.alive.length; i += 1) {
    end += stats.window.alive[i].layers;
    if (index < end) return `, generation ${i + 1} of ${stats.window.alive.length}`;
  }
  return "";
}

async function showFilter(filter) {
  const db = new FormData(byId("search")).get("db") || "0";
  byId("detail-title").textContent = filter.key;
  byId("detail").hidden = false;
  try {
    const response = await fetch(`/api/filter?key=${filter.id}&db=${encodeURIComponent(db)}`);
    const stats = await response.json();
    if (!response.ok) throw new Error(stats.error);
    const left = stats["items left"];
    byId("detail-note").textContent = `${countText(stats.items)} of ${countText(stats.capacity)} items, ` +
      `${bytesText(stats.bytes)}, predicted error ${rateText(stats["predicted error rate"])}` +
      (left === null ? "" : `, ${countText(left)} items left in the newest layer`);
    byId("layers").replaceChildren(...stats.layers.map((layer, i) => layerItem(
      `Layer ${i + 1}${generationOf(stats, i)}:`,
      `${countText(layer.items)} of ${countText(layer.capacity)} items, fill ${percentText(layer["fill ratio"])}, ` +
        `${layer["hash count"]} hashes, predicted error ${rateText(layer["predicted error rate"])}`,
      layer["fill ratio"])));
  } catch (error) {
    byId("detail-note").textContent = error.message;
    byId("layers").replaceChildren();
  }
  byId("detail").focus();
}

// Planner.
async function showPlan() {
  const wanted = Object.fromEntries(new FormData(byId("plan")));
  byId("plan-error").textContent = "";
  try {
    const { plan, curve } = await ask("/api/plan", wanted);
    const list = byId("planned");
    list.replaceChildren();
    tile(list, "Bits per item", rateText(plan["bits per item"]));
    tile(list, "Memory", bytesText(plan.bytes));
    tile(list, "Bytes", countText(plan.bytes));
    tile(list, "Hash count", countText(plan["hash count"]));
    tile(list, "Cache lines per lookup", countText(plan["cache lines per lookup"]));
    tile(list, "Error rate of the first layer", rateText(plan["error rate of the first layer"]));
    tile(list, "Layout", plan.layout);
    tile(list, "Disk", bytesText(plan["disk bytes"]));
    const most = Math.max(...curve.map(([, rate]) => rate));
    drawLine("curve", [0, ...curve.map(([, rate]) => rate)], most, 600, 160);
    byId("curve-note").textContent = `Error rate from no item to ${countText(curve.at(-1)?.[0] || 0)}; ` +
      `the dashed line is the capacity, the highest point ${rateText(most)}. A filter that grows stays ` +
      "at the left of the line.";
  } catch (error) {
    byId("plan-error").textContent = error.message;
    byId("planned").replaceChildren();
  }
}

byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  refreshFilters(false);
});
byId("search").addEventListener("change", () => refreshFilters(false));
byId("plan").addEventListener("submit", (event) => {
  event.preventDefault();
  showPlan();
});
refreshOverview();
refreshFilters(false);
setInterval(() => refreshFilters(true), 2000);
showPlan();
