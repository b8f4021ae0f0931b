// Generated questions, one after the other, with their moment: accept, revise, reject; every verdict is in the file at once.
import { ask, button, explained, node, say, send } from "./page.js";
import { frameOf } from "./explore.js";
import { Player } from "./player.js";

export async function questionsView() {
  const review = new Review(await ask("/api/review"));
  return { made: [review.element], keys: review.keys, started: () => review.show(review.nextOpen(-1)) };
}

class Review {
  constructor({ items, reasons, retention }) {
    Object.assign(this, { items, reasons, at: -1, player: null });
    const subtasks = [...new Set(items.map(({ subtask }) => subtask))];
    this.filter = node("select", { change: () => this.show(this.nextOpen(-1)) }, node("option", { value: "" }, "all subtasks"),
      ...subtasks.map((name) => node("option", { value: name }, name)));
    this.heading = node("h2", { tabindex: -1 });
    [this.watched, this.item, this.form] = ["watched", "item", "inputs"].map((name) => node("section", { class: name }));
    this.known = node("datalist", { id: "reasons" });
    this.table = node("details", {});
    this.element = node("div", {}, node("div", { class: "heading" }, this.heading, node("label", {}, "show ", this.filter),
      button("back (p)", () => this.step(-1)), button("forward (n)", () => this.step(1))),
    node("div", { class: "columns" }, this.watched, node("div", {}, this.item, this.form)), this.known, this.table);
    this.fill(retention);
    const act = (action) => explained(() => (this.current ? action() : say("no question is shown")));
    this.keys = { a: act(() => this.accept()), r: act(() => this.revise()), x: act(() => this.reject()), n: () => this.step(1), p: () => this.step(-1),
      ...Object.fromEntries(["ArrowLeft", "ArrowRight", "shift+ArrowLeft", "shift+ArrowRight", " "].map((key) => [key, () => this.player?.keys()[key]()])) };
  }

  get current() {
    return this.items[this.at];
  }

  isShown({ subtask }) {
    return !this.filter.value || subtask === this.filter.value;
  }

  /** The place of the next item without a verdict after `from`, from the start again at the end; -1 where none is left. */
  nextOpen(from) {
    const places = this.items.map((_, at) => at).filter((at) => this.isShown(this.items[at]) && !this.items[at].verdict);
    return places.find((at) => at > from) ?? places[0] ?? -1;
  }

  step(by) {
    for (let at = this.at + by; at >= 0 && at < this.items.length; at += by) {
      if (this.isShown(this.items[at])) {
        this.show(at);
        return;
      }
    }
  }

  show = explained(async (at) => {
    this.at = at;
    const shown = this.items.filter((item) => this.isShown(item));
    const count = `${shown.filter(({ verdict }) => verdict).length} of ${shown.length} reviewed`;
    this.heading.textContent = this.current ? `Question ${shown.indexOf(this.current) + 1}: ${count}` : `No question is left: ${count}`;
    this.form.replaceChildren();
    const { subtask, question, choices, correct, verdict, reason, reviewer, revisable } = this.current ?? {};
    this.item.replaceChildren(...(this.current ? [
      node("p", { class: "note" }, `${subtask} · ${this.current.item} · ${this.current.video_id}`),
      node("p", { class: "asked-text" }, question),
      node("ol", { class: "choices" }, ...choices.map((text, number) => node("li", { class: correct.includes(number) ? "right" : null },
        text, correct.includes(number) ? node("strong", {}, " right") : ""))),
      verdict ? node("p", {}, `${verdict} by ${reviewer}${reason ? `: ${reason}` : ""}`) : "",
      node("p", { class: "controls" }, button("accept (a)", explained(() => this.accept())),
        revisable ? button("revise (r)", () => this.revise()) : "", button("reject (x)", () => this.reject())),
      revisable ? "" : node("p", { class: "note" }, "Its whole set shares its texts, which are revised in the domain file."),
    ] : []));
    this.table.open ||= !this.current;
    this.heading.focus();
    await this.watch();
  });

  /** Its video at the moment that it asks about. */
  async watch() {
    const item = this.current;
    const nothing = (text) => {
      this.player = null;
      this.watched.replaceChildren(node("p", { class: "note" }, text));
    };
    if (!item) return nothing("");
    if (!item.kind) return nothing("Its video is not open: name its release when starting the studio.");
    const { video_id: video, moment, kind } = item;
    if (this.player?.video !== video) {
      const graph = frameOf(video);
      const player = await Player.open(kind, video, async (frame) => (await graph(frame)).instances);
      if (item !== this.current) return undefined;
      this.player = player;
      player.prepare().catch((error) => say(error.message));
    }
    const { player } = this;
    const frames = moment ? [...new Set([moment.span[0], ...moment.frames, moment.span[1] - 1])].sort((a, b) => a - b) : [];
    this.watched.replaceChildren(player.element, node("p", { class: "controls" }, moment ? `frames ${moment.span[0]} to ${moment.span[1] - 1}, asked about: ` : "Where it is in the video is not known: its items file is missing.",
      ...frames.map((frame) => button(String(frame), () => player.go(frame), { "aria-pressed": String(moment.frames.includes(frame)) }))));
    player.fit();
    await player.go(moment ? moment.frames[0] ?? moment.span[0] : 0);
    player.pick(moment?.objects ?? []);
    return undefined;
  }

  async decide(verdict, { reason = "", question, choices }) {
    const { at, current } = this;
    const { item, retention, reasons } = await send("/api/review/verdict", { file: current.file, item: current.item, verdict, reason, question, choices });
    Object.assign(current, item);
    this.reasons = reasons;
    this.fill(retention);
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
      return { field, label: node("label", {}, number ? `choice ${number}` : "question", field) };
    });
    this.open("revise", texts.map(({ label }) => label), () => {
      const [question, ...choices] = texts.map(({ field }) => field.value);
      return { question, choices };
    });
  }

  reject() {
    this.open("reject", [], () => this.current);
  }

  /** The fields of a verdict that needs a reason. */
  open(verdict, labels, texts) {
    const reason = node("input", { list: "reasons", required: true, autocomplete: "off" });
    this.form.replaceChildren(node("form", { submit: explained(async (event) => {
      event.preventDefault();
      const { question, choices } = texts();
      await this.decide(verdict, { reason: reason.value, question, choices });
    }) }, ...labels, node("label", {}, "reason", reason), node("p", { class: "controls" }, node("button", {}, verdict), button("cancel", () => this.form.replaceChildren()))));
    this.form.querySelector("textarea, input").focus();
  }

  fill(retention) {
    this.known.replaceChildren(...this.reasons.map((value) => node("option", { value })));
    const share = ({ rate }) => (rate === null ? "–" : `${(100 * rate).toFixed(1)} %`);
    const cells = (row) => [row.reviewed, row.accepted, row.revised, row.rejected, share(row), Object.entries(row.reasons).map(([reason, count]) => `${count} × ${reason}`).join("; ")];
    this.table.replaceChildren(node("summary", {}, "What is kept"), node("table", {}, node("thead", {}, node("tr", {},
      ...["subtask", "reviewed", "accepted", "revised", "rejected", "kept", "reasons"].map((name) => node("th", { scope: "col" }, name)))),
    node("tbody", {}, ...retention.map((row) => node("tr", {}, node("th", { scope: "row" }, row.subtask), ...cells(row).map((cell) => node("td", {}, String(cell))))))));
  }
}
