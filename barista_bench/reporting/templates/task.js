// One task: its figures, the breakdowns that separate models most, failures, the paper's counterpart, then samples.
import { address } from "./addresses.js";
import { paperPart } from "./blocks.js";
import { folded, node, text } from "./elements.js";
import { shownIfShort, shownTable, tableOf } from "./tables.js";
import { counted } from "./words.js";

/** @import { NameAndValue, TaskBlock, TaskEntry } from "./shapes.d.ts" */

const BREAKDOWNS = 3;

/** The counterparts of the paper's tables, each with the chart that it holds the numbers of. @param {TaskEntry} task */
async function papersOf(task) {
  const parts = await Promise.all(task.papers.map(paperPart));
  return parts.flatMap(({ heading, tables = [] }) =>
    tables.map((table, at) => folded(`${heading}: ${table.title}`, () => tableOf(table), at === 0)),
  );
}

/**
 * @param {TaskEntry} task
 * @param {TaskBlock} found
 */
function leadsToSamples(task, found) {
  const all = `All ${counted(found.samples.length, "sample")}`;
  const apart = { href: address(task.address, "", "order=apart"), class: "button" };
  return node(
    "p",
    { class: "leads" },
    found.samples.length ? node("a", { href: address(task.address, "", "all=1"), class: "button" }, all) : null,
    task.labels.length > 1 ? node("a", apart, "Where models differ most") : null,
  );
}

/** @param {NameAndValue[]} facts */
const factsOf = (facts) =>
  node("dl", { class: "facts" }, ...facts.map(([name, value]) => node("div", {}, text("dt", name), text("dd", value))));

/**
 * @param {TaskEntry} task
 * @param {TaskBlock} found
 */
export async function taskScreen(task, found) {
  const drawing = { task: task.address };
  const papers = await papersOf(task);
  const [near, far] = [found.breakdowns.slice(0, BREAKDOWNS), found.breakdowns.slice(BREAKDOWNS)];
  const rest = () => [factsOf(found.facts), ...found.others.map((table) => shownIfShort(table, drawing))];
  return [
    text("h2", task.heading),
    text("p", task.finding, { class: "finding" }),
    leadsToSamples(task, found),
    ...task.warnings.map((warning) => text("p", warning, { class: "alert" })),
    ...[...found.figures, ...found.failures].map((table) => shownTable(table, drawing)),
    ...near.map((table) => shownIfShort(table, drawing)),
    far.length
      ? folded(counted(far.length, "more breakdown"), () => far.map((table) => shownTable(table, drawing)))
      : null,
    ...(papers.length ? [text("h3", "Counterparts of the paper's tables"), ...papers] : []),
    folded("Coverage, details, costs, timing, settings", rest),
  ];
}
