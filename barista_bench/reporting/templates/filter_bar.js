// The fields above a gallery, one a filter.
import { address } from "./addresses.js";
import { index } from "./blocks.js";
import { node } from "./elements.js";
import { words } from "./words.js";
/** @import { TaskBlock, TaskEntry } from "./shapes.d.ts" */

/** @typedef {[value: string, title: string]} Choice */
/** @typedef {(name: string, value: string) => void} Changed */

export const FILTERS = [
  "model",
  "status",
  "failure",
  "better",
  "worse",
  "key",
  "value",
  "least",
  "most",
  "text",
  "order",
];
const ORDERS = {
  "": "as in the set",
  up: "lowest score first",
  down: "highest score first",
  apart: "models most apart first",
};

/**
 * @param {TaskEntry} task
 * @param {TaskBlock} found
 * @param {URLSearchParams} query
 * @param {Changed} changed
 */
export function filterBar(task, found, query, changed) {
  /**
   * @param {string} name
   * @param {string} title
   * @param {Choice[]} choices
   */
  const choice = (name, title, choices) => {
    const change = () => {
      changed(name, made.value);
    };
    const made = node(
      "select",
      { id: `by-${name}`, change },
      ...choices.map(([value, shown]) => node("option", { value, selected: (query.get(name) ?? "") === value }, shown)),
    );
    return node("label", {}, title, made);
  };
  /**
   * @param {string} name
   * @param {string} title
   * @param {"number" | "search"} type
   */
  const field = (name, title, type) => {
    const change = () => {
      changed(name, made.value);
    };
    const step = type === "number" ? 0.1 : null;
    const made = node("input", { id: `by-${name}`, type, value: query.get(name) ?? "", step, change });
    return node("label", {}, title, made);
  };
  const outcomes = found.samples.flatMap((row) => row[5]);
  const kinds = index.kinds.filter((_, kind) => outcomes.some(([, , failures]) => failures.includes(kind)));
  const statuses = index.statuses.filter((_, code) => outcomes.some(([, codes]) => codes.includes(code)));
  const filter = found.filters.find(({ key }) => key === query.get("key"));
  /** @param {string[]} names @returns {Choice[]} */
  const inWords = (names) => names.map((name) => [name, words(name)]);
  /** @param {string[]} names @returns {Choice[]} */
  const asTheyAre = (names) => names.map((name) => [name, name]);
  /** @type {Choice} */
  const any = ["", "any"];
  const models = asTheyAre(task.labels);
  return node(
    "div",
    { class: "filters" },
    choice("model", "model", [["", "all"], ...models]),
    choice("better", "better is", [any, ...models]),
    choice("worse", "worse is", [any, ...models]),
    choice("failure", "failure", [any, ...inWords(kinds)]),
    choice("status", "status", [any, ...inWords(statuses)]),
    found.filters.length ? choice("key", "by", [any, ...inWords(found.filters.map(({ key }) => key))]) : null,
    filter ? choice("value", words(filter.key), [any, ...asTheyAre(filter.values)]) : null,
    field("least", "score from", "number"),
    field("most", "to", "number"),
    choice("order", "order", Object.entries(ORDERS)),
    field("text", "search texts", "search"),
    node("a", { class: "button", id: "reset", href: address(task.address, "", "all=1") }, "reset"),
  );
}
