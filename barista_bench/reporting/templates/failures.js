// The failures of one model over all tasks. Each kind of failure links to its samples.
import { address } from "./addresses.js";
import { index, taskBlock } from "./blocks.js";
import { node, text } from "./elements.js";
import { ANY_FAILURE } from "./filters.js";
import { scrollArea } from "./tables.js";

/** @import { TaskBlock, TaskEntry } from "./shapes.d.ts" */

export const FAILURES = "failures";

/** The address of a model's failures. @param {string} label */
export const failuresOf = (label) => address(FAILURES, label);

/**
 * @param {TaskEntry} task
 * @param {TaskBlock} taskData
 * @param {string} label
 */
function rowOfTask(task, taskData, label) {
  const [table] = taskData.failures;
  const column = table?.columns.findIndex(({ name }) => name === label) ?? -1;
  const cells = (table?.rows ?? []).map((row) => ({ kind: row[0].text, cell: row[column] }));
  const links = cells.flatMap(({ kind, cell }) =>
    cell?.query
      ? [
          node(
            "a",
            { class: "kind", href: address(task.address, "", new URLSearchParams(cell.query)) },
            `${kind} `,
            text("small", cell.extra ?? ""),
          ),
        ]
      : [],
  );
  const all = new URLSearchParams({ model: label, failure: ANY_FAILURE, order: "up" });
  return node(
    "tr",
    {},
    node("th", { scope: "row" }, node("a", { href: address(task.address) }, task.heading)),
    node("td", {}, links.length ? node("a", { href: address(task.address, "", all) }, "worst first") : "none"),
    node("td", { class: "text kinds" }, ...links),
  );
}

/** @param {string} label */
export async function failuresScreen(label) {
  const tasks = [...index.tasks.entries()].filter(([, task]) => task.labels.includes(label));
  if (!tasks.length) return [text("p", `There is no model ${label} in this report.`, { class: "alert" })];
  const rows = await Promise.all(tasks.map(async ([number, task]) => rowOfTask(task, await taskBlock(number), label)));
  const head = ["task", "samples", "kinds of failure, with their counts"];
  const table = node(
    "table",
    {},
    node("thead", {}, node("tr", {}, ...head.map((name) => text("th", name, { scope: "col", class: "text" })))),
    node("tbody", {}, ...rows),
  );
  return [text("h2", `Failures of ${label}`), scrollArea(`Failures of ${label}`, table)];
}
