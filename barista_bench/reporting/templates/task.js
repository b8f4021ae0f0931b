// One task: its metrics, the breakdowns that separate models most, failures, the paper's counterpart, then samples.
import { address } from "./addresses.js";
import { paperPart } from "./blocks.js";
import { foldedBlock, node, text } from "./elements.js";
import { answersOf } from "./questions.js";
import { shownIfShort, shownTable, tableOf } from "./tables.js";
import { counted } from "./words.js";

/** @import { NameAndValue, TaskBlock, TaskEntry } from "./shapes.d.ts" */

const BREAKDOWNS = 3;

/** The counterparts of the paper's tables, each with the chart of its numbers. @param {TaskEntry} task */
async function papersOf(task) {
  const parts = await Promise.all(task.papers.map(paperPart));
  return parts.flatMap(({ heading, tables = [] }) =>
    tables.map((table, at) => foldedBlock(`${heading}: ${table.title}`, () => tableOf(table), at === 0)),
  );
}

/**
 * @param {TaskEntry} task
 * @param {TaskBlock} taskData
 */
function leadsToSamples(task, taskData) {
  const all = `All ${counted(taskData.samples.length, "sample")}`;
  const differLook = { href: address(task.address, "", "order=apart"), class: "button" };
  return node(
    "p",
    { class: "leads" },
    taskData.samples.length ? node("a", { href: address(task.address, "", "all=1"), class: "button" }, all) : null,
    task.labels.length > 1 ? node("a", differLook, "Where models differ most") : null,
  );
}

/** @param {NameAndValue[]} facts */
const factsOf = (facts) =>
  node("dl", { class: "facts" }, ...facts.map(([name, value]) => node("div", {}, text("dt", name), text("dd", value))));

/**
 * @param {TaskEntry} task
 * @param {TaskBlock} taskData
 */
export async function taskScreen(task, taskData) {
  const drawing = { task: task.address };
  const papers = await papersOf(task);
  const [firstBreakdowns, otherBreakdowns] = [
    taskData.breakdowns.slice(0, BREAKDOWNS),
    taskData.breakdowns.slice(BREAKDOWNS),
  ];
  const makeOthers = () => [factsOf(taskData.facts), ...taskData.others.map((table) => shownIfShort(table, drawing))];
  return [
    text("h2", task.heading),
    text("p", `Each example: ${task.about}. ${task.metric}`, { class: "where" }),
    answersOf(task),
    leadsToSamples(task, taskData),
    ...task.warnings.map((warning) => text("p", warning, { class: "alert" })),
    ...[...taskData.metrics, ...taskData.failures].map((table) => shownTable(table, drawing)),
    ...firstBreakdowns.map((table) => shownIfShort(table, drawing)),
    otherBreakdowns.length
      ? foldedBlock(counted(otherBreakdowns.length, "more breakdown"), () =>
          otherBreakdowns.map((table) => shownTable(table, drawing)),
        )
      : null,
    ...(papers.length ? [text("h3", "Counterparts of the paper's tables"), ...papers] : []),
    foldedBlock("Coverage, details, costs, timing, settings", makeOthers),
  ];
}
