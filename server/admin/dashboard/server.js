// SPDX-License-Identifier: MIT
// Sends requests to the server, and reports whether the server still answers.

let goneSince = null;
const listeners = [];

// Called with the time in ms since which the server has not answered; null while it answers.
export function onAnswering(listener) {
  listeners.push(listener);
}

function noteAnswer(isThere) {
  if (isThere === (goneSince === null)) return;
  goneSince = isThere ? null : Date.now();
  for (const listener of listeners) listener(goneSince);
}

export const isGone = () => goneSince !== null;

class Refusal extends Error {}
export const isRefusal = (error) => error instanceof Refusal;

async function send(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    noteAnswer(false);
    throw new Error("The server does not answer");
  }
  noteAnswer(true);
  const answer = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (answer !== null && answer.error !== undefined) throw new Refusal(answer.error);
  return answer;
}

// `parameters`: pairs, or an object. The id of a filter is added to the path unchanged. It is
// already encoded, because JSON cannot contain arbitrary bytes.
export function ask(path, parameters = {}) {
  const query = String(new URLSearchParams(parameters));
  if (query === "") return send(path);
  return send(`${path}${path.includes("?") ? "&" : "?"}${query}`);
}

// Another origin cannot send this header.
export function write(path, parameters) {
  const query = new URLSearchParams(parameters);
  return send(`${path}&${query}`, { method: "POST", headers: { "X-Bloomery-Write": "yes" } });
}

// Runs the function repeatedly while the page is visible, each time `pauseMs()` after its end.
export function poll(run, pauseMs) {
  let timer = null;
  let isRunning = false;
  async function turn() {
    timer = null;
    isRunning = true;
    try {
      await run();
    } finally {
      isRunning = false;
      if (!document.hidden) timer = setTimeout(turn, pauseMs());
    }
  }
  const now = () => {
    if (isRunning || document.hidden) return;
    clearTimeout(timer);
    turn();
  };
  document.addEventListener("visibilitychange", now);
  now();
  return now;
}
