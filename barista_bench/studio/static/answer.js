// Questions to a person as a model is asked them, and answers of models to be rated; both one after the other, blind.
import { ask, button, form, node, say, send } from "./page.js";
import { Sheets, field } from "./fields.js";

const DEFAULT = 20;

export function answerView(query) {
  const number = Number(query.get("number"));
  if (!number) return startView();
  const holder = node("div", {});
  return { made: [holder], started: async () => showQuestion(holder, number, await send("/api/people/next", { number })) };
}

function startView() {
  const count = node("input", { type: "number", min: 1, max: 10000, value: DEFAULT, required: true });
  return { made: [node("h2", {}, "Answer as a model would"), node("p", {}, "You see what a model sees: its prompt and its images, and no truth. Your answers and the time "
    + "each takes are kept as a run, which scores and reports like a model's. A larger number keeps what was drawn. You can stop and go on at any time."),
  form({ class: "inline" }, () => { location.hash = `#/answer?number=${count.value}`; }, node("label", {}, "questions of each task ", count), node("button", {}, "start"))] };
}

/** Shows what is asked next in `parts`, under `title`. */
function present(holder, title, { done, kept, problems }, ...parts) {
  const heading = node("h2", { tabindex: -1 }, title);
  holder.replaceChildren(heading, ...problems.map((problem) => node("p", { class: "alert" }, problem)), ...parts,
    node("p", { class: "note" }, `${done} answers, in `, node("code", {}, kept)));
  heading.focus();
  say(title.toLowerCase());
}

async function showQuestion(holder, number, asked) {
  if (!asked.question) return present(holder, "All questions are answered", asked);
  const sheets = new Sheets(asked.images, asked.scale);
  const answer = { choice: choiceOf, fields: fieldsOf, text: textOf }[asked.form](asked, sheets);
  let begun;
  const answers = form({ class: "inputs" }, async () => {
    const seconds = (performance.now() - begun) / 1000;
    await showQuestion(holder, number, await send("/api/people/answer", { number, question: asked.question, answer: answer.read(), seconds }));
  }, answer.element, node("p", { class: "controls" }, node("button", {}, "answer")));
  const end = asked.parts.findLastIndex((part) => typeof part === "number") + 1; // what follows the pictures stands by the answer
  await sheets.ready();
  begun = performance.now();
  present(holder, `Question ${asked.done + 1} of ${asked.total}`, asked, node("div", { class: "columns" },
    node("div", { class: asked.images.length > 2 ? "asked many" : "asked" }, ...partsOf(asked.parts.slice(0, end), sheets)),
    node("div", {}, ...partsOf(asked.parts.slice(end), sheets), answers,
      asked.system ? node("details", { open: true }, node("summary", {}, "What is asked for"), node("p", { class: "asked-text" }, asked.system)) : "")));
  return sheets.aim();
}

/** Texts and pictures in the order of the prompt; a short text before a picture is its caption. */
function partsOf(parts, sheets) {
  const isCaption = (at) => typeof parts[at] === "string" && typeof parts[at + 1] === "number" && parts[at].length < 60 && !parts[at].trim().includes("\n");
  return parts.map((part, at) => {
    if (typeof part === "string") return isCaption(at) ? "" : node("p", { class: "asked-text" }, part);
    return node("figure", {}, isCaption(at - 1) ? node("figcaption", {}, parts[at - 1]) : null, sheets.sheets[part].element);
  });
}

/** One of [value, text]; `required` holds the form back until it is chosen. */
const radios = (name, pairs) => pairs.map(([value, text]) => node("label", {}, node("input", { type: "radio", name, value, required: true }), ` ${text}`));

function choiceOf({ choices }) {
  const element = node("div", { role: "group", "aria-label": "answers", class: "choices" }, ...radios("choice", Object.entries(choices).map(([label, text]) => [label, `${label}: ${text}`])));
  return { element, read: () => element.querySelector(":checked").value };
}

const fieldsOf = ({ schema }, sheets) => field(schema, schema.type === "array" ? "items" : "", sheets);

function textOf() {
  const area = node("textarea", { rows: 6, required: true, "aria-label": "answer" });
  return { element: area, read: () => area.value };
}

/** Answers of models to be rated by the rubric of their judges. */
export function rateView() {
  const holder = node("div", {});
  return { made: [holder], started: async () => showAnswer(holder, await ask("/api/rating")) };
}

function showAnswer(holder, rated) {
  if (!rated.answer) return present(holder, "All answers are rated", rated);
  const said = (title, text) => [node("h3", {}, title), node("p", { class: "asked-text" }, text)];
  const points = Array.from({ length: rated.top + 1 }, (_, score) => [score, String(score)]);
  const criteria = rated.criteria.map(({ name, text, scale }) => node("fieldset", {}, node("legend", {}, name.replaceAll("_", " ")),
    node("div", { class: "scores" }, ...radios(name, points)),
    node("p", { class: "asked-text note" }, scale), node("details", {}, node("summary", {}, "What counts"), node("p", { class: "asked-text" }, text))));
  return present(holder, `Answer ${rated.done + 1} of ${rated.total}`, rated, node("div", { class: "columns" }, node("div", {}, ...said("Question", rated.asked), ...said("Reference", rated.reference),
    ...said("Answer", rated.text), node("details", {}, node("summary", {}, "What is rated"), node("p", { class: "asked-text" }, rated.introduction))),
  form({ class: "inputs" }, async (filled) => {
    const scores = Object.fromEntries([...new FormData(filled)].map(([name, score]) => [name, Number(score)]));
    showAnswer(holder, await send("/api/rating/scores", { answer: rated.answer, scores }));
  }, ...criteria, node("p", { class: "controls" }, node("button", {}, "rate")))));
}
