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

class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.isDenied = status === 403;
  }
}
export const isRefusal = (error) => error instanceof Refusal;

// The server rejects some requests with a line of plain text instead of JSON.
function parse(response, text) {
  try {
    return JSON.parse(text);
  } catch {
    const isPlain = response.headers.get("Content-Type")?.startsWith("text/plain");
    return { error: (isPlain && text.trim().split("\n")[0]) || `status ${response.status}` };
  }
}

async function send(path, options) {
  let response;
  let text;
  try {
    // A relative address inherits the user and password of the page's address, which fetch()
    // rejects.
    response = await fetch(new URL(path, location.origin), options);
    text = await response.text();
  } catch {
    noteAnswer(false);
    throw new Error("The server does not answer");
  }
  noteAnswer(true);
  const answer = parse(response, text);
  if (answer !== null && answer.error !== undefined) throw new Refusal(answer.error, response.status);
  return answer;
}

// `parameters`: pairs, or an object. The id of a filter is added to the path unchanged. It is
// already encoded, because JSON cannot contain arbitrary bytes.
export function ask(path, parameters = {}) {
  const query = String(new URLSearchParams(parameters));
  if (query === "") return send(path);
  return send(`${path}${path.includes("?") ? "&" : "?"}${query}`);
}

// The server logs each denied command in ACL LOG. So after a denial, askRepeatedly() sends no
// request to that path until forgetDenials() is called.
const denials = new Map(); // by path
export const forgetDenials = () => denials.clear();

export async function askRepeatedly(path, parameters) {
  if (denials.has(path)) throw denials.get(path);
  try {
    return await ask(path, parameters);
  } catch (error) {
    if (error.isDenied) denials.set(path, error);
    throw error;
  }
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
