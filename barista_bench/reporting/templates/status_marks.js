// Marks that show a model's result on a sample.
import { index } from "./blocks.js";
import { node, text } from "./elements.js";
import { STATUS, short, words } from "./words.js";

/** @import { Outcome, Status, TaskEntry } from "./shapes.d.ts" */

/** @param {number} code */
const severity = (code) => Object.keys(STATUS).indexOf(index.statuses[code]);

/** The worst status of a model's runs. @param {Outcome} outcome */
const worst = ([, codes]) => index.statuses[codes.reduce((a, b) => (severity(b) > severity(a) ? b : a))];

/** @param {Status} status */
export const statusMark = (status) =>
  node("span", { class: `dot ${status}`, role: "img", "aria-label": words(status) }, STATUS[status]);

/**
 * @param {TaskEntry} task
 * @param {Outcome[]} outcomes of all models
 * @param {number} place
 * @param {string} [name] text in front of the mark
 */
export function chip(task, outcomes, place, name = "") {
  const status = worst(outcomes[place]);
  const title = `${task.labels[place]}: ${words(status)}`;
  return node(
    "span",
    { class: "chip", title },
    name ? text("b", `${name} `) : null,
    statusMark(status),
    short(outcomes[place][0], 2),
  );
}

/** The meanings of the marks. */
export const statusLegend = () =>
  Object.entries(STATUS).map(([status, shape]) =>
    node("span", { class: "key" }, node("span", { class: `dot ${status}` }, shape), words(status)),
  );
