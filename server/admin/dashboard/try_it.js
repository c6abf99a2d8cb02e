// SPDX-License-Identifier: MIT
// Looks up items in a filter. Adds an item if the user may do so and has enabled adding.

import { byId, make, setText, showRows } from "/dom.js";
import { ask, write } from "/server.js";
import { quotedText, quotedWord } from "/texts.js";

let target = null; // { id, db }

const items = () => byId("try-items").value.split("\n").filter((line) => line !== "");

function commandLine(name) {
  const words = items().map(quotedText);
  return [name, quotedWord(target.id), ...(words.length === 0 ? ["item"] : words)].join(" ");
}

function showCommand() {
  const name = items().length > 1 ? "BF.MEXISTS" : "BF.EXISTS";
  const select = target.db === "0" ? "" : `SELECT ${target.db}\n`;
  setText("try-command", `${select}${commandLine(name)}`);
}

function showAnswers(lines) {
  byId("try-error").textContent = "";
  byId("try-table").hidden = false;
  showRows("try-answers", ["Item", "Answer"], lines, "");
}

function showFailure(error) {
  byId("try-table").hidden = true;
  byId("try-error").textContent = error.message;
}

// The server rejects a request whose header exceeds 8 KiB. The header has other fields too.
const kAddressBytesMax = 6000;

// Divides the items into batches. Each batch fits into the address of one request.
function batchesOf(items, { id }) {
  const batches = [];
  let left = 0;
  for (const item of items) {
    const bytes = `&${new URLSearchParams({ item })}`.length;
    if (batches.length === 0 || bytes > left) {
      batches.push([]);
      left = kAddressBytesMax - id.length;
    }
    batches.at(-1).push(item);
    left -= bytes;
  }
  return batches;
}

async function lookUp() {
  const mine = target;
  const wanted = items();
  if (wanted.length === 0) return showFailure(new Error("Write an item first"));
  try {
    const found = [];
    for (const batch of batchesOf(wanted, mine)) {
      const answer = await ask(`/api/exists?key=${mine.id}`,
        [["db", mine.db], ...batch.map((item) => ["item", item])]);
      if (mine !== target) return;
      found.push(...answer.found);
    }
    showAnswers(wanted.map((item, i) => [item, found[i]
      ? [make("span", { className: "badge good", textContent: "probably there" }), ""]
      : [make("span", { className: "badge", textContent: "not there" }), ""]]));
  } catch (error) {
    if (mine === target) showFailure(error);
  }
}

async function add() {
  const mine = target;
  const wanted = items();
  if (wanted.length !== 1) return showFailure(new Error("Write one item to add"));
  try {
    const { added } = await write(`/api/add?key=${mine.id}`, { db: mine.db, item: wanted[0] });
    if (mine !== target) return;
    showAnswers([[wanted[0], added ? "added" : "was probably there before"]]);
  } catch (error) {
    if (mine === target) showFailure(error);
  }
}

async function copyCommand() {
  const text = byId("try-command").textContent;
  try {
    await navigator.clipboard.writeText(text);
    setText("try-copied", "copied");
  } catch {
    // Without https the browser offers no clipboard. The selected text can be copied by keyboard.
    getSelection().selectAllChildren(byId("try-command"));
    setText("try-copied", "selected: copy it with the keyboard");
  }
}

function showSwitch() {
  byId("try-add").hidden = !byId("try-switch").checked;
}

export async function showTryIt(id, db) {
  const mine = { id, db };
  target = mine;
  byId("try-table").hidden = true;
  byId("try-error").textContent = "";
  byId("try-switch").checked = false;
  setText("try-copied", "");
  showSwitch();
  showCommand();
  try {
    const { name, may } = await ask(`/api/user?key=${id}`);
    if (mine !== target) return;
    byId("try-look").disabled = !may.exists;
    byId("try-switch").disabled = !may.add;
    setText("try-rights", may.add ? `The user '${name}' may write here.`
      : `The user '${name}' may not run BF.INSERT on this filter.`);
    if (!may.exists) showFailure(new Error(`The user '${name}' may not run BF.EXISTS on this filter.`));
  } catch (error) {
    if (mine === target) showFailure(error);
  }
}

export function startTryIt() {
  byId("try").addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter?.id === "try-add") add();
    else lookUp();
  });
  byId("try-items").addEventListener("input", showCommand);
  byId("try-switch").addEventListener("change", showSwitch);
  byId("try-copy").addEventListener("click", copyCommand);
}
