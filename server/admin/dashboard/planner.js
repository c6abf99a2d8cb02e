// SPDX-License-Identifier: MIT
// Shows the cost of a planned filter, compared with other kinds and with RedisBloom.

import { Chart } from "/charts.js";
import { byId, setText, showRows, showTiles } from "/dom.js";
import { ask } from "/server.js";
import { bytesText, countedText, countText, errorText, exactText, quotedText, shortText } from "/texts.js";

const kinds = { plain: "plain", deletable: "deletable", windowed: "windowed", redisbloom: "RedisBloom" };
let planned = 0;
let charts = null;

function reserveLine({ name, error_rate: rate, capacity, kind, window }) {
  const more = { deletable: ["DELETABLE"], windowed: ["WINDOW", window] }[kind] ?? [];
  return ["BF.RESERVE", quotedText(name || "name"), rate, capacity, ...more].join(" ");
}

function showFigures(plan) {
  const tiles = [
    ["Memory", bytesText(plan.bytes)],
    ["Disk", bytesText(plan["disk bytes"])],
    ["Bits per item", exactText(plan["bits per item"])],
    ["Hash count", countText(plan["hash count"])],
    ["Cache lines per lookup", countText(plan["cache lines per lookup"])],
    ["Error rate of the first layer", errorText(plan["error rate of the first layer"])],
    ["Layout", plan.layout],
  ];
  if (plan.generations !== undefined) tiles.push(["Generations", countText(plan.generations)]);
  if (plan["cell bits"] !== undefined) tiles.push(["Bits of a cell", countText(plan["cell bits"])]);
  showTiles("planned", tiles);
}

function showCurves(all, wanted) {
  // A kind that cannot have these settings has no points.
  const curves = Object.fromEntries(Object.entries(all).filter(([, points]) => points.length > 0));
  const [first] = Object.values(curves);
  const capacity = Number(wanted.capacity);
  const xs = [0, ...first.map(([items]) => items)];
  const axis = { xs, from: 0, to: 2 * capacity, xTicks: [0, 0.5, 1, 1.5].map((share) => share * capacity) };
  const series = (index, start) => Object.entries(curves).map(([name, points]) =>
    ({ name: kinds[name], values: [start(points), ...points.map((point) => point[index])] }));
  charts.error.show({ ...axis, series: series(1, () => 0),
    marks: { x: [capacity], y: [Number(wanted.error_rate)] } });
  charts.memory.show({ ...axis, series: series(2, (points) => points[0][2]), marks: { x: [capacity] } });
  showRows("compared", ["Kind", "Memory", "Error at the capacity", "Memory at twice as many", "Error there"],
    Object.entries(curves).map(([name, points]) => {
      const at = points[points.length / 2 - 1];
      const beyond = points.at(-1);
      return [kinds[name], [bytesText(at[2]), "number"], [errorText(at[1]), "number"],
        [bytesText(beyond[2]), "number"], [errorText(beyond[1]), "number"]];
    }), "");
}

export async function refreshPlan() {
  const wanted = Object.fromEntries(new FormData(byId("plan")));
  const mine = (planned += 1);
  byId("plan-window").hidden = wanted.kind !== "windowed";
  const { name, ...parameters } = wanted;
  try {
    const answer = await ask("/api/plan", parameters);
    if (mine !== planned) return;
    showFigures(answer.plan);
    showCurves(answer.curves, wanted);
    setText("plan-line", reserveLine(wanted));
    byId("plan-figures").hidden = false;
    byId("plan-error").textContent = "";
  } catch (error) {
    if (mine !== planned) return;
    byId("plan-error").textContent = error.message;
    byId("planned").replaceChildren();
    byId("plan-figures").hidden = true;
  }
}

export function startPlanner() {
  const xText = (items) => shortText(items);
  const readText = (items) => countedText(Math.round(items), "item");
  charts = {
    error: new Chart(byId("plan-errors"), { title: "Error rate against items", xText, readText,
      yText: errorText, hidesLast: true }),
    memory: new Chart(byId("plan-bytes"), { title: "Memory against items", xText, readText,
      yText: bytesText, isBinary: true, hidesLast: true }),
  };
  byId("plan").addEventListener("change", refreshPlan);
  byId("plan").addEventListener("submit", (event) => {
    event.preventDefault();
    refreshPlan();
  });
}
