// SPDX-License-Identifier: MIT
// Five questions of an operator, answered above the filters.

import { byId, filterLink, longText, make } from "/dom.js";
import { errsMore, levelOf, shareOf } from "/filters.js";
import { isBehind, replicasOf, replicaText } from "/header.js";
import {
  bytesText, countedText, countText, errorText, nameText, percentText, shortClockText, spanText, timeText,
} from "/texts.js";

// Shows texts and elements below the question. `level` sets the colour of the card.
function show(id, level, ...content) {
  const card = byId(id);
  card.className = level;
  const answer = make("div", {}, ...content.map((part) =>
    (typeof part === "string" ? make("p", { textContent: part }) : part)));
  if (card.lastElementChild.isEqualNode(answer)) return;
  card.lastElementChild.replaceWith(answer);
}

const linkLine = (filter, db) => make("p", {}, filterLink(filter, db));

const kNameLengthMax = 40;
const shortName = ({ key }) =>
  (key.length > kNameLengthMax ? `${key.slice(0, kNameLengthMax)}…` : nameText(key));

// Two samples of each filter, kSampleMs apart. The rates cover the last half or whole minute.
const kSampleMs = 30000;
const kRateAfterMs = 3000;
const samples = new Map(); // by id: [older, newer], each { items, ms }
function addsPerSecond(filter) {
  const now = { items: filter.items, ms: Date.now() };
  let [older, newer] = samples.get(filter.id) ?? [now, now];
  if (now.ms - newer.ms > kSampleMs) [older, newer] = [newer, now];
  samples.set(filter.id, [older, newer]);
  const ms = now.ms - older.ms;
  return ms < kRateAfterMs ? null : Math.max(0, (1000 * (now.items - older.items)) / ms);
}

// Rates of one minute do not predict more than a day. So filters that fill up within a day come
// first, sorted by that time. The other filters follow, the fullest first.
const kHorizonS = 86400;
function compareGrowth(a, b) {
  if (a.seconds !== b.seconds) return a.seconds - b.seconds;
  return shareOf(b.filter) - shareOf(a.filter);
}

function showGrowth(filters, db) {
  // A windowed filter rotates instead of growing: the server reports no items left.
  const growing = filters
    .filter((filter) => filter["items left"] !== null && filter["next layer bytes"] !== null)
    .map((filter) => {
      const rate = addsPerSecond(filter);
      const seconds = rate > 0 ? filter["items left"] / rate : Infinity;
      return { filter, rate, seconds: seconds <= kHorizonS ? seconds : Infinity };
    });
  if (growing.length === 0) return show("next-growth", "", "No filter grows");
  growing.sort(compareGrowth);
  const { filter, rate, seconds } = growing[0];
  const left = filter["items left"];
  const fullest = growing.reduce((a, b) => (shareOf(b.filter) > shareOf(a.filter) ? b : a)).filter;
  show("next-growth", shareOf(filter) >= 0.8 ? "warn" : "", linkLine(filter, db),
    `${percentText(shareOf(filter))} full, ${countText(left)} more ${left === 1 ? "item fits" : "items fit"}`,
    seconds < Infinity ? `Full in about ${spanText(seconds)} at the rate of the last minute`
      : rate === null ? "The fullest; the rates of adds follow in seconds"
        : "The fullest: at the rate of the last minute, none fills up within a day",
    fullest === filter ? "" : `${shortName(fullest)} is fuller, but gets too few items to grow first`,
    `Growing takes ${bytesText(filter["next layer bytes"])}`);
}

function showErrors(filters, db) {
  const wrong = filters
    .filter(errsMore)
    .sort((a, b) => b["predicted error rate"] / b["error rate"] - a["predicted error rate"] / a["error rate"]);
  const full = filters.filter((filter) => levelOf(filter) === "bad" && !errsMore(filter));
  const fullText = full.length === 0 ? "" : full.length === 1 ? `${shortName(full[0])} is full and accepts no items`
    : `${countText(full.length)} other filters are full and accept no items`;
  if (wrong.length === 0) {
    return show("most-errors", full.length > 0 ? "warn" : "good", `None of ${countText(filters.length)}`, fullText);
  }
  const [worst] = wrong;
  show("most-errors", "bad", linkLine(worst, db),
    `${errorText(worst["predicted error rate"])} predicted, ${errorText(worst["error rate"])} requested`,
    wrong.length > 1 ? `and ${countText(wrong.length - 1)} more` : fullText);
}

function showCost(filters, db) {
  if (filters.length === 0) return show("most-memory", "", "No filters");
  const total = filters.reduce((sum, filter) => sum + filter.bytes, 0);
  const largest = filters.reduce((a, b) => (b.bytes > a.bytes ? b : a));
  show("most-memory", "", linkLine(largest, db),
    `${bytesText(largest.bytes)}, ${percentText(largest.bytes / total)} of the ${bytesText(total)} ` +
      `of ${countedText(filters.length, "filter")}`);
}

export function showFilterAnswers(filters, db) {
  const ids = new Set(filters.map((filter) => filter.id));
  for (const id of samples.keys()) {
    if (!ids.has(id)) samples.delete(id);
  }
  showGrowth(filters, db);
  showErrors(filters, db);
  showCost(filters, db);
}

export function showReplicaAnswer(info) {
  if (info.role === "slave") {
    const isUp = info.master_link_status === "up";
    const silent = Number(info.master_last_io_seconds_ago);
    return show("replica-lag", isUp ? "good" : "bad",
      isUp ? `This replica heard its leader ${silent} s ago` : "The link to the leader is down");
  }
  const replicas = replicasOf(info);
  if (replicas.length === 0) return show("replica-lag", "", "There are no replicas");
  replicas.sort((a, b) => isBehind(b) - isBehind(a) || b.lagBytes - a.lagBytes);
  const late = replicas.filter(isBehind).length;
  show("replica-lag", late > 0 ? "bad" : "good",
    late > 0 ? `${late} of ${replicas.length} behind` : `None of ${replicas.length} behind`,
    `${replicas[0].name}: ${replicaText(replicas[0])}`);
}

// `slow`: entries of SLOWLOG; null if the user may not read the slow log.
export function showSlowAnswer(slow) {
  if (slow === null) return show("slowest", "", "The user may not read the slow log");
  const recent = slow.filter(([, seconds]) => Date.now() / 1000 - seconds < 3600);
  if (recent.length === 0) return show("slowest", "good", "Nothing: the slow log has no entry of the last hour");
  const [, seconds, us, words] = recent.reduce((a, b) => (b[2] > a[2] ? b : a));
  show("slowest", "warn", make("p", {}, longText(words.slice(0, 2).join(" "))),
    `took ${timeText(us)} at ${shortClockText(1000 * seconds)}`,
    `${countedText(recent.length, "slow command")} in all`);
}
