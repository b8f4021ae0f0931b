// The reader's questions about each task's best model, answered by a mark, a number and statistics.
import { address } from "./addresses.js";
import { index } from "./blocks.js";
import { foldedBlock, node, text } from "./elements.js";
import { scrollArea } from "./tables.js";
import { counted } from "./words.js";

/** @import { Cell, TaskEntry } from "./shapes.d.ts" */

/** The look of each mark. Other texts are names. @type {Record<string, string>} */
const ANSWER_MARKS = { yes: "yes", likely: "likely", no: "no", "?": "unclear" };
const MEANING =
  "About each task's best model. Yes and no: p below 0.05 (permutation of resampling units, Holm), or no difference " +
  "on any example. Likely: p below 0.05 only before Holm's correction. ?: unclear. The number is the " +
  "difference to the " +
  "best baseline.";

/**
 * @param {TaskEntry} task
 * @param {Cell} cell
 */
function shortAnswer(task, { text: answer, extra, query }) {
  const mark = text("span", answer, { class: `mark ${ANSWER_MARKS[answer] ?? ""}`.trim() });
  const shown = query
    ? node("a", { href: address(task.address, "", new URLSearchParams(query)) }, answer)
    : answer in ANSWER_MARKS
      ? mark
      : node("span", {}, answer);
  return [shown, extra ? text("small", ` ${extra}`) : null];
}

/** @param {TaskEntry[]} tasks */
export function questions(tasks) {
  const head = node(
    "tr",
    {},
    ...["task", ...index.questions].map((question) => text("th", question, { scope: "col", class: "text" })),
  );
  const rows = tasks.map((task) =>
    node(
      "tr",
      {},
      node(
        "th",
        { scope: "row" },
        node("a", { href: address(task.address) }, task.name),
        text("span", `${task.about}; ${counted(task.examples, "example")}`, { class: "under about-task" }),
      ),
      ...task.answers.map((cell, at) =>
        node(
          "td",
          { class: "text", "data-question": index.questions[at], title: (cell.notes ?? []).join("\n") || null },
          node("span", {}, ...shortAnswer(task, cell)),
        ),
      ),
    ),
  );
  const caption = text("caption", "Questions about each task", { class: "hidden" });
  const table = node("table", { class: "questions" }, caption, node("thead", {}, head), node("tbody", {}, ...rows));
  const statistics = () => tasks.flatMap((task) => [text("h4", task.name), answersOf(task)]);
  return [
    scrollArea("Questions about each task", table),
    foldedBlock("What the marks mean, and the statistics behind them", () => [
      text("p", MEANING, { class: "note" }),
      ...statistics(),
    ]),
  ];
}

/** One task's answers with their statistics. @param {TaskEntry} task */
export function answersOf(task) {
  const rows = task.answers.map((cell, at) =>
    node(
      "div",
      {},
      text("dt", index.questions[at]),
      node(
        "dd",
        {},
        ...shortAnswer(task, cell),
        ...(cell.notes ?? []).map((note) => text("span", note, { class: "under" })),
      ),
    ),
  );
  return node("dl", { class: "answers" }, ...rows);
}
