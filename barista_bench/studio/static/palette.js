// All that keys do in a view: to look up, to search and to run.
import { node } from "./elements.js";
import { explained } from "./status.js";

/** @import { KeyAction, Keys } from "./page.d.ts" */

/** @type {Record<string, string>} */
const NAMES = { " ": "Space", ArrowLeft: "←", ArrowRight: "→" };

/** @param {string} key */
const nameOf = (key) =>
  key
    .split(/(?<=(?:shift|ctrl)\+)/)
    .map((part) => NAMES[part] ?? part)
    .join("");

/** Keys that do the same. @param {string[]} keys */
const keysOf = (keys) => {
  const named = keys.length > 3 ? [keys[0], keys[keys.length - 1]] : keys;
  return named.flatMap((key, at) => [at ? (keys.length > 3 ? " … " : " ") : "", node("kbd", {}, nameOf(key))]);
};

/** @param {Keys} keys of the view */
export function openPalette(keys) {
  /** @type {HTMLDialogElement} */
  const dialog = node("dialog", { class: "palette", "aria-label": "keyboard shortcuts", close: () => dialog.remove() });
  /** @param {KeyAction} action */
  const run = ([, act]) => {
    dialog.close();
    explained(act)();
  };
  const rows = [...Map.groupBy(Object.entries(keys), ([, [words]]) => words).values()].map((same) => ({
    words: same[0][1][0].toLowerCase(),
    action: same[0][1],
    element: node(
      "button",
      { type: "button", click: () => run(same[0][1]) },
      node("span", {}, ...keysOf(same.map(([key]) => key))),
      node("span", {}, same[0][1][0]),
    ),
  }));
  /** @returns {typeof rows} */
  const matching = () => rows.filter(({ words }) => words.includes(field.value.trim().toLowerCase()));
  const list = node("div", { class: "actions" });
  const fill = () => list.replaceChildren(...matching().map(({ element }) => element));
  /** @param {KeyboardEvent} event */
  const keydown = (event) => {
    const [first] = matching();
    if (event.key === "Enter" && first) run(first.action);
  };
  /** @type {HTMLInputElement} */
  const field = node("input", {
    type: "search",
    placeholder: "command",
    "aria-label": "command",
    input: fill,
    keydown,
  });
  fill();
  dialog.append(field, list);
  document.body.append(dialog);
  dialog.showModal();
}
