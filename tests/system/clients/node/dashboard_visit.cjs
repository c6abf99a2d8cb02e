// SPDX-License-Identifier: MIT
// What the checks of the dashboard share: a visit to a server's page in a browser context of its
// own, and what a visitor does and sees there.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const net = require("node:net");
const { setTimeout } = require("node:timers/promises");

const { patienceMs: kPatienceMs } = require("./client.cjs");

// One check's pages. `troubles` collects what a page must not do: errors, requests elsewhere.
class Visit {
  constructor(context, task) {
    this.context = context;
    this.task = task;
    this.troubles = [];
    this.expectsNoAnswer = false;
  }

  watch(page) {
    page.on("console", (message) => {
      if (!["error", "warn"].includes(message.type()) || this.expectsNoAnswer) return;
      this.troubles.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.troubles.push(`uncaught: ${error.message}`));
    page.on("request", (request) => {
      if (new URL(request.url()).origin === this.task.origin) return;
      this.troubles.push(`sent a request to ${request.url()}`);
    });
    page.on("response", (response) => {
      const isExpected = response.status() === 401 && this.task.password;
      if (response.status() >= 400 && !isExpected && !this.expectsNoAnswer) {
        this.troubles.push(`${response.url()} answered ${response.status()}`);
      }
    });
  }

  // `credentials`: a part of the page's address, such as "user:password@". `onRequest` is called
  // with the address of each request.
  async open({ width = 1280, scheme = "light", hash = "", credentials = "", onRequest } = {}) {
    // A window of its own: a tab behind another one is hidden, and asks the server for nothing.
    const page = await this.context.newPage({ type: "window" });
    page.setDefaultTimeout(kPatienceMs);
    this.watch(page);
    if (onRequest) page.on("request", (request) => onRequest(new URL(request.url())));
    if (this.task.password) {
      await page.authenticate({ username: "default", password: this.task.password });
    }
    await page.setViewport({ width, height: 900 });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    const address = `${this.task.origin.replace("//", `//${credentials}`)}/${hash}`;
    await page.goto(address, { waitUntil: "load" });
    await until(page, () => document.querySelector("#state").textContent !== "Connecting…" &&
      document.querySelector("#planned").children.length > 0);
    return page;
  }

  command(...words) {
    return new Promise((resolve, reject) => {
      const line = `${words.join(" ")}\r\n`;
      const socket = net.connect(this.task.port, "127.0.0.1", () => socket.write(line));
      socket.once("data", (data) => {
        socket.end();
        resolve(data.toString());
      });
      socket.once("error", reject);
    });
  }

  // Tells the test how far the check is, and waits until the test has done what comes next.
  async reach(step) {
    const sign = `${this.task.signs}/${step}`;
    fs.writeFileSync(sign, "");
    while (fs.existsSync(sign)) await setTimeout(20);
  }
}

const textOf = (page, selector) => page.$eval(selector, (element) => element.textContent);
const tiles = (page, id) => page.$$eval(`#${id} > div`, (boxes) => Object.fromEntries(
  boxes.map((box) => [box.querySelector("dt").textContent, box.querySelector("dd").textContent])));
const rowNames = (page) => page.$$eval("#filters td.name", (cells) => cells.map((cell) =>
  cell.textContent));
const column = (page, label) => page.$$eval(`#filters td[data-label="${label}"]`,
  (cells) => cells.map((cell) => cell.textContent));
const until = (page, test, ...more) => page.waitForFunction(test, { timeout: kPatienceMs },
  ...more);
const untilRows = (page, count) => until(page,
  (wanted) => document.querySelectorAll("#filters tr").length === wanted, count);

async function go(page, hash, selector) {
  await page.evaluate((wanted) => {
    location.hash = wanted;
  }, hash);
  await page.waitForSelector(selector, { visible: true, timeout: kPatienceMs });
}

async function openFilter(page, name) {
  await page.waitForSelector("#filters a", { timeout: kPatienceMs });
  await page.evaluate((wanted) => {
    const links = [...document.querySelectorAll("#filters a")];
    links.find((one) => one.textContent === wanted).click();
  }, name);
  await until(page, (wanted) => !document.querySelector("#filter-figures").hidden &&
    document.querySelector("#filter-title").textContent === wanted, name);
}

async function openOperations(page) {
  await go(page, "#/operations", "#chart-operations");
  await until(page, () => document.querySelectorAll("#commands td").length > 0 &&
    document.querySelector("#chart-operations .line")?.getAttribute("d").includes("L"));
}

async function choose(page, form, name, value) {
  await page.evaluate((formId, field, text) => {
    const control = document.querySelector(`#${formId}`).elements[field];
    control.value = text;
    control.dispatchEvent(new Event("input", { bubbles: true }));
    control.dispatchEvent(new Event("change", { bubbles: true }));
  }, form, name, value);
}

const clickHead = (page, label) => page.evaluate((wanted) =>
  [...document.querySelectorAll("#heads button")].find((one) =>
    one.textContent === wanted).click(), label);

const numbers = (texts) => texts.map((text) => Number(text.replace(/[^\d.e-]/g, "")));
const isFalling = (values) => values.every((value, i) => i === 0 || value <= values[i - 1]);

// The views as an operator meets them.
const views = {
  filters: async (page) => {
    await go(page, "#/", "#filters a");
    await until(page, () => /sessions.*Full in about/.test(
      document.querySelector("#next-growth").textContent));
  },
  window: async (page) => {
    await go(page, "#/", "#filters a");
    await openFilter(page, "visitors");
  },
  grown: async (page) => {
    await go(page, "#/", "#filters a");
    await openFilter(page, "grown");
    await choose(page, "try", "try-items", "item:1\nnever added");
    await page.click("#try-look");
    await page.waitForSelector("#try-answers td", { visible: true, timeout: kPatienceMs });
  },
  operations: openOperations,
  planner: async (page) => {
    await go(page, "#/planner", "#plan-errors .line");
  },
};

// Nothing wider than the window, no text that its own box cuts off.
async function checkLayout(page, width) {
  const found = await page.evaluate((most) => {
    const { scrollWidth } = document.documentElement;
    const wide = scrollWidth > most ? [`the page is ${scrollWidth} wide`] : [];
    const texts = "dt, dd, p, h1, h2, h3, td, th, pre, figcaption, label";
    for (const element of document.querySelectorAll(texts)) {
      const { right, width: own } = element.getBoundingClientRect();
      if (own === 0) continue;
      if (right > most + 1) wide.push(`${element.tagName} ${element.textContent}`);
      if (element.scrollWidth > element.clientWidth + 1) wide.push(`cut: ${element.textContent}`);
    }
    return wide;
  }, width);
  assert.deepEqual(found, []);
}

module.exports = {
  Visit, checkLayout, choose, clickHead, column, go, isFalling, kPatienceMs, numbers, openFilter,
  openOperations, rowNames, textOf, tiles, until, untilRows, views,
};
