// SPDX-License-Identifier: MIT
// The table of filters: read a page at a time, sorted by a click on a head.

import { byId, filterLink, make, row, setText } from "/dom.js";
import { askRepeatedly, isRefusal } from "/server.js";
import { bytesText, countedText, countText, errorText, percentText, spanText } from "/texts.js";

const kFiltersMax = 10000;
const kRowsShown = 200;

export const shareOf = (filter) => filter.items / Math.max(1, filter.capacity);

export const isFixed = (filter) =>
  filter.kind !== "windowed" && filter["next layer bytes"] === null;

export const errsMore = (filter) =>
  filter["predicted error rate"] > filter["error rate"] * 1.000001;

// "bad": the filter is full or exceeds its error rate. "warn": nearly full. A window drops old
// items, so a full window only "rotates".
export function levelOf(filter) {
  if (errsMore(filter)) return "bad";
  if (filter.kind === "windowed") return "rotates";
  if (isFixed(filter) && filter["items left"] === 0) return "bad";
  return shareOf(filter) >= 0.8 ? "warn" : "";
}

export function roomText(filter) {
  const window = windowText(filter);
  if (window !== "") return `forgets after ${window}`;
  const verb = isFixed(filter) ? "full" : "grows";
  return `${verb} at ${countText(filter.capacity)}`;
}

export function windowText(filter) {
  if (filter["window items"] !== undefined) return countedText(filter["window items"], "item");
  if (filter["window seconds"] !== undefined) return spanText(filter["window seconds"]);
  return "";
}

export function bar(share, level) {
  const box = make("span", { className: `bar ${level}` }, make("i"));
  box.firstChild.style.width = `${Math.min(100, 100 * share).toFixed(1)}%`;
  return box;
}

export const badge = (text, level = "") => make("span", { className: `badge ${level}`, textContent: text });

export function badgesOf(filter) {
  const badges = [badge(filter.kind)];
  if (filter.kind === "windowed") badges.push(badge(windowText(filter)));
  if (isFixed(filter)) badges.push(badge("fixed"));
  if (errsMore(filter)) badges.push(badge("errs more", "bad"));
  if (isFixed(filter) && filter["items left"] === 0) badges.push(badge("full", "bad"));
  return badges;
}

const ttlText = (ttl) => (ttl === null ? "none" : spanText(ttl / 1000));

// The value by which each head sorts, and the class of the column's cells. Numbers are sorted in
// descending order, texts ascending.
const columns = {
  key: { label: "Filter", kind: "name", by: (filter) => filter.key },
  kind: { label: "Kind", kind: "badges", by: (filter) => filter.kind },
  full: { label: "Full", kind: "full", by: (filter) => (filter.kind === "windowed" ? -1 : shareOf(filter)) },
  items: { label: "Items", kind: "number", by: (filter) => filter.items },
  capacity: { label: "Capacity", kind: "number", by: (filter) => filter.capacity },
  error: { label: "Error now", kind: "number", by: (filter) => filter["predicted error rate"] },
  requested: { label: "Requested", kind: "number", by: (filter) => filter["error rate"] },
  ttl: { label: "TTL", kind: "number", by: (filter) => filter.ttl ?? Infinity },
  memory: { label: "Memory", kind: "number", by: (filter) => filter.bytes },
  layers: { label: "Layers", kind: "number", by: (filter) => filter.layers },
};
const order = { column: "full", isDescending: true };
const isText = (value) => typeof value === "string";

function compare(a, b) {
  const { by } = columns[order.column];
  const [left, right] = order.isDescending ? [by(b), by(a)] : [by(a), by(b)];
  if (left !== right) return left < right ? -1 : 1;
  return a.key < b.key ? -1 : 1;
}

function filterRow(filter, db) {
  const level = levelOf(filter);
  const share = shareOf(filter);
  const shareText = filter.kind === "windowed" ? "rotates" : percentText(share);
  const cells = {
    key: filterLink(filter, db),
    kind: badgesOf(filter),
    full: [make("span", { className: "share" }, bar(share, level), shareText),
      make("small", { textContent: roomText(filter) })],
    items: countText(filter.items),
    capacity: countText(filter.capacity),
    error: errorText(filter["predicted error rate"]),
    requested: errorText(filter["error rate"]),
    ttl: ttlText(filter.ttl),
    memory: bytesText(filter.bytes),
    layers: countText(filter.layers),
  };
  return row(Object.entries(columns).map(([name, { label, kind }]) =>
    ({ label, content: cells[name], kind: name === "error" && errsMore(filter) ? `${kind} bad` : kind })),
    { className: level });
}

// An unchanged row is not replaced, so that the reader's position in the row is preserved.
let rows = new Map(); // by id
function showRows(filters, db) {
  const focusedId = [...rows].find(([, { element }]) => element.contains(document.activeElement))?.[0];
  const shown = new Map();
  for (const filter of filters) {
    // The TTL changes each second, so its cell is updated without a new row.
    const text = JSON.stringify([db, { ...filter, ttl: null }]);
    const old = rows.get(filter.id);
    const { element } = old?.text === text ? old : { element: filterRow(filter, db) };
    const ttl = element.querySelector('[data-label="TTL"]');
    if (ttl.textContent !== ttlText(filter.ttl)) ttl.textContent = ttlText(filter.ttl);
    shown.set(filter.id, { text, element });
  }
  const body = byId("filters");
  const elements = [...shown.values()].map(({ element }) => element);
  const isSame = elements.length === body.children.length &&
    elements.every((element, i) => body.children[i] === element);
  rows = shown;
  if (isSame) return;
  body.replaceChildren(...elements);
  if (focusedId !== undefined) shown.get(focusedId)?.element.querySelector("a").focus();
}

let asked = 0; // number of the last request; earlier answers are dropped
let list = { filters: [], db: "0", isWhole: true, match: "*" };
async function readFilters(match, db, mine) {
  const found = new Map();
  let cursor = "0";
  let pages = 0;
  do {
    pages += 1;
    const page = await askRepeatedly("/api/filters", { cursor, match, db });
    if (mine !== asked) return null;
    for (const filter of page.filters) found.set(filter.id, filter);
    cursor = page.cursor;
  } while (cursor !== "0" && found.size < kFiltersMax);
  return { filters: [...found.values()], db, match, pages, isWhole: cursor === "0" };
}

function showList() {
  const { filters, db, match, isWhole } = list;
  showRows([...filters].sort(compare).slice(0, kRowsShown), db);
  const shown = Math.min(filters.length, kRowsShown);
  const more = isWhole ? "" : "; there are more";
  const hint = shown < filters.length ? "; a pattern narrows the search" : "";
  setText("filters-note", filters.length === 0
    ? `No filter of database ${db} matches ${match}`
    : `${countedText(filters.length, "filter")}, ${countText(shown)} shown${more}${hint}`);
}

export const found = (id, db) =>
  (list.db === db ? list.filters.find((filter) => filter.id === id) : undefined);

let onList = () => {};
// Returns how many pages were read.
export async function refreshFilters() {
  const form = new FormData(byId("search"));
  const mine = (asked += 1);
  let match = form.get("match") || "*";
  if (!/[*?[\\]/.test(match)) match = `*${match}*`;
  try {
    const read = await readFilters(match, form.get("db") || "0", mine);
    if (read === null) return 1;
    list = read;
    showList();
    if (match === "*") onList(list);
    return list.pages;
  } catch (error) {
    if (mine === asked && isRefusal(error)) setText("filters-note", error.message);
    return 1;
  }
}

function showOrder() {
  for (const head of byId("heads").children) {
    const isChosen = head.dataset.column === order.column;
    if (isChosen) head.setAttribute("aria-sort", order.isDescending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
}

function sortBy(column) {
  const isChosen = order.column === column;
  const [sample] = list.filters;
  order.isDescending = isChosen ? !order.isDescending
    : sample === undefined || !isText(columns[column].by(sample));
  order.column = column;
  showOrder();
  showList();
}

// `listener`: called with each list of all filters of a database.
export function startFilters(listener) {
  onList = listener;
  byId("heads").append(...Object.entries(columns).map(([name, { label, kind }]) => {
    const button = make("button", { type: "button", textContent: label });
    button.addEventListener("click", () => sortBy(name));
    const head = make("th", { className: kind === "number" ? kind : "", data: { column: name }, scope: "col" }, button);
    head.setAttribute("role", "columnheader");
    return head;
  }));
  showOrder();
  byId("search").addEventListener("input", refreshFilters);
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    refreshFilters();
  });
}
