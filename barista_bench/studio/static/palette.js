// All that keys do in a view: to look up, to search and to run.
import { node } from "./elements.js";

/** @import { KeyAction, Keys } from "./page.d.ts" */

/** @type {Record<string, string>} */
const NAMES = { " ": "Space", ArrowLeft: "←", ArrowRight: "→" };

/** @param {string} key */
const nameOf = (key) =>
  key
    .split(/(?<=(?:shift|ctrl)\+)/)
    .map((part) => NAMES[part] ?? part)
    .join("");

/** @param {Keys} keys of the view */
export function openPalette(keys) {
  /** @type {HTMLDialogElement} */
  const dialog = node("dialog", { class: "palette", "aria-label": "what keys do", close: () => dialog.remove() });
  /** @param {KeyAction} action */
  const run = ([, act]) => {
    dialog.close();
    act();
  };
  const rows = Object.entries(keys).map(([key, action]) => ({
    words: action[0].toLowerCase(),
    action,
    element: node(
      "button",
      { type: "button", click: () => run(action) },
      node("kbd", {}, nameOf(key)),
      node("span", {}, action[0]),
    ),
  }));
  /** @returns {typeof rows} */
  const shown = () => rows.filter(({ words }) => words.includes(field.value.trim().toLowerCase()));
  const list = node("div", { class: "actions" });
  const fill = () => list.replaceChildren(...shown().map(({ element }) => element));
  /** @param {KeyboardEvent} event */
  const keydown = (event) => {
    const [first] = shown();
    if (event.key === "Enter" && first) run(first.action);
  };
  /** @type {HTMLInputElement} */
  const field = node("input", {
    type: "search",
    placeholder: "what to do",
    "aria-label": "what to do",
    input: fill,
    keydown,
  });
  fill();
  dialog.append(field, list);
  document.body.append(dialog);
  dialog.showModal();
}
