// Shows a person one task after the other: questions to answer, answers to rate.
import { node } from "./elements.js";
import { say } from "./status.js";
import { counted } from "./words.js";
/** @import { PersonState } from "./asking_shapes.d.ts" */

/**
 * Shows the next task in `parts`, under `title`.
 * @param {HTMLElement} holder
 * @param {string} title
 * @param {PersonState} state
 * @param {HTMLElement[]} parts
 */
export function present(holder, title, { done, kept, problems }, ...parts) {
  const heading = node("h2", { tabindex: -1 }, title);
  const alerts = problems.map((problem) => node("p", { class: "alert" }, problem));
  const count = node("p", { class: "note" }, `${counted(done, "answer")}, in `, node("code", {}, kept));
  holder.replaceChildren(heading, ...alerts, ...parts, count);
  heading.focus();
  say(title.toLowerCase());
}

/**
 * Fields for one of [value, text]; the form waits until the person chooses one.
 * @param {string} name
 * @param {[value: string | number, text: string][]} choices
 */
export const radios = (name, choices) =>
  choices.map(([value, text]) =>
    node("label", {}, node("input", { type: "radio", name, value, required: true }), ` ${text}`),
  );
