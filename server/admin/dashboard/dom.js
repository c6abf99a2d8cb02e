// SPDX-License-Identifier: MIT
// Creates and finds elements, and changes only elements whose content differs.

import { nameText } from "/texts.js";

export const byId = (id) => document.getElementById(id);

// make("td", { className: "number" }, "12"): an element with its properties and children. Text
// stays text, whatever a filter is called. `data` and `aria` take objects of attributes.
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  const { data = {}, aria = {}, ...others } = properties;
  Object.assign(element, others);
  for (const [name, value] of Object.entries(data)) element.dataset[name] = value;
  for (const [name, value] of Object.entries(aria)) element.setAttribute(`aria-${name}`, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function setText(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

// Each tile is an array: name, value, and whether the value is bad.
export function showTiles(id, tiles) {
  byId(id).replaceChildren(...tiles.map(([name, value, isBad]) =>
    make("div", { className: isBad ? "bad" : "" },
      make("dt", { textContent: name }), make("dd", { textContent: value }))));
}

const kUncutLengthMax = 60; // in a cell of a table

// The style sheet shows only the first lines of the text. The tooltip shows the whole text.
export const longText = (text, tag = "span", properties = {}) =>
  make(tag, { className: "long", title: text, textContent: text, ...properties });

const cutIfLong = (content) =>
  (typeof content === "string" && content.length > kUncutLengthMax ? longText(content) : content);

// A table's head names its columns for the cards that rows become on a phone.
export function row(cells, properties = {}) {
  const made = make("tr", { ...properties });
  made.setAttribute("role", "row");
  for (const { label, content, kind = "" } of cells) {
    const cell = make("td", { className: kind, data: { label } },
      ...[content].flat().map(cutIfLong));
    cell.setAttribute("role", "cell");
    made.append(cell);
  }
  return made;
}

// Fills a table with rows of [content, kind] in the order of the labels. Without rows, shows the
// text `empty`.
export function showRows(id, labels, lines, empty) {
  const body = byId(id);
  const rows = lines.map((cells) => row(cells.map((cell, i) => {
    const [content, kind] = Array.isArray(cell) ? cell : [cell];
    return { label: labels[i], content, kind };
  })));
  if (rows.length === 0) rows.push(row([{ label: "", content: empty, kind: "empty" }]));
  if (rows.length === 1 && lines.length === 0) rows[0].firstChild.colSpan = labels.length;
  body.replaceChildren(...rows);
}

// Returns a link with the filter's name, which opens the filter.
export const filterLink = (filter, db) =>
  longText(nameText(filter.key), "a", { href: `#/filter/${db}/${filter.id}` });
