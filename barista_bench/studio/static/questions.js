// Generated questions, one after the other, with their moment: accept, revise, reject. Every verdict is stored at once.
import { button, form, node } from "./elements.js";
import { shows } from "./frame_canvas.js";
import { graphPlayer } from "./graph_player.js";
import { ask, send } from "./server.js";
import { explained, say } from "./status.js";

/** @import { Keys, View } from "./page.d.ts" */
/** @import { ReviewItem, Verdict } from "./shapes.d.ts" */
/** @import { Player } from "./player.js" */

/** @typedef {{ question: string, choices: string[] }} Texts */

const PLAYER_KEYS = {
  ArrowLeft: "frame back",
  ArrowRight: "frame forward",
  "shift+ArrowLeft": "second back",
  "shift+ArrowRight": "second forward",
  " ": "play or pause",
};
const NOT_OPEN = "Its video is not open. Start the studio with its release.";
const NO_MOMENT = "Its place in the video is unknown, because its items file is missing.";
const OF_A_SET = "All items of its set share these texts. Edit them in the domain file.";

/** @returns {Promise<View>} */
export async function questionsView() {
  shows.masks = false; // they would hide the colours that questions are about
  const review = new Review((await ask("/api/review")).items);
  return { elements: [review.element], keys: review.keys(), onShown: () => review.show(review.nextOpen(-1)) };
}

class Review {
  /** @param {ReviewItem[]} items */
  constructor(items) {
    this.items = items;
    this.at = -1;
    /** @type {Player | null} */
    this.player = null;
    this.heading = node("h2", { tabindex: -1 });
    this.watched = node("section", { class: "watched" });
    this.item = node("section", { class: "item" });
    this.form = node("section", { class: "inputs" });
    const [back, forward] = [
      button("back (p)", () => this.step(-1), { "data-icon": "arrow-left" }),
      button("forward (n)", () => this.step(1), { "data-icon": "arrow-right" }),
    ];
    this.element = node(
      "div",
      {},
      node("div", { class: "heading" }, this.heading, back, forward),
      node("div", { class: "columns" }, this.watched, node("div", {}, this.item, this.form)),
    );
  }

  /** @returns {Keys} */
  keys() {
    /** @param {(item: ReviewItem) => unknown} action */
    const act = (action) => () => (this.current ? action(this.current) : say("no question is open"));
    const ofPlayer = Object.entries(PLAYER_KEYS).map(([key, does]) => [
      key,
      [does, () => this.player?.keys()[key][1]()],
    ]);
    return {
      a: ["accept", act((item) => this.accept(item))],
      r: ["revise", act((item) => this.revise(item))],
      x: ["reject", act((item) => this.reject(item))],
      n: ["next question", () => this.step(1)],
      p: ["question before", () => this.step(-1)],
      ...Object.fromEntries(ofPlayer),
    };
  }

  /** @returns {ReviewItem | undefined} */
  get current() {
    return this.items[this.at];
  }

  /**
   * The number of the next item without a verdict after `from`, from the start again at the end; -1 if all have one.
   * @param {number} from
   */
  nextOpen(from) {
    const open = [...this.items.keys()].filter((at) => !this.items[at].verdict);
    return open.find((at) => at > from) ?? open[0] ?? -1;
  }

  /** @param {number} by */
  step(by) {
    if (this.items[this.at + by]) this.show(this.at + by);
  }

  show = explained(
    /** @param {number} at */
    async (at) => {
      this.at = at;
      const item = this.current;
      const done = this.items.filter(({ verdict }) => verdict).length;
      const count = `${done} of ${this.items.length} reviewed`;
      this.heading.textContent = item ? `Question ${at + 1}: ${count}` : `No question is left: ${count}`;
      this.form.replaceChildren();
      this.item.replaceChildren(...(item ? this.itemParts(item) : []));
      this.heading.focus();
      await this.watch(item);
    },
  );

  /** @param {ReviewItem} item */
  itemParts(item) {
    const { subtask, video_id: video, question, choices, correct, verdict, reason, reviewer, revisable } = item;
    const options = choices.map((text, number) => {
      const isCorrect = correct.includes(number);
      const mark = isCorrect ? node("strong", {}, " ✓ correct") : "";
      return node("li", { class: isCorrect ? "right" : null }, text, mark);
    });
    const controls = [
      button("accept (a)", () => this.accept(item), { "data-icon": "check" }),
      revisable ? button("revise (r)", () => this.revise(item), { "data-icon": "pencil" }) : "",
      button("reject (x)", () => this.reject(item), { "data-icon": "x" }),
    ];
    return [
      node("p", { class: "note" }, `${subtask} · ${item.item} · ${video}`),
      node("p", { class: "asked-text" }, question),
      node("ol", { class: "choices" }, ...options),
      verdict ? node("p", {}, `${verdict} by ${reviewer}${reason ? `: ${reason}` : ""}`) : "",
      node("p", { class: "controls" }, ...controls),
      revisable ? "" : node("p", { class: "note" }, OF_A_SET),
    ];
  }

  /** Its video at the moment that it asks about. @param {ReviewItem | undefined} item */
  async watch(item) {
    if (!item?.kind) {
      this.player = null;
      this.watched.replaceChildren(item ? node("p", { class: "note" }, NOT_OPEN) : "");
      return;
    }
    const { video_id: video, moment } = item;
    const shownPlayer = this.player?.video === video ? this.player : null;
    const player = shownPlayer ?? (await graphPlayer(video)).player;
    if (item !== this.current) return;
    this.player = player;
    const named = moment ? [moment.span[0], ...moment.frames, moment.span[1] - 1] : [];
    const frames = [...new Set(named)].sort((a, b) => a - b);
    const jumps = frames.map((frame) =>
      button(String(frame), () => player.go(frame), { "aria-pressed": String(moment?.frames.includes(frame)) }),
    );
    const where = moment ? `frames ${moment.span[0]} to ${moment.span[1] - 1}, asked about: ` : NO_MOMENT;
    this.watched.replaceChildren(player.element, node("p", { class: "controls" }, where, ...jumps));
    const first = moment?.frames[0] ?? frames[0] ?? 0;
    await (shownPlayer ? player.go(first) : player.start(first));
    player.pick(moment?.objects ?? []);
  }

  /**
   * @param {ReviewItem} item
   * @param {Verdict} verdict
   * @param {Texts} texts
   */
  async decide(item, verdict, { question, choices }, reason = "") {
    const { at } = this;
    const sent = { file: item.file, item: item.item, verdict, reason, question, choices };
    Object.assign(item, await send("/api/review/verdict", sent));
    say(`${item.item}: ${verdict}`);
    await this.show(this.nextOpen(at));
  }

  /** A reason given before goes with it; the server drops it. @param {ReviewItem} item */
  accept(item) {
    return this.decide(item, "accept", item, item.reason);
  }

  /** @param {ReviewItem} item */
  revise(item) {
    const fields = [item.question, ...item.choices].map((text) => {
      const field = node("textarea", { rows: 2, required: true });
      field.value = text;
      return field;
    });
    const labels = fields.map((field, number) => {
      const correct = item.correct.includes(number - 1) ? " ✓ correct" : "";
      return node("label", {}, number ? `choice ${number}${correct}` : "question", field);
    });
    this.openForm(item, "revise", labels, () => {
      const [question, ...choices] = fields.map(({ value }) => value);
      return { question, choices };
    });
  }

  /** @param {ReviewItem} item */
  reject(item) {
    this.openForm(item, "reject", [], () => item);
  }

  /**
   * The fields of a verdict that needs a reason; those given before are offered.
   * @param {ReviewItem} item
   * @param {Verdict} verdict
   * @param {HTMLElement[]} labels
   * @param {() => Texts} texts
   */
  openForm(item, verdict, labels, texts) {
    const reasons = [...new Set(this.items.map(({ reason }) => reason).filter(Boolean))];
    const reason = node("input", { list: "reasons", required: true, autocomplete: "off" });
    const cancel = button("cancel", () => this.form.replaceChildren());
    const reasonForm = form(
      {},
      () => this.decide(item, verdict, texts(), reason.value),
      ...labels,
      node("label", {}, "reason", reason),
      node("datalist", { id: "reasons" }, ...reasons.map((value) => node("option", { value }))),
      node("p", { class: "controls" }, node("button", {}, verdict), cancel),
    );
    this.form.replaceChildren(reasonForm);
    reasonForm.querySelector("textarea")?.focus();
    if (!labels.length) reason.focus();
  }
}
