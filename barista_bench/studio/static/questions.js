// Generated questions, one after the other, with their moment: accept, revise, reject; every verdict is in the file at once.
import { ask, button, explained, form, node, say, send } from "./page.js";
import { graphPlayer } from "./explore.js";
import { withoutMasks } from "./player.js";

export async function questionsView() {
  withoutMasks(); // they would hide the colours that questions are about
  const review = new Review((await ask("/api/review")).items);
  return { made: [review.element], keys: review.keys, started: () => review.show(review.nextOpen(-1)) };
}

class Review {
  constructor(items) {
    Object.assign(this, { items, at: -1, player: null });
    this.heading = node("h2", { tabindex: -1 });
    [this.watched, this.item, this.form] = ["watched", "item", "inputs"].map((name) => node("section", { class: name }));
    this.element = node("div", {}, node("div", { class: "heading" }, this.heading, button("back (p)", () => this.step(-1)), button("forward (n)", () => this.step(1))),
      node("div", { class: "columns" }, this.watched, node("div", {}, this.item, this.form)));
    const act = (action) => explained(() => (this.current ? action() : say("no question is shown")));
    this.keys = { a: act(() => this.accept()), r: act(() => this.revise()), x: act(() => this.reject()), n: () => this.step(1), p: () => this.step(-1),
      ...Object.fromEntries(["ArrowLeft", "ArrowRight", "shift+ArrowLeft", "shift+ArrowRight", " "].map((key) => [key, () => this.player?.keys()[key]()])) };
  }

  get current() {
    return this.items[this.at];
  }

  /** The number of the next item without a verdict after `from`, from the start again at the end; -1 where none is left. */
  nextOpen(from) {
    const open = [...this.items.keys()].filter((at) => !this.items[at].verdict);
    return open.find((at) => at > from) ?? open[0] ?? -1;
  }

  step(by) {
    if (this.items[this.at + by]) this.show(this.at + by);
  }

  show = explained(async (at) => {
    this.at = at;
    const item = this.current;
    const count = `${this.items.filter(({ verdict }) => verdict).length} of ${this.items.length} reviewed`;
    this.heading.textContent = item ? `Question ${at + 1}: ${count}` : `No question is left: ${count}`;
    this.form.replaceChildren();
    this.item.replaceChildren(...(item ? this.shown(item) : []));
    this.heading.focus();
    await this.watch(item);
  });

  shown({ item, subtask, video_id: video, question, choices, correct, verdict, reason, reviewer, revisable }) {
    return [node("p", { class: "note" }, `${subtask} · ${item} · ${video}`), node("p", { class: "asked-text" }, question),
      node("ol", { class: "choices" }, ...choices.map((text, number) => node("li", { class: correct.includes(number) ? "right" : null },
        text, correct.includes(number) ? node("strong", {}, " ✓ correct") : ""))),
      verdict ? node("p", {}, `${verdict} by ${reviewer}${reason ? `: ${reason}` : ""}`) : "",
      node("p", { class: "controls" }, button("accept (a)", explained(() => this.accept())),
        revisable ? button("revise (r)", () => this.revise()) : "", button("reject (x)", () => this.reject())),
      revisable ? "" : node("p", { class: "note" }, "Its whole set shares its texts, which are revised in the domain file.")];
  }

  /** Its video at the moment that it asks about. */
  async watch(item) {
    if (!item?.kind) {
      this.player = null;
      this.watched.replaceChildren(item ? node("p", { class: "note" }, "Its video is not open: name its release when starting the studio.") : "");
      return;
    }
    const { video_id: video, moment } = item;
    const isNew = this.player?.video !== video;
    const player = isNew ? await graphPlayer(video) : this.player;
    if (item !== this.current) return;
    this.player = player;
    const frames = moment ? [...new Set([moment.span[0], ...moment.frames, moment.span[1] - 1])].sort((a, b) => a - b) : [];
    this.watched.replaceChildren(player.element, node("p", { class: "controls" }, moment ? `frames ${moment.span[0]} to ${moment.span[1] - 1}, asked about: ` : "Where it is in the video is not known: its items file is missing.",
      ...frames.map((frame) => button(String(frame), () => player.go(frame), { "aria-pressed": String(moment.frames.includes(frame)) }))));
    const first = moment?.frames[0] ?? frames[0] ?? 0;
    await (isNew ? player.start(first) : player.go(first));
    player.pick(moment?.objects ?? []);
  }

  async decide(verdict, { reason = "", question, choices }) {
    const { at, current } = this;
    Object.assign(current, await send("/api/review/verdict", { file: current.file, item: current.item, verdict, reason, question, choices }));
    say(`${current.item}: ${verdict}`);
    await this.show(this.nextOpen(at));
  }

  accept() {
    return this.decide("accept", this.current);
  }

  revise() {
    const texts = [this.current.question, ...this.current.choices].map((text, number) => {
      const field = node("textarea", { rows: 2, required: true });
      field.value = text;
      return { field, label: node("label", {}, number ? `choice ${number}${this.current.correct.includes(number - 1) ? " ✓ correct" : ""}` : "question", field) };
    });
    this.open("revise", texts.map(({ label }) => label), () => {
      const [question, ...choices] = texts.map(({ field }) => field.value);
      return { question, choices };
    });
  }

  reject() {
    this.open("reject", [], () => this.current);
  }

  /** The fields of a verdict that needs a reason; those given before are offered. */
  open(verdict, labels, texts) {
    const known = [...new Set(this.items.map(({ reason }) => reason).filter(Boolean))];
    const reason = node("input", { list: "reasons", required: true, autocomplete: "off" });
    this.form.replaceChildren(form({}, () => this.decide(verdict, { ...texts(), reason: reason.value }), ...labels, node("label", {}, "reason", reason),
      node("datalist", { id: "reasons" }, ...known.map((value) => node("option", { value }))),
      node("p", { class: "controls" }, node("button", {}, verdict), button("cancel", () => this.form.replaceChildren()))));
    this.form.querySelector("textarea, input").focus();
  }
}
