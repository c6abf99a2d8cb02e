// SPDX-License-Identifier: MIT
// Drives the dashboard in Chromium: one check a run. The task is JSON in the first argument; exits
// with 1 and says why when the check fails, or when the page has met an error or left its origin.
"use strict";

const assert = require("node:assert/strict");
const net = require("node:net");
const path = require("node:path");

const task = JSON.parse(process.argv[2]);
const puppeteer = require(path.join(task.modules, "puppeteer-core"));
const axePath = path.join(task.modules, "axe-core", "axe.min.js");
const kPatienceMs = 60000;

// What the page must not do.
const troubles = [];
let expectsNoAnswer = false;

function watch(page) {
  page.on("console", (message) => {
    if (!["error", "warn"].includes(message.type()) || expectsNoAnswer) return;
    troubles.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => troubles.push(`uncaught: ${error.message}`));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== task.origin) troubles.push(`asked ${request.url()}`);
  });
  page.on("response", (response) => {
    const isExpected = response.status() === 401 && task.password;
    if (response.status() >= 400 && !isExpected && !expectsNoAnswer) {
      troubles.push(`${response.url()} answered ${response.status()}`);
    }
  });
}

async function open(browser, { width = 1280, scheme = "light" } = {}) {
  const page = await browser.newPage();
  watch(page);
  if (task.password) await page.authenticate({ username: "default", password: task.password });
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(task.origin, { waitUntil: "load" });
  await page.waitForFunction(
    () => document.querySelector("#state").textContent !== "Connecting…" &&
      document.querySelector("#planned").children.length > 0 &&
      document.querySelector("#filters-note").textContent !== "",
    { timeout: kPatienceMs });
  return page;
}

function command(...words) {
  return new Promise((resolve, reject) => {
    const line = `${words.join(" ")}\r\n`;
    const socket = net.connect(task.port, "127.0.0.1", () => socket.write(line));
    socket.once("data", (data) => {
      socket.end();
      resolve(data.toString());
    });
    socket.once("error", reject);
  });
}

const rowNames = (page) => page.$$eval("#filters tr td:first-child",
  (cells) => cells.map((cell) => cell.textContent));
const textOf = (page, selector) => page.$eval(selector, (element) => element.textContent);
const tiles = (page, id) => page.$$eval(`#${id} > div`, (boxes) => Object.fromEntries(
  boxes.map((box) => [box.querySelector("dt").textContent, box.querySelector("dd").textContent])));

// Until the page has its next answer from the server, which it asks all the time.
const refreshed = (page) => page.waitForResponse(() => true, { timeout: kPatienceMs });
const shoot = (page, name) =>
  page.screenshot({ path: path.join(task.folder, name), fullPage: true });

const clickOnFilter = (page, name) => page.evaluate((wanted) => {
  const names = [...document.querySelectorAll("#filters button")];
  names.find((one) => one.textContent === wanted).click();
}, name);

// While another filter is open. Below the new name there is nothing until the answer has come.
async function checkSlowAnswer(page, name) {
  const hold = (request) => {
    if (!request.url().includes("/api/filter?")) request.continue();
  };
  page.on("request", hold);
  await page.setRequestInterception(true);
  await clickOnFilter(page, name);
  await page.waitForFunction((wanted) =>
    document.querySelector("#detail-title").textContent === wanted, { timeout: kPatienceMs }, name);
  assert.equal(await textOf(page, "#layers"), "");
  assert.equal(await textOf(page, "#detail-note"), "");
  page.off("request", hold);
  await page.setRequestInterception(false); // lets go what is held
}

async function openFilter(page, name) {
  await clickOnFilter(page, name);
  await page.waitForFunction((wanted) => !document.querySelector("#detail").hidden &&
    document.querySelector("#detail-title").textContent === wanted &&
    document.querySelectorAll("#layers tr").length > 0, { timeout: kPatienceMs }, name);
}

async function choose(page, form, name, value) {
  await page.evaluate((formId, field, text) => {
    const control = document.querySelector(`#${formId}`).elements[field];
    control.value = text;
    control.dispatchEvent(new Event("input", { bubbles: true }));
    control.dispatchEvent(new Event("change", { bubbles: true }));
  }, form, name, value);
}

const checks = {
  async contents(browser) {
    const page = await open(browser);
    assert.equal(await textOf(page, "#state"), "Ready");
    const all = { ...await tiles(page, "traffic"), ...await tiles(page, "memory"),
      ...await tiles(page, "persistence"), ...await tiles(page, "others") };
    for (const name of ["Operations per second", "Latency, 99 %", "Used", "Limit", "Append log",
      "Last snapshot", "Role", "Replicas"]) {
      assert.ok(all[name], `no tile ${name}: ${JSON.stringify(all)}`);
    }
    assert.match(all.Limit, /^1\.00 GiB/);
    assert.equal(all["Append log"], "on");
    assert.equal(all.Role, "leader");
    // A name is text, whatever is in it; and what is no filter is not there.
    const names = await rowNames(page);
    assert.ok(names.includes("odd \\xff<b>name</b>"), names.join());
    assert.ok(!names.includes("no filter"));
    assert.equal(names.length, 7);
    await checkOrder(page);
    await choose(page, "search", "match", "rown");
    await page.waitForFunction(() => document.querySelectorAll("#filters tr").length === 1);
    assert.deepEqual(await rowNames(page), ["grown"]);
    await openFilter(page, "grown");
    const layers = await page.$$eval("#layers tr", (rows) => rows.length);
    assert.ok(layers > 3, `${layers} layers`);
    assert.equal(await page.$$eval("#drawing .layer", (all_) => all_.length), layers);
    await choose(page, "search", "match", "");
    await page.waitForFunction(() => document.querySelectorAll("#filters tr").length === 7);
    await checkSlowAnswer(page, "visitors");
    await openFilter(page, "visitors");
    assert.match(await textOf(page, "#layers"), /generation 1 of/);
    await openFilter(page, "odd \\xff<b>name</b>");
  },

  async fresh(browser) {
    const page = await open(browser);
    assert.equal(await command("BF.ADD", "just:made", "x"), ":1\r\n");
    const begun = Date.now();
    await page.waitForFunction(() => [...document.querySelectorAll("#filters button")]
      .some((one) => one.textContent === "just:made"), { timeout: kPatienceMs });
    console.log(`shown after ${Date.now() - begun} ms`);
    await openFilter(page, "just:made");
    assert.match(await textOf(page, "#detail-note"), /^1 of 100 items/);
    await command("BF.ADD", "just:made", "y");
    await page.waitForFunction(() => /^2 of 100 items/.test(
      document.querySelector("#detail-note").textContent), { timeout: kPatienceMs });
    await command("DEL", "just:made");
    await page.waitForFunction(() => ![...document.querySelectorAll("#filters button")]
      .some((one) => one.textContent === "just:made"), { timeout: kPatienceMs });
    await page.waitForFunction(() => document.querySelectorAll("#layers tr").length === 0,
      { timeout: kPatienceMs });
    assert.match(await textOf(page, "#detail-note"), /not found/);
  },

  async planner(browser) {
    const page = await open(browser);
    for (const plan of task.plans) await checkPlan(page, plan);
    for (const { kind, window: seconds, error_rate: rate, capacity } of task.refused) {
      await submitPlan(page, { kind, window: seconds, error_rate: rate, capacity });
      await page.waitForFunction(() => document.querySelector("#plan-error").textContent !== "",
        { timeout: kPatienceMs });
      assert.equal(Object.keys(await tiles(page, "planned")).length, 0);
    }
  },

  async axe(browser) {
    for (const scheme of ["light", "dark"]) {
      for (const width of [1280, 390]) {
        const page = await open(browser, { width, scheme });
        await openFilter(page, "grown");
        // The policy lets no script in that is not the server's; DevTools may.
        await page.evaluate(require("node:fs").readFileSync(axePath, "utf8"));
        const { violations } = await page.evaluate(() => window.axe.run());
        const found = violations.map(({ id, impact, nodes }) =>
          `${scheme} ${width} ${impact} ${id}: ${nodes.map(({ html }) => html).join(" ")}`);
        if (found.length > 0) console.log(found.join("\n"));
        const isSerious = ({ impact }) => impact === "serious" || impact === "critical";
        assert.ok(!violations.some(isSerious), found.join("\n"));
        await page.close();
      }
    }
  },

  async keyboard(browser) {
    const page = await open(browser);
    const focused = () => page.evaluate(() => {
      const { id, name, textContent, tagName } = document.activeElement;
      return id || name || textContent || tagName;
    });
    await page.keyboard.press("Tab");
    assert.equal(await focused(), "Skip to the content");
    const left = await page.evaluate(() => document.activeElement.getBoundingClientRect().left);
    assert.ok(left >= 0, "the skip link cannot be seen when it has the focus");
    await page.keyboard.press("Enter");
    assert.equal(await focused(), "main");
    const stops = [];
    for (let i = 0; i < 4; i += 1) {
      await page.keyboard.press("Tab");
      stops.push(await focused());
    }
    assert.deepEqual(stops, ["match", "db", "sort", "Show"]);
    await page.keyboard.press("Tab"); // the table, which may have to be scrolled
    await page.keyboard.press("Tab");
    const name = await focused();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.id === "detail",
      { timeout: kPatienceMs });
    assert.equal(await textOf(page, "#detail-title"), name);
    // The list goes on being refreshed, and the focus stays.
    await refreshed(page);
    await refreshed(page);
    assert.equal(await focused(), "detail");
    await page.keyboard.press("Escape");
    assert.equal(await focused(), name);
    await command("BF.ADD", "another", "x");
    await page.waitForFunction(() => [...document.querySelectorAll("#filters button")]
      .some((one) => one.textContent === "another"), { timeout: kPatienceMs });
    assert.equal(await focused(), name);
    await checkKeyboardPlan(page, focused);
  },

  async screenshots(browser) {
    for (const scheme of ["light", "dark"]) {
      for (const width of [1280, 390]) {
        const page = await open(browser, { width, scheme });
        await openFilter(page, "grown");
        for (let i = 0; i < 3; i += 1) {
          for (let call = 0; call < 20 * (i + 1); call += 1) {
            await command("BF.EXISTS", "small", `item:${call}`);
          }
          await refreshed(page);
        }
        await shoot(page, `dashboard-${width}-${scheme}.png`);
        await checkLayout(page, width);
        if (scheme === "light") {
          await openFilter(page, "visitors");
          await choose(page, "plan", "kind", "windowed");
          await refreshed(page);
          await shoot(page, `window-${width}.png`);
          await checkLayout(page, width);
        }
        await page.close();
      }
    }
  },

  async password(browser) {
    const page = await open(browser);
    assert.equal(await textOf(page, "#state"), "Ready");
  },

  async end(browser) {
    const page = await open(browser);
    expectsNoAnswer = true;
    process.kill(task.pid, "SIGTERM");
    await page.waitForFunction(() => document.querySelector("#state").className === "bad",
      { timeout: kPatienceMs });
    console.log(await textOf(page, "#state"));
  },
};

async function checkOrder(page) {
  const column = { "fill ratio": 4, "predicted error rate": 5, items: 2 };
  for (const [sort, index] of Object.entries(column)) {
    await choose(page, "search", "sort", sort);
    await page.waitForFunction((at) => {
      const numbers = [...document.querySelectorAll("#filters tr")].map((row) =>
        Number(row.children[at].textContent.replace(/[ ,%]/g, "")));
      return numbers.every((number, i) => i === 0 || number <= numbers[i - 1]);
    }, { timeout: kPatienceMs }, index);
  }
  await choose(page, "search", "sort", "bytes");
  await page.waitForFunction(
    () => document.querySelector("#filters button").textContent.startsWith("clicks:"),
    { timeout: kPatienceMs });
}

async function submitPlan(page, fields) {
  await page.evaluate((wanted) => {
    document.querySelector("#planned").replaceChildren();
    document.querySelector("#plan-error").textContent = "";
    const form = document.querySelector("#plan");
    for (const [name, value] of Object.entries(wanted)) form.elements[name].value = value;
    form.requestSubmit();
  }, fields);
}

async function checkPlan(page, { expected, ...fields }) {
  await submitPlan(page, fields);
  await page.waitForFunction(() => document.querySelector("#planned").children.length > 0,
    { timeout: kPatienceMs });
  const shown = await tiles(page, "planned");
  const number = (name) => Number(shown[name].replaceAll(",", ""));
  const told = JSON.stringify([fields, shown, expected]);
  assert.equal(number("Bytes"), expected.bytes, told);
  assert.equal(number("Hash count"), expected["hash count"], told);
  assert.equal(number("Cache lines per lookup"), expected["cache lines per lookup"], told);
  assert.equal(shown.Layout, expected.layout, told);
  const near = (name, wanted) =>
    assert.ok(Math.abs(number(name) / wanted - 1) < 1e-5, `${name}: ${told}`);
  near("Bits per item", expected["bits per item"]);
  near("Error rate of the first layer", expected["error rate of the first layer"]);
  const points = await page.$eval("#curve polyline", (line) => line.points.numberOfItems);
  assert.equal(points, 41, told);
  assert.match(await textOf(page, "#curve-note"), /^At [\d,]+ items the error rate is/);
}

async function checkKeyboardPlan(page, focused) {
  await page.focus("#plan [name=error_rate]");
  await page.keyboard.down("Control");
  await page.keyboard.press("a");
  await page.keyboard.up("Control");
  await page.keyboard.type("0.001");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "kind");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => [...document.querySelectorAll("#planned dt")]
    .some((one) => one.textContent === "Generations"), { timeout: kPatienceMs });
}

// Nothing wider than the window, no text that its own box cuts off.
async function checkLayout(page, width) {
  const found = await page.evaluate((most) => {
    const { scrollWidth } = document.documentElement;
    const wide = scrollWidth > most ? [`the page is ${scrollWidth} wide`] : [];
    for (const element of document.querySelectorAll("dt, dd, p, h1, h2, h3, figcaption, label")) {
      const { right } = element.getBoundingClientRect();
      const isScrolled = element.closest(".scroll") !== null;
      if (right > most + 1 && !isScrolled) wide.push(`${element.tagName} ${element.textContent}`);
      const isCut = element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0;
      if (isCut) wide.push(`cut: ${element.textContent}`);
    }
    return wide;
  }, width);
  assert.deepEqual(found, []);
}

async function main() {
  const browser = await puppeteer.launch({
    executablePath: task.chromium,
    headless: true,
    userDataDir: task.profile,
    // Containers have no name spaces to give away, and little shared memory.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run"],
  });
  try {
    await checks[task.check](browser);
  } finally {
    await browser.close();
  }
  assert.deepEqual(troubles, []);
}

main().catch((error) => {
  console.error(error.stack || error, troubles);
  process.exitCode = 1;
});
