// SPDX-License-Identifier: MIT
// Drives the dashboard in Chromium: one check a run. The task is JSON in the first argument; exits
// with 1 and says why when the check fails, or when the page has met an error or left its origin.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
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

async function open(browser, { width = 1280, scheme = "light", hash = "" } = {}) {
  const page = await browser.newPage();
  watch(page);
  if (task.password) await page.authenticate({ username: "default", password: task.password });
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(`${task.origin}/${hash}`, { waitUntil: "load" });
  await page.waitForFunction(
    () => document.querySelector("#state").textContent !== "Connecting…" &&
      document.querySelector("#planned").children.length > 0, { timeout: kPatienceMs });
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
  await go(page, "#/operations", "#chart-operations .line");
  await until(page, () => document.querySelectorAll("#commands td").length > 0 &&
    document.querySelector("#chart-operations .line").getAttribute("d").includes("L"));
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
  },
  window: async (page) => {
    await go(page, "#/", "#filters a");
    await openFilter(page, "visitors");
  },
  grown: async (page) => {
    await go(page, "#/", "#filters a");
    await openFilter(page, "grown");
    await page.$eval("#try-items", (box) => {
      box.value = "item:1\nnever added";
    });
    await page.click("#try-look");
    await page.waitForSelector("#try-answers td", { visible: true, timeout: kPatienceMs });
  },
  operations: openOperations,
  planner: async (page) => {
    await go(page, "#/planner", "#plan-errors .line");
  },
};

const checks = {
  async contents(browser) {
    const page = await open(browser);
    assert.match(await textOf(page, "#state"), /^Ready/);
    assert.match(await textOf(page, "#server"), /127\.0\.0\.1:\d+ · version .* · leader/);
    await untilRows(page, 7);
    // A name is text, whatever is in it; and what is no filter is not there.
    const names = await rowNames(page);
    assert.ok(names.includes("odd \\xff<b>name</b>"), names.join());
    assert.ok(!names.includes("no filter"));
    await checkRow(page);
    await checkOrder(page);
    await checkAnswers(page);
    await choose(page, "search", "match", "rown");
    await untilRows(page, 1);
    await openFilter(page, "grown");
    const layers = await page.$$eval("#layers tr", (rows) => rows.length);
    assert.ok(layers > 3, `${layers} layers`);
    assert.equal(await page.$$eval("#drawing .layer", (all) => all.length), layers);
    // The address of a filter opens it, whatever its name is.
    await go(page, "#/filter/0/odd%20%FF%3Cb%3Ename%3C%2Fb%3E", "#filter-figures");
    await until(page, () =>
      document.querySelector("#filter-title").textContent === "odd \\xff<b>name</b>");
    assert.equal(await textOf(page, "#try-command"), 'BF.EXISTS "odd \\xff<b>name</b>" item');
  },

  async windows(browser) {
    const page = await open(browser, { hash: "#/filter/0/visitors" });
    await page.waitForSelector("#timeline .generation", { timeout: kPatienceMs });
    assert.match(await textOf(page, "#window-note"),
      /Remembers 800 items in 4 generations of 200 items; reserved for 800/);
    assert.match(await textOf(page, "#timeline"), /Generation 1.*from item [\d,]+.*ago/);
    await go(page, "#/filter/0/recent", "#timeline");
    await until(page, () =>
      /Remembers 60 min/.test(document.querySelector("#window-note").textContent));
    assert.match(await textOf(page, "#timeline"), /from \d\d:\d\d:\d\d/);
  },

  async fresh(browser) {
    const page = await open(browser);
    assert.equal(await command("BF.ADD", "just:made", "x"), ":1\r\n");
    const begun = Date.now();
    await until(page, () => [...document.querySelectorAll("#filters a")]
      .some((one) => one.textContent === "just:made"));
    console.log(`shown after ${Date.now() - begun} ms`);
    await openFilter(page, "just:made");
    assert.equal((await tiles(page, "filter-tiles")).Items, "1");
    await command("BF.ADD", "just:made", "y");
    await until(page, () => document.querySelector("#filter-tiles dd").textContent === "2");
    await command("DEL", "just:made");
    await until(page, () => document.querySelector("#filter-figures").hidden &&
      /not found/.test(document.querySelector("#filter-note").textContent));
  },

  async tryIt(browser) {
    const page = await open(browser, { hash: "#/filter/0/small" });
    await page.waitForSelector("#try-look:not(:disabled)", { timeout: kPatienceMs });
    await page.type("#try-items", "item:1\nnew one");
    await page.click("#try-look");
    await until(page, () => /item:1probably there.*new onenot there/.test(
      document.querySelector("#try-answers").textContent));
    assert.equal(await textOf(page, "#try-command"), 'BF.MEXISTS small item:1 "new one"');
    assert.equal(await page.$eval("#try-add", (button) => button.hidden), true);
    if (!task.mayWrite) {
      await until(page, () =>
        /may not run BF.ADD/.test(document.querySelector("#try-rights").textContent));
      assert.equal(await page.$eval("#try-switch", (box) => box.disabled), true);
      return;
    }
    await page.waitForSelector("#try-switch:not(:disabled)", { timeout: kPatienceMs });
    await page.click("#try-switch");
    await choose(page, "try", "try-items", "new one");
    await page.click("#try-add");
    await until(page, () => document.querySelector("#try-answers").textContent === "new oneadded");
    await page.click("#try-look");
    await until(page, () =>
      document.querySelector("#try-answers").textContent === "new oneprobably there");
  },

  async planner(browser) {
    const page = await open(browser, { hash: "#/planner" });
    for (const plan of task.plans) await checkPlan(page, plan);
    for (const { kind, window: seconds, error_rate: rate, capacity } of task.refused) {
      await submitPlan(page, { kind, window: seconds, error_rate: rate, capacity });
      await until(page, () => document.querySelector("#plan-error").textContent !== "");
      assert.equal(Object.keys(await tiles(page, "planned")).length, 0);
    }
  },

  async operations(browser) {
    const page = await open(browser);
    for (let i = 0; i < 200; i += 1) await command("BF.EXISTS", "small", `item:${i}`);
    await openOperations(page);
    // Commands are counted for ten seconds, and asked for as often.
    await until(page, () => /BF\.EXISTS/.test(document.querySelector("#commands").textContent));
    assert.match(await textOf(page, "#slow"), /BF\.MADD/);
    assert.equal((await tiles(page, "persistence"))["Append log"], "on");
    assert.equal((await tiles(page, "others")).Role, "leader");
    assert.match((await tiles(page, "memory")).Limit, /^1\.00 GiB/);
    // The values under the pointer, and under the keyboard.
    await page.hover("#chart-operations .plot");
    await until(page, () => /^\d\d:\d\d:\d\d: operations/.test(
      document.querySelector("#chart-operations .readout").textContent));
    await page.focus("#chart-latency .plot");
    await page.keyboard.press("Home");
    await until(page, () =>
      /half .*99 %/.test(document.querySelector("#chart-latency .readout").textContent));
    // The server keeps what a reload forgets.
    const points = () => page.$eval("#chart-operations .line", (line) =>
      line.getAttribute("d").split("L").length);
    const before = await points();
    assert.ok(before > 2, `${before} points`);
    await page.reload({ waitUntil: "load" });
    await page.waitForSelector("#chart-operations .line", { timeout: kPatienceMs });
    assert.ok(await points() >= before);
  },

  async axe(browser) {
    const script = fs.readFileSync(axePath, "utf8");
    for (const scheme of ["light", "dark"]) {
      for (const width of [1280, 390]) {
        const page = await open(browser, { width, scheme });
        // The policy lets no script in that is not the server's; DevTools may.
        await page.evaluate(script);
        for (const [name, show] of Object.entries(views)) {
          await show(page);
          const { violations } = await page.evaluate(() => window.axe.run());
          const found = violations.map(({ id, impact, nodes }) =>
            `${name} ${scheme} ${width} ${impact} ${id}: ` +
              nodes.map(({ html }) => html).join(" "));
          if (found.length > 0) console.log(found.join("\n"));
          const isSerious = ({ impact }) => impact === "serious" || impact === "critical";
          assert.ok(!violations.some(isSerious), found.join("\n"));
        }
        await page.close();
      }
    }
  },

  async many(browser) {
    for (const width of [1280, 390]) {
      const page = await open(browser, { width });
      await until(page, () =>
        /^500 filters, 200 shown/.test(document.querySelector("#filters-note").textContent));
      await clickHead(page, "Items");
      assert.ok(isFalling(numbers(await column(page, "Items"))));
      await checkLayout(page, width);
      await page.close();
    }
  },

  async keyboard(browser) {
    const page = await open(browser);
    const focused = () => page.evaluate(() => {
      const { id, name, textContent, tagName } = document.activeElement;
      return id || name || textContent || tagName;
    });
    await page.waitForSelector("#filters a", { timeout: kPatienceMs });
    await page.keyboard.press("Tab");
    assert.equal(await focused(), "Skip to the content");
    const left = await page.evaluate(() => document.activeElement.getBoundingClientRect().left);
    assert.ok(left >= 0, "the skip link cannot be seen when it has the focus");
    await page.keyboard.press("Enter");
    assert.equal(await focused(), "main");
    await page.focus("[name=db]");
    await page.keyboard.press("Tab");
    assert.equal(await focused(), "Filter"); // the first head
    await page.keyboard.press("Enter");
    await until(page, () =>
      document.querySelector("#heads th").getAttribute("aria-sort") === "ascending");
    for (let i = 0; i < 10; i += 1) await page.keyboard.press("Tab");
    const name = await focused();
    assert.equal(name, (await rowNames(page))[0]);
    // The list goes on being refreshed, and the focus stays.
    await command("BF.ADD", "another", "x");
    await untilRows(page, 8);
    assert.equal(await focused(), name);
    await page.keyboard.press("Enter");
    await until(page, () => document.activeElement.id === "view-filter");
    await page.keyboard.press("Escape");
    await until(page, () => document.activeElement.id === "view-filters");
    await page.focus("nav a:last-child");
    await page.keyboard.press("Enter");
    await until(page, () => document.activeElement.id === "view-planner");
    await checkKeyboardPlan(page, focused);
  },

  async screenshots(browser) {
    for (const scheme of ["light", "dark"]) {
      for (const width of [1280, 390]) {
        const page = await open(browser, { width, scheme });
        for (const name of Object.keys(views)) {
          for (let call = 0; call < 40; call += 1) await command("BF.EXISTS", "small",
            `item:${call}`);
          await views[name](page);
          await checkLayout(page, width);
          const file = `${name}-${width}-${scheme}.png`;
          await page.screenshot({ path: path.join(task.folder, file), fullPage: true });
        }
        await page.close();
      }
    }
  },

  async password(browser) {
    const page = await open(browser);
    assert.match(await textOf(page, "#state"), /^Ready/);
  },

  // The server ends, and another one takes its place when the test has started it.
  async end(browser) {
    const page = await open(browser);
    expectsNoAnswer = true;
    process.kill(task.pid, "SIGTERM");
    await until(page, () => document.body.classList.contains("gone"));
    await until(page, () => /^No answer from the server since \d\d:\d\d:\d\d, for \d+ s/.test(
      document.querySelector("#state").textContent));
    const filter = await page.$eval("main", (main) => getComputedStyle(main).filter);
    assert.equal(filter, "grayscale(1)");
    fs.writeFileSync(task.sign, ""); // now another one may come
    await until(page, () => !document.body.classList.contains("gone") &&
      /^Ready/.test(document.querySelector("#state").textContent));
  },
};

async function checkRow(page) {
  const cells = await page.evaluate(() => Object.fromEntries(
    [...document.querySelectorAll("#filters tr")].map((one) =>
      [one.querySelector("td.name").textContent, {
      text: one.textContent, level: one.className,
      bar: one.querySelector(".bar i").style.width,
    }])));
  // Full is shown as full, whatever share of its bits is set.
  assert.equal(cells.fixed.bar, "100%");
  assert.equal(cells.fixed.level, "bad");
  assert.match(cells.fixed.text, /plainfixed.*full.*100\.0 %full at 5,000/);
  assert.match(cells.small.text, /40\.0 %grows at 1,000/);
  assert.equal(cells.small.level, "");
  assert.equal(cells.sessions.level, "warn"); // 85 %
  assert.match(cells.visitors.text, /windowed800 items.*forgets after 800 items/);
  assert.match(cells.sessions.text, /deletable/);
}

async function checkOrder(page) {
  for (const label of ["Items", "Capacity", "Error now", "Layers"]) {
    await clickHead(page, label);
    assert.ok(isFalling(numbers(await column(page, label))), label);
    await clickHead(page, label);
    assert.ok(isFalling(numbers(await column(page, label)).reverse()), label);
  }
  await clickHead(page, "Memory");
  assert.match((await rowNames(page))[0], /^clicks:/);
}

async function checkAnswers(page) {
  const answer = (id) => textOf(page, `#${id}`);
  await until(page, () => /slow|took/.test(document.querySelector("#slowest div").textContent));
  assert.match(await answer("next-growth"), /grown9\d\.\d % full, \d+ more items fit/);
  assert.match(await answer("most-memory"), /clicks:.*%/);
  assert.match(await answer("replica-lag"), /There are no replicas/);
  assert.match(await answer("slowest"), /took/);
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
  await until(page, () => document.querySelector("#planned").children.length > 0);
  const shown = await tiles(page, "planned");
  const number = (name) => Number(shown[name].replaceAll(",", ""));
  const told = JSON.stringify([fields, shown, expected]);
  assert.equal(number("Bytes"), expected.bytes, told);
  assert.equal(number("Hash count"), expected["hash count"], told);
  assert.equal(number("Cache lines per lookup"), expected["cache lines per lookup"], told);
  assert.equal(shown.Layout, expected.layout, told);
  assert.ok(Math.abs(number("Bits per item") / expected["bits per item"] - 1) < 1e-5, told);
  const line = await textOf(page, "#plan-line");
  const more = { plain: "", deletable: " DELETABLE",
    windowed: ` WINDOW ${fields.window}` }[fields.kind];
  assert.equal(line, `BF.RESERVE seen ${fields.error_rate} ${fields.capacity}${more}`);
  // The line reserves such a filter; the machine need not have room for the largest ones.
  if (expected.bytes < 2 ** 24) {
    const words = line.replace("seen", `plan:${Math.random()}`).split(" ");
    assert.equal(await command(...words), "+OK\r\n", line);
  }
  const compared = await textOf(page, "#compared");
  assert.match(compared, /plain.*RedisBloom/);
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
  await until(page, () => [...document.querySelectorAll("#planned dt")]
    .some((one) => one.textContent === "Generations"));
}

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
