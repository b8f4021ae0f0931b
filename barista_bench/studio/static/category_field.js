// The category of the next object: a word of the vocabulary, or a part of one, for which the words are offered.
import { button, node } from "./elements.js";
import { explained, say } from "./status.js";

export class CategoryField {
  /**
   * @param {string[]} words of the vocabulary
   * @param {() => unknown} chosen called when Enter or an offer names the category
   */
  constructor(words, chosen) {
    this.words = words;
    this.chosen = chosen;
    this.input = node("input", {
      list: "categories",
      "aria-label": "category of the next object",
      placeholder: "category",
      input: () => this.offers.replaceChildren(),
      keydown: (/** @type {KeyboardEvent} */ event) => this.press(event),
    });
    this.offers = node("div", { class: "inline wrap", role: "group" });
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  /** The word that equals the text, or the only one that begins with it. Several matches are offered. */
  read() {
    const typed = this.input.value.trim().toLowerCase();
    const begin = this.words.filter((word) => typed && word.toLowerCase().startsWith(typed));
    const exact = begin.filter((word) => word.toLowerCase() === typed);
    const found = [exact, begin].find(({ length }) => length === 1);
    if (found) return found[0];
    this.offer(typed);
    throw new Error("First name a category of the vocabulary, or choose an object.");
  }

  /** @param {string} typed */
  offer(typed) {
    const matching = this.words.filter((word) => typed && word.toLowerCase().includes(typed));
    this.offers.setAttribute("aria-label", `categories like ${typed}`);
    this.offers.replaceChildren(...matching.map((word) => button(word, () => this.choose(word))));
    (this.offers.querySelector("button") ?? this.input).focus();
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (event.key !== "Enter") return;
    event.preventDefault(); // it would press the first word that is offered
    explained(() => this.choose(this.read()))();
  }

  /** @param {string} word */
  choose(word) {
    this.input.value = word;
    this.offers.replaceChildren();
    this.input.blur();
    say(`draw a box around the ${word}`);
    this.chosen();
  }
}
