// Questions to a person as a model is asked them, one after the other.
import { form, node, svgNode } from "./elements.js";
import { field } from "./fields.js";
import { present, radios } from "./next_of_many.js";
import { ask, send } from "./server.js";
import { Sheets } from "./sheets.js";
import { explained } from "./status.js";
import { counted, words } from "./words.js";

/** @import { View } from "./page.d.ts" */
/** @import { NextQuestion, PeoplePlan, PersonState, Question } from "./asking_shapes.d.ts" */
/** @import { Field } from "./fields.js" */

/** @typedef {Omit<Question, "benchmark" | "task">} PutQuestion */

const DEFAULT = 20;
const LONGEST_CAPTION = 60;
/** How the page takes an answer. @type {Record<Question["form"], string>} */
const HOW = {
  choice: "Choose one answer.",
  fields: "Fill in the fields, and draw boxes and outlines on the picture. No entry means that nothing matches.",
  text: "Write your answer.",
};
const ABOUT =
  "You see the images and the question that a model gets, without the reference. Your answers and their times " +
  "are stored as a run, which you can score and report like a model's. A larger number keeps the questions " +
  "so far. You can stop and continue at any time.";

/**
 * @param {URLSearchParams} query
 * @returns {View}
 */
export function answerView(query) {
  const number = Number(query.get("number"));
  if (!number) return startView();
  const holder = node("div", {});
  const onShown = async () => showNext(holder, number, await send("/api/people/next", { number }));
  return { elements: [holder], onShown };
}

/** @returns {View} */
function startView() {
  const count = node("input", { type: "number", min: 1, max: 10000, value: DEFAULT, required: true });
  const start = () => {
    location.hash = `#/answer?number=${count.value}`;
  };
  const label = node("label", {}, "questions of each task ", count);
  const plan = node("div", { role: "status" });
  let turn = 0;
  const showPlan = explained(async () => {
    turn += 1;
    const mine = turn;
    if (!count.checkValidity()) return;
    plan.replaceChildren("reading the datasets ... ");
    const planned = await ask("/api/people/plan", { number: count.value });
    if (mine === turn) plan.replaceChildren(...planTable(planned));
  });
  count.addEventListener("change", showPlan);
  const fields = form(
    { class: "inline" },
    start,
    label,
    node("button", { class: "primary", "data-icon": "play" }, "start"),
  );
  const elements = [node("h2", {}, "Answer as a model would"), node("p", {}, ABOUT), fields, plan];
  return { elements, onShown: showPlan };
}

/** @param {PeoplePlan} plan */
function planTable({ tasks, kept }) {
  const total = tasks.reduce((sum, { questions }) => sum + questions, 0);
  const answered = tasks.reduce((sum, row) => sum + row.answered, 0);
  const rows = tasks.map(({ benchmark, task, about, questions, answered }) => {
    const cells = [`${benchmark}: ${words(task)}`, about, questions, answered];
    return node("tr", {}, ...cells.map((cell) => node("td", {}, String(cell))));
  });
  const head = ["task", "a question and its answer", "questions", "answered"].map((title) => node("th", {}, title));
  const sum = `${counted(total, "question")} of ${counted(tasks.length, "task")}, ${answered} answered, in `;
  return [
    node("p", {}, sum, node("code", {}, kept)),
    node("table", {}, node("thead", {}, node("tr", {}, ...head)), node("tbody", {}, ...rows)),
  ];
}

/**
 * @param {HTMLElement} holder
 * @param {number} number of questions a task
 * @param {NextQuestion} next
 */
async function showNext(holder, number, next) {
  if (next.question === undefined) present(holder, "All questions are answered", next);
  else await showQuestion(holder, number, next);
}

/**
 * @param {HTMLElement} holder
 * @param {number} number
 * @param {PersonState & Question} state
 */
async function showQuestion(holder, number, state) {
  /** @param {unknown} answer @param {number} seconds */
  const handIn = async (answer, seconds) => {
    const sent = { number, question: state.question, answer, seconds };
    await showNext(holder, number, await send("/api/people/answer", sent));
  };
  const { element, begin } = await questionElement(state, handIn);
  present(holder, `Question ${state.done + 1} of ${state.total}`, state, element);
  begin();
}

/**
 * A question whose pictures are there; call `begin` once it is on the page. `handIn` takes the answer and its seconds.
 * @param {PutQuestion} question
 * @param {(answer: unknown, seconds: number) => unknown} handIn
 * @param {(seconds: () => number) => HTMLElement[]} further buttons
 */
export async function questionElement(question, handIn, further = () => []) {
  const sheets = new Sheets(question.images, question.scale);
  const answer = answerField(question, sheets);
  let begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  const controls = node(
    "p",
    { class: "controls" },
    node("button", { class: "primary", "data-icon": "check" }, "answer"),
    ...further(seconds),
  );
  const how = node("p", { class: "note" }, HOW[question.form]);
  const answers = form({ class: "inputs" }, () => handIn(answer.read(), seconds()), how, answer.element, controls);
  const end = question.parts.findLastIndex((part) => typeof part === "number") + 1;
  await sheets.ready();
  drawNamedBoxes(question, sheets);
  const pictures = partsOf(question.parts.slice(0, end), sheets);
  const below = partsOf(question.parts.slice(end), sheets); // what follows the pictures stands by the answer
  const element = node(
    "div",
    { class: pictures.length ? "columns" : "" },
    node("div", { class: question.images.length > 2 ? "asked many" : "asked" }, ...pictures),
    node("div", {}, ...below, answers, ...instructions(question)),
  );
  const begin = () => {
    begun = performance.now();
    sheets.aim();
  };
  return { element, answers, sheets, begin };
}

const NAMED_BOX = /\[(\d+), (\d+), (\d+), (\d+)\]/g;

/**
 * Draws the boxes that the prompt names by numbers, which a model reads and a person cannot; of several pictures it
 * does not say which.
 * @param {PutQuestion} question
 * @param {Sheets} sheets
 */
function drawNamedBoxes({ parts, scale }, { sheets }) {
  if (sheets.length !== 1) return;
  const [{ image, layer }] = sheets;
  for (const [, ...sides] of parts
    .filter((part) => typeof part === "string")
    .join("\n")
    .matchAll(NAMED_BOX)) {
    const [left, top, right, bottom] = sides.map((side) => Number(side) / scale);
    const [x, width] = [left, right - left].map((share) => share * image.naturalWidth);
    const [y, height] = [top, bottom - top].map((share) => share * image.naturalHeight);
    if (width > 0 && height > 0) layer.append(svgNode("rect", { class: "drawn given", x, y, width, height }));
  }
}

/** Answer format, and the prompt as a model gets it. @param {PutQuestion} question */
function instructions({ system, prompt }) {
  /** @param {string} title @param {string} text @param {boolean} open */
  const details = (title, text, open) =>
    text ? [node("details", { open }, node("summary", {}, title), node("p", { class: "asked-text" }, text))] : [];
  return [...details("Answer format", system, true), ...details("The model's prompt", prompt, false)];
}

/**
 * Texts and pictures in the order of the prompt; a short text before a picture is its caption.
 * @param {Question["parts"]} parts
 * @param {Sheets} sheets
 */
function partsOf(parts, sheets) {
  /** @param {number} at */
  const captionAt = (at) => {
    const text = parts[at];
    if (typeof text !== "string" || typeof parts[at + 1] !== "number") return null;
    return text.length < LONGEST_CAPTION && !text.trim().includes("\n") ? text : null;
  };
  return parts.map((part, at) => {
    if (typeof part === "string") return captionAt(at) === null ? node("p", { class: "asked-text" }, part) : "";
    const caption = captionAt(at - 1);
    const heading = caption === null ? null : node("figcaption", {}, caption);
    return node("figure", {}, heading, sheets.sheets[part].element);
  });
}

/**
 * What takes the answer: choices, fields of a schema, or a text.
 * @param {PutQuestion} question
 * @param {Sheets} sheets
 * @returns {Field}
 */
function answerField({ form: kind, choices, schema }, sheets) {
  if (kind === "choice") return choiceField(choices);
  if (kind === "fields" && schema) return field(schema, schema.type === "array" ? "items" : "", sheets);
  const area = node("textarea", { rows: 6, required: true, "aria-label": "answer" });
  return { element: area, read: () => area.value };
}

/**
 * @param {Record<string, string>} choices
 * @returns {Field}
 */
function choiceField(choices) {
  const look = { role: "group", "aria-label": "answers", class: "choices" };
  const element = node(
    "div",
    look,
    ...radios(
      "choice",
      Object.entries(choices).map(([label, text]) => [label, `${label}: ${text}`]),
    ),
  );
  const read = () => {
    const chosen = element.querySelector(":checked");
    return chosen instanceof HTMLInputElement ? chosen.value : "";
  };
  return { element, read };
}
