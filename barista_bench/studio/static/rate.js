// Answers of models to be rated by the rubric of their judges, one after the other, blind.
import { form, node } from "./elements.js";
import { present, radios } from "./next_of_many.js";
import { ask, send, waitUntilDone } from "./server.js";
import { counted, words } from "./words.js";
/** @import { View } from "./page.d.ts" */
/** @import { AnswerToRate, NextRating, PersonState } from "./asking_shapes.d.ts" */

/** @returns {View} */
export function rateView() {
  const words = new Text("scoring the runs ... ");
  const bar = node("progress", { "aria-label": "runs scored" });
  const state = node("p", {}, words, bar);
  const holder = node("div", {}, node("h2", {}, "Rate"), state);
  const onShown = async () => {
    await waitUntilDone(
      () => ask("/api/rating/progress"),
      ({ scored, runs }) => {
        words.textContent = `${scored} of ${counted(runs, "run")} scored ... `;
        bar.max = runs;
        bar.value = scored;
      },
      state,
    );
    showNext(holder, await ask("/api/rating"));
  };
  return { elements: [holder], onShown };
}

/**
 * @param {HTMLElement} holder
 * @param {NextRating} next
 */
function showNext(holder, next) {
  if (next.answer === undefined) present(holder, "All answers are rated", next);
  else showAnswer(holder, next);
}

/** @param {string} text */
const passage = (text) => node("p", { class: "asked-text" }, text);

/**
 * @param {HTMLElement} holder
 * @param {PersonState & AnswerToRate} rated
 */
function showAnswer(holder, rated) {
  /**
   * @param {string} title
   * @param {string} text
   */
  const section = (title, text) => [node("h3", {}, title), passage(text)];
  const handIn = async (/** @type {HTMLFormElement} */ element) => {
    const scores = Object.fromEntries([...new FormData(element)].map(([name, score]) => [name, Number(score)]));
    showNext(holder, await send("/api/rating/scores", { answer: rated.answer, scores }));
  };
  const sections = [
    ...section("Question", rated.asked),
    ...section("Reference", rated.reference),
    ...section("Answer", rated.text),
    node("details", {}, node("summary", {}, "Rubric"), passage(rated.introduction)),
  ];
  const submit = node("p", { class: "controls" }, node("button", { class: "primary", "data-icon": "check" }, "rate"));
  const fields = form({ class: "inputs" }, handIn, ...criteriaOf(rated), submit);
  const columns = node("div", { class: "columns" }, node("div", {}, ...sections), fields);
  present(holder, `Answer ${rated.done + 1} of ${rated.total}`, rated, columns);
}

/** @param {AnswerToRate} rated */
function criteriaOf({ criteria, top }) {
  /** @type {[number, string][]} */
  const scores = Array.from({ length: top + 1 }, (_, score) => [score, String(score)]);
  return criteria.map(({ name, text, scale }) =>
    node(
      "fieldset",
      {},
      node("legend", {}, words(name)),
      node("div", { class: "scores" }, ...radios(name, scores)),
      node("p", { class: "asked-text note" }, scale),
      node("details", {}, node("summary", {}, "What counts"), passage(text)),
    ),
  );
}
