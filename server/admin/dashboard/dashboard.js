// SPDX-License-Identifier: MIT
// The dashboard: selects the view, and schedules the requests to the server. Only BF.INSERT writes.

import { showFilterAnswers, showReplicaAnswer, showSlowAnswer } from "/answers.js";
import { byId } from "/dom.js";
import { closeFilter, openFilter, refreshFilter } from "/filter.js";
import { refreshFilters, startFilters } from "/filters.js";
import { showGone, showHeader, showState } from "/header.js";
import { refreshHistory, refreshLists, showOverview, startOperations } from "/operations.js";
import { refreshPlan, startPlanner } from "/planner.js";
import { askRepeatedly, forgetDenials, isGone, isRefusal, onAnswering, poll } from "/server.js";
import { startTryIt } from "/try_it.js";

const kPollMs = 1000;
const kSlowPollMs = 10000;
const views = ["filters", "filter", "operations", "planner"];
let view = "";
let goneSince = null;
let slow = [];

// Parses an address such as "#/", "#/filter/0/name", "#/operations" or "#/planner".
function route() {
  const [, name = "", db = "0", ...id] = location.hash.split("/");
  const before = view;
  view = views.includes(name) ? name : "filters";
  for (const one of views) byId(`view-${one}`).hidden = one !== view;
  for (const link of document.querySelectorAll("nav a")) {
    const isShown = link.getAttribute("href") === (view === "filters" || view === "filter" ? "#/" : `#/${view}`);
    if (isShown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view === "filter") openFilter(id.join("/"), db);
  else closeFilter();
  forgetDenials();
  refreshView();
  // A new view is scrolled to its top, and gets the keyboard's focus there.
  if (before !== "" && (before !== view || view === "filter")) {
    byId(`view-${view}`).focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

async function refreshOverview() {
  try {
    const now = await askRepeatedly("/api/overview");
    showHeader(now);
    showOverview(now);
    showReplicaAnswer(now.info);
  } catch (error) {
    if (isRefusal(error)) showState(error.message, true);
  }
  if (isGone()) showGone(goneSince);
}

// Requests data that change rarely or are expensive.
async function refreshSlowLog() {
  try {
    slow = await askRepeatedly("/api/slowlog");
  } catch (error) {
    if (!isRefusal(error)) return;
    slow = null;
  }
  showSlowAnswer(slow);
  if (view === "operations") await refreshLists(slow);
}

let pages = 1;
async function refreshShown() {
  if (view === "filters") pages = await refreshFilters();
  else pages = 1;
  if (view === "filter") await refreshFilter();
  if (view === "operations") await refreshHistory();
}

let refreshView = () => {};
function start() {
  onAnswering((since) => {
    goneSince = since;
    showGone(since);
  });
  startFilters(({ filters, db }) => showFilterAnswers(filters, db));
  startTryIt();
  startOperations();
  startPlanner();
  addEventListener("hashchange", route);
  byId("filter-close").addEventListener("click", () => {
    location.hash = "#/";
  });
  byId("view-filter").addEventListener("keydown", (event) => {
    if (event.key === "Escape") location.hash = "#/";
  });
  poll(refreshOverview, () => kPollMs);
  // Pauses a second per page, so that a list of many filters is not read all the time.
  const refreshNow = poll(refreshShown, () => kPollMs * pages);
  const refreshSlowly = poll(refreshSlowLog, () => kSlowPollMs);
  refreshView = () => {
    refreshNow();
    if (view === "operations") refreshSlowly();
    if (view === "planner") refreshPlan();
  };
  route();
  refreshPlan();
}

start();
