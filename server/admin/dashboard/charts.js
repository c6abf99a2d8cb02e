// SPDX-License-Identifier: MIT
// Line charts with a grid, a legend, and the values under the pointer or the arrow keys.

import { make } from "/dom.js";

const kWidth = 600;
const kHeight = 140;
const kLabelShareMax = 0.93; // a label further right would be cut off
const kSpace = "http://www.w3.org/2000/svg";

function draw(tag, attributes) {
  const element = document.createElementNS(kSpace, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// 1, 2 or 5 times a power of ten (of two, for bytes): about `count` steps up to `most`.
function niceStep(most, count, isBinary) {
  if (!(most > 0)) return 1;
  const base = isBinary ? 2 : 10;
  const power = base ** Math.floor(Math.log(most / count) / Math.log(base));
  const factors = isBinary ? [1, 2] : [1, 2, 5, 10];
  return power * factors.find((factor) => power * factor * count >= most * 0.999);
}

export class Chart {
  // `host`: an empty element. Options: title, xText and yText (numbers as text), isBinary (bytes),
  // isLogarithmic (times).
  constructor(host, options) {
    this.options = options;
    this.svg = draw("svg", {
      viewBox: `0 0 ${kWidth} ${kHeight}`, preserveAspectRatio: "none", "aria-hidden": "true",
    });
    this.ticks = make("div", { className: "ticks", ariaHidden: "true" });
    this.times = make("div", { className: "times", ariaHidden: "true" });
    this.legend = make("p", { className: "legend" });
    this.plot = make("div", { className: "plot", tabIndex: 0 }, this.svg, this.ticks);
    this.plot.setAttribute("role", "group");
    this.plot.setAttribute("aria-label", `${options.title}; arrow keys read the values`);
    this.readout = make("p", { className: "readout" });
    this.readout.setAttribute("role", "status");
    host.replaceChildren(this.plot, this.times, this.legend, this.readout);
    this.plot.addEventListener("pointermove", (event) => this.pointAt(event));
    this.plot.addEventListener("pointerleave", () => this.select(null));
    this.plot.addEventListener("blur", () => this.select(null));
    this.plot.addEventListener("keydown", (event) => this.onKey(event));
    this.data = { xs: [], series: [], from: 0, to: 1 };
    this.selected = null;
  }

  // `series`: [{ name, values }], each value beside the x of the same index; null is a gap. `from`
  // and `to` are the ends of the x axis, `marks` are x or y values with a dashed line.
  show({ xs, series, from, to, xTicks, marks = {} }) {
    this.data = { xs, series, from, to };
    const values = series.flatMap(({ values: all }) => all.filter((value) => value !== null));
    const most = Math.max(0, ...(marks.y ?? []), ...values);
    this.scale(most, values);
    const shapes = [...this.gridLines(xTicks)];
    for (const x of marks.x ?? []) {
      shapes.push(draw("line", { class: "mark", x1: this.x(x), x2: this.x(x), y1: 0, y2: kHeight }));
    }
    for (const y of marks.y ?? []) {
      shapes.push(draw("line", { class: "mark", x1: 0, x2: kWidth, y1: this.y(y), y2: this.y(y) }));
    }
    series.forEach(({ values: all }, i) => {
      shapes.push(draw("path", { class: `line series-${i}`, d: this.path(all) }));
    });
    this.cursor = draw("line", { class: "cursor", y1: 0, y2: kHeight, visibility: "hidden" });
    this.svg.replaceChildren(...shapes, this.cursor);
    this.times.replaceChildren(...xTicks.map((x) => [x, this.x(x) / kWidth])
      .filter(([, share]) => share <= kLabelShareMax)
      .map(([x, share]) => this.label(x, "left", share, this.options.xText(x))));
    this.showLegend();
    this.select(this.selected);
  }

  scale(most, values) {
    const { isBinary, isLogarithmic } = this.options;
    if (isLogarithmic) {
      const least = Math.min(...values.filter((value) => value > 0), most || 1);
      this.low = Math.floor(Math.log10(least || 1));
      this.high = Math.max(this.low + 1, Math.ceil(Math.log10(most || 1)));
      this.yTicks = [];
      const step = Math.ceil((this.high - this.low) / 5);
      for (let power = this.low; power <= this.high; power += step) this.yTicks.push(10 ** power);
      return;
    }
    const step = niceStep(most, 4, isBinary);
    this.top = Math.max(step, Math.ceil(most / step - 1e-9) * step);
    this.yTicks = [];
    for (let y = 0; y <= this.top * 1.001; y += step) this.yTicks.push(y);
  }

  x(value) {
    const { from, to } = this.data;
    return ((value - from) / (to - from || 1)) * kWidth;
  }

  y(value) {
    const share = this.options.isLogarithmic
      ? (Math.log10(Math.max(value, 10 ** this.low)) - this.low) / (this.high - this.low)
      : value / this.top;
    return kHeight - share * kHeight;
  }

  // Where the value is 0 a logarithm has no place, so the line has a gap.
  path(values) {
    let path = "";
    let isDown = false;
    values.forEach((value, i) => {
      const isGap = value === null || (this.options.isLogarithmic && value <= 0);
      if (!isGap) {
        path += `${isDown ? "L" : "M"}${this.x(this.data.xs[i]).toFixed(1)} ${this.y(value).toFixed(1)}`;
      }
      isDown = !isGap;
    });
    return path;
  }

  gridLines(xTicks) {
    this.ticks.replaceChildren(...this.yTicks.map((y) =>
      this.label(y, "top", this.y(y) / kHeight, this.options.yText(y))));
    return [
      ...this.yTicks.map((y) => draw("line", {
        class: "grid", x1: 0, x2: kWidth, y1: this.y(y), y2: this.y(y) })),
      ...xTicks.map((x) => draw("line", {
        class: "grid", x1: this.x(x), x2: this.x(x), y1: 0, y2: kHeight })),
    ];
  }

  label(value, side, share, text) {
    const label = make("span", { textContent: text });
    label.style[side] = `${(100 * share).toFixed(2)}%`;
    return label;
  }

  showLegend() {
    this.legend.replaceChildren(...this.data.series.map(({ name, values }, i) => {
      const last = values.findLast((value) => value !== null);
      const now = last === undefined || this.options.hidesLast ? "" : ` ${this.options.yText(last)}`;
      return make("span", { className: `key series-${i}`, textContent: `${name}${now}` });
    }));
  }

  pointAt(event) {
    const box = this.plot.getBoundingClientRect();
    const { xs, from, to } = this.data;
    const x = from + ((event.clientX - box.left) / box.width) * (to - from);
    let best = null;
    xs.forEach((one, i) => {
      if (best === null || Math.abs(one - x) < Math.abs(xs[best] - x)) best = i;
    });
    this.select(best);
  }

  onKey(event) {
    const last = this.data.xs.length - 1;
    const at = this.selected ?? last;
    const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last };
    if (!(event.key in moves) || last < 0) return;
    event.preventDefault();
    this.select(Math.min(last, Math.max(0, moves[event.key])));
  }

  select(index) {
    this.selected = index !== null && index < this.data.xs.length ? index : null;
    if (!this.cursor) return;
    this.cursor.setAttribute("visibility", this.selected === null ? "hidden" : "visible");
    if (this.selected === null) {
      if (this.readout.textContent !== "") this.readout.textContent = "";
      return;
    }
    const x = this.data.xs[this.selected];
    this.cursor.setAttribute("x1", this.x(x));
    this.cursor.setAttribute("x2", this.x(x));
    const values = this.data.series.map(({ name, values: all }) => {
      const value = all[this.selected];
      return `${name} ${value === null ? "–" : this.options.yText(value)}`;
    });
    const at = (this.options.readText ?? this.options.xText)(x);
    this.readout.textContent = `${at}: ${values.join(", ")}`;
  }
}
