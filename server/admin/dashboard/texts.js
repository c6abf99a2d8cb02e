// SPDX-License-Identifier: MIT
// Numbers as people read them. There is one notation for each kind of number.

export function bytesText(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (Math.abs(count) >= 1024 && unit + 1 < units.length) {
    count /= 1024;
    unit += 1;
  }
  if (unit === 0) return `${Math.round(count)} B`;
  return `${count.toFixed(count < 100 ? 2 : 0)} ${units[unit]}`;
}

export const countText = (count) => Number(count).toLocaleString("en");
export const countedText = (count, noun) => `${countText(count)} ${noun}${Number(count) === 1 ? "" : "s"}`;
export const exactText = (number) => String(Number(Number(number).toPrecision(6)));
export const percentText = (share) => `${(100 * share).toFixed(1)} %`;

// An error rate: "0.31 %", and "4.2e-10 %" where zeros would have to be counted.
export function errorText(rate) {
  if (rate === null || rate === undefined) return "–";
  if (rate === 0) return "0 %";
  const percent = 100 * rate;
  if (percent < 1e-4) return `${percent.toExponential(1)} %`;
  return `${Number(percent.toPrecision(percent < 1 ? 2 : 3))} %`;
}

export function shortText(number) {
  const units = ["", "k", "M", "G", "T"];
  let unit = 0;
  while (Math.abs(number) >= 1000 && unit + 1 < units.length) {
    number /= 1000;
    unit += 1;
  }
  return `${Number(number.toPrecision(3))}${units[unit]}`;
}

export function timeText(us) {
  if (us >= 1e6) return `${Number((us / 1e6).toPrecision(3))} s`;
  return us >= 1e3 ? `${Number((us / 1e3).toPrecision(3))} ms` : `${Number(us.toPrecision(3))} µs`;
}

// A time span in one unit, and the rest in the next smaller unit, if any: "10 min", "2 min 30 s".
export function spanText(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60]];
  const first = units.findIndex(([, size]) => seconds >= 2 * size);
  if (first < 0) return `${Math.floor(seconds)} s`;
  const [, size] = units[first];
  const [lower, lowerSize] = units[first + 1] ?? ["s", 1];
  const rest = Math.floor((seconds % size) / lowerSize);
  return `${Math.floor(seconds / size)} ${units[first][0]}${rest > 0 ? ` ${rest} ${lower}` : ""}`;
}

export const clockText = (ms) => new Date(ms).toLocaleTimeString("en-GB");
export const shortClockText = (ms) => clockText(ms).slice(0, 5);

// A time of day, with the date unless it is today.
export function momentText(ms) {
  const moment = new Date(ms);
  const isToday = moment.toDateString() === new Date().toDateString();
  return isToday ? clockText(ms) : `${moment.toLocaleDateString("en-CA")} ${clockText(ms)}`;
}

export const nameText = (key) => (key === "" ? "(empty name)" : key);

// The lines of a reply. The server writes a line break within a text as \x0a.
export const linesOf = (text) => text.split("\\x0a").filter((line) => line !== "");

// A word of a line for the prompt of redis-cli, from the bytes that an address spells. "a b\xff"
// is quoted; a word that needs no quotes has none.
export function quotedWord(encoded) {
  let isPlain = encoded !== "";
  let quoted = "";
  for (const part of encoded.match(/%[0-9A-F]{2}|[^%]/gi) ?? []) {
    const byte = part.length === 3 ? parseInt(part.slice(1), 16) : part.charCodeAt(0);
    const letter = String.fromCharCode(byte);
    const isPrintable = byte >= 0x20 && byte < 0x7f;
    if (!isPrintable || /[\s"'\\]/.test(letter)) isPlain = false;
    if (!isPrintable) quoted += `\\x${byte.toString(16).padStart(2, "0")}`;
    else quoted += letter === '"' || letter === "\\" ? `\\${letter}` : letter;
  }
  return isPlain ? quoted : `"${quoted}"`;
}

export const quotedText = (text) => quotedWord(encodeURIComponent(text));
