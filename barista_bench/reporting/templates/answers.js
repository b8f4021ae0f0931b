// Show a model's answer to a sample beside another model's answer: score, reasons and all logged data.
import { foldedBlock, node, text } from "./elements.js";
import { statusMark } from "./status_marks.js";
import { withDifferences } from "./word_difference.js";
import { STATUS, short, words } from "./words.js";

/** @import { Answer, NameAndValue, Side, TaskEntry } from "./shapes.d.ts" */

const MARK_OF_KIND = { hit: ["✓", "correct"], miss: ["○", "missed"], wrong: ["✗", "wrong"] };

/**
 * A text that can be unfolded. An empty text gives no element.
 * @param {string} title
 * @param {string | undefined} content
 */
export const foldedText = (title, content, open = false) =>
  content ? foldedBlock(title, () => text("pre", content, { tabindex: 0 }), open) : null;

/**
 * @param {string} title
 * @param {NameAndValue[] | undefined} list
 */
export function pairList(title, list) {
  if (!list?.length) return [];
  const rows = list.map(([name, value]) => node("div", {}, text("dt", name), text("dd", value)));
  return [text("h4", title), node("dl", { class: "pairs" }, ...rows)];
}

/** @param {Answer["rows"]} rows */
function explanation(rows) {
  if (!rows?.length) return [];
  const items = rows.map(({ kind, text: reason }) => {
    const [mark, word] = MARK_OF_KIND[kind];
    return node(
      "li",
      { class: kind },
      text("span", mark, { class: "mark", "aria-hidden": "true" }),
      text("span", word, { class: "word" }),
      text("span", reason),
    );
  });
  return [text("h4", "Why it scored as it did"), node("ul", { class: "rows" }, ...items)];
}

/**
 * @param {Side} side
 * @param {(repetition: number) => void} choose
 */
function repetitionTabs({ answer, answers }, choose) {
  if (answers.length < 2) return null;
  const tabs = answers.map((each) => {
    const pressed = String(each === answer);
    return node(
      "button",
      { type: "button", "aria-pressed": pressed, click: () => choose(each.repetition) },
      `repetition ${each.repetition}`,
    );
  });
  return node("div", { class: "tabs" }, ...tabs);
}

/**
 * @param {TaskEntry} task
 * @param {Side} side
 * @param {Answer | undefined} other
 * @param {(place: number, repetition: number) => void} choose
 */
export function card(task, side, other, choose) {
  const { place, answer } = side;
  const title = text("h3", task.labels[place]);
  if (!answer) {
    return node("section", { class: "card" }, title, text("p", `${STATUS.not_run} not run`, { class: "state" }));
  }
  const isScored = answer.scores.some((score) => score !== null);
  const scores = task.scores.map((name, at) => text("span", `${words(name)} ${short(answer.scores[at])}`));
  return node(
    "section",
    { class: "card" },
    title,
    repetitionTabs(side, (repetition) => choose(place, repetition)),
    node("p", { class: "state" }, statusMark(answer.status), ` ${words(answer.status)}`),
    answer.error ? text("p", answer.error, { class: "error" }) : null,
    node("p", { class: "scores" }, ...(isScored ? scores : ["not scored"])),
    text("h4", "Answer"),
    withDifferences(answer.text ?? null, other?.text),
    ...explanation(answer.rows),
    ...pairList("Judges", answer.verdicts),
    ...(answer.earlier ?? []).map((earlier, step) =>
      foldedText(`Answer ${step + 1}, before the last question`, earlier || "(empty)"),
    ),
    ...(answer.aided ?? []).map(([title, content]) => foldedText(title, content)),
    foldedText("Parsed answer", answer.parsed),
    foldedText("Reasoning", answer.reasoning),
    text("p", answer.facts.map((fact) => fact.join(" ")).join(" · "), { class: "note" }),
  );
}
