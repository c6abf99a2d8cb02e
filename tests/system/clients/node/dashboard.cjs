// SPDX-License-Identifier: MIT
// Drives the dashboard in Chromium. The first argument says in JSON where the browser is. Each line
// of input is a task: a check, and the server that it visits. Tasks run at once, each in a browser
// context of its own. A line of output has the task's number, and why its check failed, if it did:
// also when the page met an error or left its origin.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");
const { setTimeout } = require("node:timers/promises");

const {
  Visit, checkLayout, choose, clickHead, column, go, isFalling, kPatienceMs, numbers, openFilter,
  openOperations, rowNames, textOf, tiles, until, untilRows, views,
} = require("./dashboard_visit.cjs");

const settings = JSON.parse(process.argv[2]);
const puppeteer = require(path.join(settings.modules, "puppeteer-core"));
const axePath = path.join(settings.modules, "axe-core", "axe.min.js");
const checks = {
  async contents(visit) {
    const page = await visit.open();
    assert.match(await textOf(page, "#state"), /^Ready/);
    assert.match(await textOf(page, "#server"), /127\.0\.0\.1:\d+ · version .* · leader/);
    await untilRows(page, 8);
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
    await go(page, "#/filter/0/odd%20%ff%3cb%3ename%3C%2Fb%3E", "#filter-figures");
    await until(page, () =>
      document.querySelector("#filter-title").textContent === "odd \\xff<b>name</b>");
    assert.equal(await textOf(page, "#try-command"), 'BF.EXISTS "odd \\xff<b>name</b>" item');
    await go(page, "#/filter/0/%zz", "#filter-note");
    assert.equal(await textOf(page, "#filter-title"), "%zz");
    assert.match(await textOf(page, "#filter-note"), /two hexadecimal digits must follow each %/);
  },

  async windows(visit) {
    const page = await visit.open({ hash: "#/filter/0/visitors" });
    await page.waitForSelector("#timeline .generation", { timeout: kPatienceMs });
    assert.match(await textOf(page, "#window-note"),
      /Remembers 800 items in 4 generations of 200 items, beside the newest, .*; reserved for 800/);
    assert.match(await textOf(page, "#timeline"), /Generation 1.*from item [\d,]+.*ago/);
    await go(page, "#/filter/0/recent", "#timeline");
    await until(page, () =>
      /Remembers 10 min in 4 generations of 2 min 30 s,/.test(
        document.querySelector("#window-note").textContent));
    assert.match(await textOf(page, "#timeline"), /from \d\d:\d\d:\d\d/);
  },

  async fresh(visit) {
    const page = await visit.open();
    await choose(page, "search", "match", "grown");
    await until(page, () =>
      document.querySelector("#filters-note").textContent === "1 filter, 1 shown");
    await choose(page, "search", "match", "");
    assert.equal(await visit.command("BF.ADD", "just:made", "x"), ":1\r\n");
    const begun = Date.now();
    await until(page, () => [...document.querySelectorAll("#filters a")]
      .some((one) => one.textContent === "just:made"));
    console.error(`shown after ${Date.now() - begun} ms`);
    await openFilter(page, "just:made");
    assert.equal((await tiles(page, "filter-tiles")).Items, "1");
    await visit.command("BF.ADD", "just:made", "y");
    await until(page, () => document.querySelector("#filter-tiles dd").textContent === "2");
    await visit.command("DEL", "just:made");
    await until(page, () => document.querySelector("#filter-figures").hidden &&
      /not found/.test(document.querySelector("#filter-note").textContent));
  },

  // A filter that is far from full, but gets items, grows before a fuller one without adds.
  async growth(visit) {
    const page = await visit.open();
    await until(page, () => /^Grows nextgrown/.test(
      document.querySelector("#next-growth").textContent));
    await until(page, () => /The fullest: at the rate of the last minute, none fills up/.test(
      document.querySelector("#next-growth").textContent));
    for (let i = 0; i < 100; i += 1) await visit.command("BF.ADD", "small", `new:${i}`);
    await until(page, () => /^Grows nextsmall5\d\.\d % full.*Full in about \d+ (s|min)/.test(
      document.querySelector("#next-growth").textContent));
  },

  async tryIt(visit) {
    const page = await visit.open({ hash: "#/filter/0/small" });
    await page.waitForSelector("#try-look:not(:disabled)", { timeout: kPatienceMs });
    await page.type("#try-items", "item:1\nnew one");
    await page.click("#try-look");
    await until(page, () => /item:1probably there.*new onenot there/.test(
      document.querySelector("#try-answers").textContent));
    assert.equal(await textOf(page, "#try-command"), 'BF.MEXISTS small item:1 "new one"');
    assert.equal(await page.$eval("#try-add", (button) => button.hidden), true);
    if (!visit.task.mayWrite) {
      await until(page, () =>
        /may not run BF.INSERT/.test(document.querySelector("#try-rights").textContent));
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

  // A long name and its items fit the page, and a lookup of many items takes several requests.
  async long(visit) {
    const { name, items } = visit.task;
    for (const width of [1280, 400]) {
      const page = await visit.open({ width });
      await openFilter(page, name);
      assert.equal(await page.$eval("#filter-title", (head) => head.title), name);
      await page.waitForSelector("#try-look:not(:disabled)", { timeout: kPatienceMs });
      await choose(page, "try", "try-items", items.join("\n"));
      await page.click("#try-look");
      await until(page, (count) =>
        document.querySelectorAll("#try-answers tr").length === count, items.length);
      const answers = await page.$$eval("#try-answers tr", (rows) => rows.map((row) =>
        [...row.children].map((cell) => cell.textContent)));
      assert.deepEqual(answers, items.map((item, i) =>
        [item, i % 2 === 0 ? "probably there" : "not there"]));
      await checkLayout(page, width);
      const heights = await page.$$eval("#filter-title, #try pre", (all) =>
        all.map((element) => element.clientHeight));
      await go(page, "#/", "#filters a");
      await checkLayout(page, width);
      heights.push(await page.$eval("#filters td.name", (cell) => cell.clientHeight));
      assert.ok(heights.every((height) => height < 200), heights.join());
      await page.close();
    }
  },

  // A denied path is not polled. It is requested again when the user opens another view.
  async denied(visit) {
    const { denied, polled, shownIn, reason } = visit.task;
    visit.expectsNoAnswer = true; // the browser reports each response with status 403
    const counts = { [denied]: 0, [polled]: 0 };
    const page = await visit.open({ onRequest: ({ pathname }) => {
      counts[pathname] += 1;
    } });
    const polls = async (more) => {
      const wanted = counts[polled] + more;
      while (counts[polled] < wanted) await setTimeout(20);
    };
    await until(page, (selector, text) =>
      document.querySelector(selector).textContent === text, shownIn, reason);
    await polls(3);
    assert.equal(counts[denied], 1);
    await go(page, "#/planner", "#plan-errors .line");
    await go(page, "#/", "#filters-note");
    await polls(3);
    assert.ok(counts[denied] > 1 && counts[denied] < 4, `${counts[denied]} requests`);
  },

  async planner(visit) {
    const page = await visit.open({ hash: "#/planner" });
    for (const plan of visit.task.plans) await checkPlan(visit, page, plan);
    for (const { kind, window: seconds, error_rate: rate, capacity } of visit.task.refused) {
      await submitPlan(page, { kind, window: seconds, error_rate: rate, capacity });
      await until(page, () => document.querySelector("#plan-error").textContent !== "");
      assert.equal(Object.keys(await tiles(page, "planned")).length, 0);
    }
  },

  async operations(visit) {
    const page = await visit.open();
    for (let i = 0; i < 200; i += 1) await visit.command("BF.EXISTS", "small", `item:${i}`);
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
      /p50 .*p99 /.test(document.querySelector("#chart-latency .readout").textContent));
    // The server keeps what a reload forgets.
    const points = () => page.$eval("#chart-operations .line", (line) =>
      line.getAttribute("d").split("L").length);
    const before = await points();
    assert.ok(before > 2, `${before} points`);
    await page.reload({ waitUntil: "load" });
    await page.waitForSelector("#chart-operations .line", { timeout: kPatienceMs });
    assert.ok(await points() >= before);
  },

  // Every view in one look: axe finds nothing serious, and all fits its window.
  async look(visit) {
    const { width, scheme, folder } = visit.task;
    const page = await visit.open({ width, scheme });
    // The policy lets no script in that is not the server's; DevTools may.
    await page.evaluate(fs.readFileSync(axePath, "utf8"));
    for (const [name, show] of Object.entries(views)) {
      await show(page);
      await checkLayout(page, width);
      const file = `${name}-${width}-${scheme}.png`;
      // The rest of a long page is more of the same.
      const height = await page.evaluate(() => document.documentElement.scrollHeight);
      await page.screenshot({
        path: path.join(folder, file), captureBeyondViewport: true,
        clip: { x: 0, y: 0, width, height: Math.min(height, 1800) },
      });
      const { violations } = await page.evaluate(() => window.axe.run());
      const found = violations.map(({ id, impact, nodes }) =>
        `${name} ${impact} ${id}: ${nodes.map(({ html }) => html).join(" ")}`);
      if (found.length > 0) console.error(found.join("\n"));
      const isSerious = ({ impact }) => impact === "serious" || impact === "critical";
      assert.ok(!violations.some(isSerious), found.join("\n"));
    }
  },

  async many(visit) {
    for (const width of [1280, 390]) {
      const page = await visit.open({ width });
      await until(page, () =>
        document.querySelector("#filters-note").textContent ===
          "500 filters, 200 shown; a pattern narrows the search");
      await clickHead(page, "Items");
      assert.ok(isFalling(numbers(await column(page, "Items"))));
      const sides = (selector) => page.$$eval(selector, (all) =>
        all.map((element) => getComputedStyle(element).textAlign));
      if (width === 1280) {
        assert.deepEqual(await sides("#heads th"), await sides("#filters tr:first-child td"));
      }
      await checkLayout(page, width);
      await page.close();
    }
  },

  async keyboard(visit) {
    const page = await visit.open();
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
    await visit.command("BF.ADD", "another", "x");
    await untilRows(page, 9);
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

  async password(visit) {
    for (const credentials of ["", `default:${visit.task.password}@`]) {
      const page = await visit.open({ credentials });
      assert.match(await textOf(page, "#state"), /^Ready/);
    }
  },

  // A leader and its replica, as both tell it. Writes a sign for each step that the test follows.
  async leader(visit) {
    const page = await visit.open();
    const answer = (pattern) => until(page, (wanted) => new RegExp(wanted).test(
      document.querySelector("#replica-lag").textContent), pattern);
    await answer("None of 1 behind.*0 s and \\d+ B behind");
    assert.equal(await textOf(page, "#state"), "Ready: a leader with one replica, none behind");
    await visit.reach("in step");
    await answer("1 of 1 behind.*2\\.\\d+ MiB behind");
    assert.match(await textOf(page, "#state"), /^Replica 127\.0\.0\.1:\d+ is .* MiB behind/);
    await openOperations(page);
    const tile = Object.entries(await tiles(page, "others")).find(([name]) =>
      name.startsWith("127.0.0.1:"));
    assert.match(tile[1], /MiB behind/);
    await page.waitForSelector("#figure-lag:not([hidden]) .line", { timeout: kPatienceMs });
    await visit.reach("late");
    await until(page, () => /none behind$/.test(document.querySelector("#state").textContent));
  },

  async replica(visit) {
    const page = await visit.open();
    await until(page, () =>
      /^Ready: a replica in step with 127\.0\.0\.1:\d+$/.test(
        document.querySelector("#state").textContent));
    assert.match(await textOf(page, "#replica-lag"), /This replica heard its leader \d+ s ago/);
    assert.match(await textOf(page, "#server"), /· replica ·/);
    await openOperations(page);
    const shown = await tiles(page, "others");
    assert.equal(shown.Role, "replica");
    assert.equal(shown.Link, "up");
    assert.match(shown.Leader, /^127\.0\.0\.1:\d+$/);
    await visit.reach("in step");
    await until(page, () =>
      document.querySelector("#state").textContent === "The link to the leader is down");
    assert.match(await textOf(page, "#replica-lag"), /The link to the leader is down/);
  },

  // One node of two shards with a replica each; then the other shard loses its leader.
  async cluster(visit) {
    const page = await visit.open();
    await openOperations(page);
    await page.waitForSelector("#section-nodes:not([hidden]) #nodes tr", { timeout: kPatienceMs });
    assert.equal(await textOf(page, "#others-title"), "Replication and cluster");
    const shown = await tiles(page, "others");
    assert.equal(shown.Cluster, "ok");
    assert.equal(shown["Slots served"], "16,384 of 16,384");
    assert.equal(shown["Shards and nodes"], "2 / 4");
    assert.equal(shown.etcd, "up");
    const nodes = await page.$$eval("#nodes tr", (rows) => rows.map((row) =>
      [...row.children].map((cell) => cell.textContent)));
    assert.equal(nodes.length, 4);
    assert.deepEqual(nodes.map(([, address]) => address.split("@")[0]).sort(),
      [...visit.task.addresses].sort());
    assert.equal(nodes.filter(([, , flags]) => /^this, master/.test(flags)).length, 1);
    assert.equal(nodes.filter(([, , flags]) => /slave/.test(flags)).length, 2);
    assert.deepEqual(nodes.map((row) => row[5]).filter((slots) => slots !== "–").sort(),
      ["0-8191", "8192-16383"]);
    await visit.reach("whole");
    // The page follows the election of the other shard.
    await until(page, (successor) => [...document.querySelectorAll("#nodes tr")].some((row) => {
      const [, address, flags] = [...row.children].map((cell) => cell.textContent);
      return address.startsWith(successor) && /master/.test(flags);
    }), visit.task.successor);
  },

  // The server ends, and another one takes its place when the test has started it.
  async end(visit) {
    const page = await visit.open();
    visit.expectsNoAnswer = true;
    process.kill(visit.task.pid, "SIGTERM");
    await until(page, () => document.body.classList.contains("gone"));
    await until(page, () => /^No answer from the server since \d\d:\d\d:\d\d, for \d+ s/.test(
      document.querySelector("#state").textContent));
    const filter = await page.$eval("main", (main) => getComputedStyle(main).filter);
    assert.equal(filter, "grayscale(1)");
    await visit.reach("gone");
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
  // However full a window is, it only rotates.
  assert.match(cells.visitors.text, /windowed800 items.*rotatesforgets after 800 items/);
  assert.equal(cells.visitors.level, "rotates");
  assert.match(cells.imported.text, /errs more/);
  assert.equal(cells.imported.level, "bad");
  assert.match(cells.sessions.text, /deletable/);
}

async function checkOrder(page) {
  assert.equal((await rowNames(page)).at(-1), "visitors"); // never full
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
  assert.match(await answer("next-growth"), /The fullest/);
  assert.match(await answer("most-errors"),
    /^Errs more than requestedimported1\.\d+ % predicted, 1 % requested/);
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

async function checkPlan(visit, page, { expected, ...fields }) {
  await submitPlan(page, fields);
  await until(page, () => document.querySelector("#planned").children.length > 0);
  const shown = await tiles(page, "planned");
  const number = (name) => Number(shown[name].replaceAll(",", ""));
  const told = JSON.stringify([fields, shown, expected]);
  const [memory, unit] = shown.Memory.split(" ");
  const bytes = memory * 1024 ** ["B", "KiB", "MiB", "GiB", "TiB"].indexOf(unit);
  assert.ok(Math.abs(bytes / expected.bytes - 1) < 0.005, told);
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
    assert.equal(await visit.command(...words), "+OK\r\n", line);
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

async function run(browser, task) {
  const context = await browser.createBrowserContext();
  const visit = new Visit(context, task);
  try {
    await checks[task.check](visit);
    assert.deepEqual(visit.troubles, []);
    return "";
  } catch (error) {
    return [error.stack || error, ...visit.troubles].join("\n");
  } finally {
    await context.close();
  }
}

async function main() {
  const browser = await puppeteer.launch({
    executablePath: settings.chromium,
    headless: true,
    userDataDir: settings.profile,
    timeout: kPatienceMs,
    protocolTimeout: 3 * kPatienceMs,
    // The browser ends with its pipe, even if this process is killed.
    pipe: true,
    // Containers have no name spaces to give away, and little shared memory.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run"],
  });
  const running = [];
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const task = JSON.parse(line);
    running.push(run(browser, task).then((failure) =>
      console.log(JSON.stringify({ number: task.number, failure }))));
  }
  await Promise.all(running);
  await browser.close();
}

main().catch((error) => {
  console.error(error.stack || error);
  process.exitCode = 1;
});
