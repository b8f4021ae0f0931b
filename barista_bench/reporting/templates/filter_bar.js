// The fields above a gallery, one per filter.
import { address } from "./addresses.js";
import { index } from "./blocks.js";
import { node } from "./elements.js";
import { ANY_FAILURE } from "./filters.js";
import { words } from "./words.js";
/** @import { TaskBlock, TaskEntry } from "./shapes.d.ts" */

/** @typedef {[value: string, title: string]} Choice */
/** @typedef {(name: string, value: string) => void} OnChange */

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
 * @param {TaskBlock} taskData
 * @param {URLSearchParams} query
 * @param {OnChange} onChange
 */
export function filterBar(task, taskData, query, onChange) {
  /**
   * @param {string} name
   * @param {string} title
   * @param {Choice[]} choices
   */
  const choice = (name, title, choices) => {
    const change = () => {
      onChange(name, select.value);
    };
    const select = node(
      "select",
      { id: `by-${name}`, change },
      ...choices.map(([value, label]) => node("option", { value, selected: (query.get(name) ?? "") === value }, label)),
    );
    return node("label", {}, title, select);
  };
  /**
   * @param {string} name
   * @param {string} title
   * @param {"number" | "search"} type
   */
  const field = (name, title, type) => {
    const change = () => {
      onChange(name, input.value);
    };
    const step = type === "number" ? 0.1 : null;
    const input = node("input", { id: `by-${name}`, type, value: query.get(name) ?? "", step, change });
    return node("label", {}, title, input);
  };
  const outcomes = taskData.samples.flatMap((row) => row[5]);
  const kinds = index.kinds.filter((_, kind) => outcomes.some(([, , failures]) => failures.includes(kind)));
  const statuses = index.statuses.filter((_, code) => outcomes.some(([, codes]) => codes.includes(code)));
  const filter = taskData.filters.find(({ key }) => key === query.get("key"));
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
    choice("failure", "failure", [["", "any or none"], [ANY_FAILURE, "any"], ...inWords(kinds)]),
    choice("status", "status", [any, ...inWords(statuses)]),
    taskData.filters.length ? choice("key", "by", [any, ...inWords(taskData.filters.map(({ key }) => key))]) : null,
    filter ? choice("value", words(filter.key), [any, ...asTheyAre(filter.values)]) : null,
    field("least", "score from", "number"),
    field("most", "to", "number"),
    choice("order", "order", Object.entries(ORDERS)),
    field("text", "search texts", "search"),
    node("a", { class: "button", id: "reset", href: address(task.address, "", "all=1") }, "reset"),
  );
}
