// Questions to a person as a model is asked them, and answers of models to be rated; both one after the other, blind.
import { ask, button, explained, node, say, send } from "./page.js";
import { Sheets, field } from "./fields.js";

const DEFAULT = 20;

export function answerView(query) {
  const number = Number(query.get("number"));
  if (!number) return startView();
  const holder = node("div", {});
  const keys = {};
  say("opening the questions");
  return { made: [holder], keys, started: async () => showQuestion(holder, keys, number, await send("/api/people/next", { number })) };
}

function startView() {
  const field_ = node("input", { type: "number", min: 1, max: 10000, value: DEFAULT, required: true });
  return { made: [node("h2", {}, "Answer as a model would"), node("p", {}, "You see what a model sees: its prompt and its images, and no truth. Your answers and the time "
    + "each takes are kept as a run, which scores and reports like a model's. A larger number keeps what was drawn. You can stop and go on at any time."),
  node("form", { class: "inline", submit: (event) => {
    event.preventDefault();
    location.hash = `#/answer?number=${field_.value}`;
  } }, node("label", {}, "questions of each task ", field_), node("button", {}, "start"))] };
}

const alerts = (problems) => problems.map((problem) => node("p", { class: "alert" }, problem));

async function showQuestion(holder, keys, number, asked) {
  for (const key of Object.keys(keys)) delete keys[key];
  const problems = alerts(asked.problems);
  if (!asked.question) {
    holder.replaceChildren(node("h2", {}, "All questions are answered"), ...problems, node("p", {}, `${asked.done} answers, in `, node("code", {}, asked.folder)));
    return;
  }
  const sheets = new Sheets(asked.images, asked.scale);
  const answer = { choice: choiceOf, fields: fieldsOf, text: textOf }[asked.form](asked, sheets, keys);
  const heading = node("h2", { tabindex: -1 }, `Question ${asked.done + 1} of ${asked.total}`);
  let begun = performance.now();
  const form = node("form", { class: "inputs", submit: explained(async (event) => {
    event.preventDefault();
    const given = answer.read();
    if (given === null) throw new Error("choose an answer first");
    const seconds = (performance.now() - begun) / 1000;
    const next = await send("/api/people/answer", { number, question: asked.question, answer: given, seconds });
    await showQuestion(holder, keys, number, next);
  }) }, answer.element, node("p", { class: "controls" }, node("button", {}, "answer")));
  const end = asked.parts.findLastIndex((part) => typeof part === "number") + 1; // what follows the pictures stands by the answer
  const size = node("input", { type: "range", min: 10, max: 100, value: asked.images.length > 2 ? 33 : 100, input: () => holder.style.setProperty("--picture", `${size.value}%`) });
  holder.style.setProperty("--picture", `${size.value}%`);
  holder.replaceChildren(node("div", { class: "heading" }, heading, node("span", { class: "note" }, `${asked.benchmark} · ${asked.task}`),
    asked.images.length ? node("label", { class: "inline" }, "size of pictures ", size) : ""), ...problems,
  node("div", { class: "columns" }, node("div", { class: "asked" }, ...partsOf(asked.parts.slice(0, end), sheets)),
    node("div", {}, ...partsOf(asked.parts.slice(end), sheets), form, instructions(asked.system))));
  heading.focus();
  await sheets.ready();
  begun = performance.now();
  say(`question ${asked.done + 1} of ${asked.total}`);
}

const known = new Set();

/** What a model is told with every question of a task: unfolded when it is new. */
function instructions(text) {
  const isNew = !known.has(text);
  known.add(text);
  return text ? node("details", { open: isNew }, node("summary", {}, "What is asked for"), node("p", { class: "asked-text" }, text)) : "";
}

/** Texts and pictures in the order of the prompt; a short text before a picture is its caption. */
function partsOf(parts, sheets) {
  const isCaption = (at) => typeof parts[at] === "string" && typeof parts[at + 1] === "number" && parts[at].length < 60 && !parts[at].trim().includes("\n");
  return parts.map((part, at) => {
    if (typeof part === "string") return isCaption(at) ? "" : node("p", { class: "asked-text" }, part);
    return node("figure", {}, isCaption(at - 1) ? node("figcaption", {}, parts[at - 1]) : null, sheets.sheets[part].element);
  });
}

function choiceOf({ choices }, _, keys) {
  let chosen = null;
  const buttons = Object.entries(choices).map(([label, text]) => button(`${label}: ${text}`, () => {
    chosen = label;
    for (const other of buttons) other.setAttribute("aria-pressed", String(other === buttons[Object.keys(choices).indexOf(label)]));
  }, { "aria-pressed": "false", class: "choice" }));
  buttons.forEach((made, at) => { keys[String(at + 1)] = () => {
    made.click();
    made.form.querySelector(".controls button").focus();
  }; });
  return { element: node("div", { role: "group", "aria-label": "answers", class: "choices" }, ...buttons), read: () => chosen };
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
  if (!rated.answer) {
    holder.replaceChildren(node("h2", {}, "All answers are rated"), ...alerts(rated.problems), node("p", {}, `${rated.done} answers, in `, node("code", {}, rated.file)));
    return;
  }
  const heading = node("h2", { tabindex: -1 }, `Answer ${rated.done + 1} of ${rated.total}`);
  const said = (title, text) => [node("h3", {}, title), node("p", { class: "asked-text" }, text)];
  const points = Array.from({ length: rated.top + 1 }, (_, score) => score);
  const criteria = rated.criteria.map(({ name, text, scale }) => node("fieldset", {}, node("legend", {}, name.replaceAll("_", " ")),
    node("div", { class: "scores" }, ...points.map((score) => node("label", {}, node("input", { type: "radio", name, value: score, required: true }), ` ${score}`))),
    node("p", { class: "asked-text note" }, scale), node("details", {}, node("summary", {}, "What counts"), node("p", { class: "asked-text" }, text))));
  holder.replaceChildren(heading, ...alerts(rated.problems), node("div", { class: "columns" }, node("div", {}, ...said("Question", rated.asked), ...said("Reference", rated.reference),
    ...said("Answer", rated.text), node("details", {}, node("summary", {}, "What is rated"), node("p", { class: "asked-text" }, rated.introduction))),
    node("form", { class: "inputs", submit: explained(async (event) => {
      event.preventDefault();
      const scores = Object.fromEntries([...new FormData(event.target)].map(([name, score]) => [name, Number(score)]));
      showAnswer(holder, await send("/api/rating/scores", { answer: rated.answer, scores }));
    }) }, ...criteria, node("p", { class: "controls" }, node("button", {}, "rate")))));
  heading.focus();
  say(`answer ${rated.done + 1} of ${rated.total}`);
}
