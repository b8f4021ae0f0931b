// A question to the person, which the page waits for.
import { button, node } from "./elements.js";

/** @import { Child, Properties } from "./page.d.ts" */

/**
 * Promises the answer that is chosen; null where the dialog is closed. The first answer has the focus.
 * @template Answer
 * @param {Properties} look of the dialog
 * @param {Child[]} content
 * @param {[answer: Answer, text: string, look: Properties][]} answers
 * @returns {Promise<Answer | null>}
 */
export function askPerson(look, content, answers) {
  const { promise, resolve } = Promise.withResolvers();
  /** @param {Answer | null} answer */
  const leave = (answer) => {
    dialog.remove();
    resolve(answer);
  };
  const dialog = node("dialog", { ...look, close: () => leave(null) }, ...content);
  const buttons = answers.map(([answer, text, looks]) => button(text, () => leave(answer), looks));
  dialog.append(node("div", { class: "controls" }, ...buttons));
  document.body.append(dialog);
  dialog.showModal();
  return promise;
}
