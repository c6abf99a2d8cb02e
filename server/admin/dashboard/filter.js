// SPDX-License-Identifier: MIT
// The view of one filter: its fill, its layers, and a window's generations on a time line.

import { byId, make, setText, showRows, showTiles } from "/dom.js";
import { badge, badgesOf, bar, errsMore, found, isFixed, levelOf, shareOf } from "/filters.js";
import { ask, isRefusal } from "/server.js";
import {
  bytesText, countedText, countText, errorText, momentText, nameText, percentText, spanText, timeText,
} from "/texts.js";
import { showTryIt } from "/try_it.js";

const kMalformed = "The address of this page is not valid: two hexadecimal digits must follow each %";

let opened = null; // { id, db, text of the last answer, isGone }

// Converts the fields of BF.STATS to the names of BF.SCAN, for the same badges and colours.
function described(stats) {
  const filter = { ...stats, ttl: null };
  filter.kind = stats.window ? "windowed" : stats["cell bits"] === undefined ? "plain" : "deletable";
  if (stats.window?.items !== undefined) filter["window items"] = stats.window.items;
  if (stats.window?.seconds !== undefined) filter["window seconds"] = stats.window.seconds;
  return filter;
}

const lengthText = (window) => (window.items === undefined
  ? spanText(window.seconds) : countedText(window.items, "item"));

function showSummary(filter) {
  const listed = found(opened.id, opened.db);
  const left = filter["items left"];
  const tiles = [
    ["Items", countText(filter.items)],
    [filter.kind === "windowed" ? "Reserved for" : isFixed(filter) ? "Full at" : "Grows at",
      countedText(filter.kind === "windowed" ? filter["reserved capacity"] : filter.capacity, "item")],
    ["Error now", errorText(filter["predicted error rate"]), errsMore(filter)],
    ["Error requested", errorText(filter["error rate"])],
    ["Memory", bytesText(filter.bytes)],
    ["Bits set", percentText(filter["fill ratio"])],
  ];
  // BF.STATS has no TTL. The list from which the filter was opened has one.
  if (listed !== undefined) tiles.push(["TTL", listed.ttl === null ? "none" : spanText(listed.ttl / 1000)]);
  if (filter.kind !== "windowed") {
    tiles.splice(2, 0, ["Room for", countedText(left, "more item"), left === 0 && isFixed(filter)]);
    if (!isFixed(filter)) tiles.push(["Growing takes", bytesText(filter["next layer bytes"])]);
    if (filter["reserved capacity"] !== filter.capacity) {
      tiles.push(["Reserved for", countedText(filter["reserved capacity"], "item")]);
    }
  }
  byId("filter-badges").replaceChildren(...badgesOf(filter), badge(filter.layout));
  byId("filter-bar").replaceChildren(bar(shareOf(filter), levelOf(filter)),
    filter.kind === "windowed" ? `${countedText(filter.items, "item")} remembered; it rotates`
      : `${percentText(shareOf(filter))} of ${countedText(filter.capacity, "item")}`);
  showTiles("filter-tiles", tiles);
}

// Returns each generation with its layers, which are adjacent in the list of all layers.
function generationsOf(stats) {
  if (!stats.window) return [{ layers: stats.layers }];
  let at = 0;
  return stats.window.alive.map((one) =>
    ({ ...one, layers: stats.layers.slice(at, (at += one.layers)) }));
}

function ageText(window, generation, stats) {
  if (window.items === undefined) return spanText(Math.max(0, Date.now() - generation.start) / 1000);
  const newest = window.alive.at(-1);
  const before = newest.start + newest.items - generation.start;
  return countedText(Math.max(0, before), "item");
}

const startText = (window, generation) => (window.items === undefined
  ? momentText(generation.start) : `item ${countText(generation.start + 1)}`);

function showWindow(stats, generations) {
  const { window } = stats;
  byId("window").hidden = !window;
  if (!window) return;
  const room = Math.ceil(stats["reserved capacity"] / window.generations);
  const seconds = window.seconds / window.generations;
  const part = window.items === undefined
    ? (seconds < 60 ? timeText(1e6 * seconds) : spanText(seconds))
    : countedText(Math.ceil(window.items / window.generations), "item");
  setText("window-note", `Remembers ${lengthText(window)} in ${window.generations} generations of ` +
    `${part}, beside the newest, which fills up; reserved for ${countedText(stats["reserved capacity"], "item")}, ${countText(room)} a generation` +
    (window["items over capacity"] > 0 ? `; ${countedText(window["items over capacity"], "item")} came beyond that` : ""));
  byId("timeline").replaceChildren(...generations.map((one, i) => make("div", { className: "generation" },
    make("strong", { textContent: `Generation ${i + 1}` }),
    bar(one.items / Math.max(1, room), one.items > room ? "warn" : ""),
    make("span", { textContent: `${countText(one.items)} of ${countedText(room, "item")}` }),
    make("span", { textContent: `from ${startText(window, one)}` }),
    make("span", { textContent: `${ageText(window, one, stats)} ago` }))));
}

function drawLayers(generations, most) {
  byId("drawing").replaceChildren(...generations.map(({ layers }) =>
    make("div", { className: "layers" }, ...layers.map((layer) => {
      const box = make("div", { className: "layer" }, make("i"));
      // With the square root, the first layers of a filter that has grown often stay visible.
      box.style.flexGrow = Math.sqrt(layer.bits / most);
      box.firstChild.style.height = `${100 * layer["fill ratio"]}%`;
      return box;
    }))));
}

const layerLabels = ["Layer", "Items", "Capacity", "Bits set", "Hashes", "Error now"];

function showLayers(stats, generations) {
  drawLayers(generations, Math.max(...stats.layers.map((layer) => layer.bits)));
  setText("drawing-note", countedText(stats.layers.length, "layer") +
    (generations.length > 1 ? ` in ${generations.length} generations, the oldest on the left` : "") +
    ", as wide as the root of their bits, filled as their bits are set; the dashed line is one half");
  let serial = 0;
  showRows("layers", layerLabels, generations.flatMap(({ layers }, i) => layers.map((layer) => {
    serial += 1;
    const of = stats.window ? `generation ${i + 1} of ${generations.length}, ` : "";
    return [
      `${of}layer ${serial}`, [countText(layer.items), "number"],
      [countText(layer.capacity), "number"],
      [[bar(layer["fill ratio"], ""), percentText(layer["fill ratio"])], "number"],
      [countText(layer["hash count"]), "number"],
      [errorText(layer["predicted error rate"]), "number"],
    ];
  })), "");
}

function showTitle(key) {
  setText("filter-title", nameText(key));
  byId("filter-title").title = nameText(key);
}

function showNote(note, hasStats) {
  byId("filter-note").textContent = note;
  byId("filter-figures").hidden = !hasStats;
  byId("filter-layers").hidden = !hasStats;
}

function showStats(stats) {
  showTitle(stats.key);
  showNote("", true);
  const generations = generationsOf(stats);
  showSummary(described(stats));
  showWindow(stats, generations);
  showLayers(stats, generations);
}

export async function refreshFilter() {
  if (opened === null || opened.isGone) return;
  const mine = opened;
  try {
    // The id is the encoded key in the address, because JSON cannot contain arbitrary bytes.
    const stats = await ask(`/api/filter?key=${mine.id}`, { db: mine.db });
    if (mine !== opened) return;
    const text = JSON.stringify(stats);
    // Ages change even if the answer is unchanged.
    if (text !== mine.text || stats.window) showStats(stats);
    mine.text = text;
  } catch (error) {
    if (mine !== opened || !isRefusal(error)) return;
    mine.isGone = true; // deleted or not readable: a retry would not help
    showNote(error.message, false);
  }
}

export function openFilter(id, db) {
  const isMalformed = /%(?![0-9A-F]{2})/i.test(id);
  opened = isMalformed ? null : { id, db, text: "" };
  byId("try-it").hidden = isMalformed;
  // Until the answer arrives, no figures are shown, because they would be those of another filter.
  showNote(isMalformed ? kMalformed : "", false);
  if (isMalformed) return showTitle(id);
  showTitle(found(id, db)?.key ?? decodeURIComponent(id.replace(/%[89A-F]./gi, "?")));
  showTryIt(id, db);
  refreshFilter();
}

export function closeFilter() {
  opened = null;
}
