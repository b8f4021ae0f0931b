// A participant's way through a study: practice with the right answers, questions that count, thanks.
import { questionElement } from "./answer.js";
import { button, explainedList, node, svgNode } from "./elements.js";
import { ask, send } from "./server.js";
import { part, reasonOf, say } from "./status.js";
import { counted, words } from "./words.js";

/** @import { Child } from "./page.d.ts" */
/** @import { Sheets } from "./sheets.js" */
/** @import { Block, Feedback, StudyNext, StudyQuestion } from "./study_shapes.d.ts" */

const ABOUT =
  "Thank you for taking part. You see the pictures and the question that a computer model gets. Your answers, " +
  "their order and their times in seconds are stored under the name in your invitation. You can stop at any " +
  "time: open your link again to continue.";
const CHECKS = "Some questions appear twice, and a few only check that you read the questions.";

/** The last announced part: a task's practice, or its questions that count. */
let introduced = "";

/**
 * @param {string} title
 * @param {Child[]} parts
 */
function fill(title, ...parts) {
  const heading = node("h2", { tabindex: -1 }, title);
  part("main").replaceChildren(heading, ...parts.map((child) => child ?? ""));
  scrollTo(0, 0);
  heading.focus();
  say(title);
}

/** @param {StudyNext} state */
async function show(state) {
  const { done, total } = state;
  const far = /** @type {HTMLProgressElement} */ (part("far"));
  far.max = total;
  far.value = done;
  part("count").textContent = `${done} of ${total}`;
  if (state.question === undefined) showThanks(state);
  else if (introduced === stageOf(state)) await showQuestion(state);
  else showStage(state);
}

/** @param {StudyQuestion} state */
const stageOf = ({ block, practice }) => `${block.title} ${practice}`;

/** @param {StudyNext} state */
function showThanks({ done, lost = 0 }) {
  const missing = lost ? node("p", {}, `${counted(lost, "question")} could not be shown.`) : null;
  const thanks = `All ${counted(done, "answer")} are stored. You can close this page.`;
  fill("Thank you", node("div", { class: "told" }, node("p", {}, thanks), missing));
}

/**
 * Announces the next part: the time of a question starts when it is shown.
 * @param {StudyQuestion} state
 */
function showStage(state) {
  const { block, practice, done, system } = state;
  const begin = async () => {
    introduced = stageOf(state);
    await showQuestion(state);
  };
  const isFirst = done === 0 && !block.begun;
  const label = isFirst || !block.begun ? "start" : "go on";
  const controls = node("p", { class: "controls" }, button(label, begin, { class: "primary" }));
  const whole = isFirst ? [node("p", {}, ABOUT)] : [];
  const title = practice || !block.practice ? words(block.title) : `${words(block.title)}: questions that count`;
  fill(title, node("div", { class: "told" }, ...whole, ...partsOf(block, practice, system), controls));
}

/**
 * @param {Block} block
 * @param {boolean} practice
 * @param {string} system
 */
function partsOf(block, practice, system) {
  const texts = [node("h3", {}, "Answer format"), node("p", { class: "asked-text" }, system)];
  const practised = counted(block.practice, "question");
  const first = `${practised} to practise. They do not count, and you see the right answer after each.`;
  const then = `${counted(block.counted, "question")} that count. You do not see the right answers. ${CHECKS}`;
  return [
    node("p", {}, `A question and its answer: ${block.about}.`),
    node("ol", {}, practice ? node("li", {}, first) : null, node("li", {}, then)),
    ...(system ? texts : []),
  ];
}

/** @param {StudyQuestion} state */
async function showQuestion(state) {
  const { block, practice, question } = state;
  /** @param {unknown} answer @param {number} seconds @param {boolean} skipped */
  const handIn = async (answer, seconds, skipped = false) => {
    const next = await send("/api/study/answer", { question, answer, seconds, skipped });
    if (next.feedback) showFeedback(asked.answers, asked.sheets, next.feedback, next);
    else await show(next);
  };
  /** @param {() => number} seconds */
  const skip = (seconds) => [button("skip: I cannot answer", () => handIn(null, seconds(), true))];
  const asked = await questionElement(state, handIn, skip);
  fill(`${practice ? "Practice" : "Question"} ${block.number} of ${block.of}`, asked.element);
  asked.begin();
}

/**
 * After practice, in place of the buttons: the question stays, with the right answer.
 * @param {HTMLFormElement} answers
 * @param {Sheets} sheets
 * @param {Feedback} feedback
 * @param {StudyNext} next
 */
function showFeedback(answers, sheets, { right, text, rows, boxes }, next) {
  for (const input of answers.querySelectorAll("input")) {
    if (right.includes(input.value)) input.closest("label")?.classList.add("right");
  }
  for (const field of answers.elements) field.setAttribute("disabled", "");
  for (const { image, box, label } of boxes) {
    const [x, y, right, bottom] = box;
    const shape = svgNode("rect", { class: "right-box", x, y, width: right - x, height: bottom - y });
    shape.append(svgNode("title", {}, label));
    sheets.sheets[image]?.layer.append(shape);
  }
  const choice = right.length ? [node("p", {}, `Right: ${right.join(", ")}`)] : [];
  const example = text ? [node("p", {}, "A right answer:"), node("p", { class: "asked-text" }, text)] : [];
  const marked = boxes.length ? [node("p", {}, "The right answer is outlined in blue on the picture.")] : [];
  const onwards = button("next", () => show(next), { class: "primary" });
  const panel = node("section", { class: "feedback" }, node("h3", {}, "The right answer"), ...choice, ...example);
  panel.append(...marked, explainedList(rows), node("p", { class: "controls" }, onwards));
  answers.after(panel);
  onwards.focus();
  say("practice: the right answer is shown");
}

try {
  await show(await ask("/api/study"));
} catch (error) {
  part("main").replaceChildren(node("p", { class: "alert" }, reasonOf(error)));
}
