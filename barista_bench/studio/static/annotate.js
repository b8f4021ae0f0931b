// Annotating and reviewing a video: the next thing to do, masks on its frames, identities, doubtful frames, statements.
import { button, explained, node, say } from "./page.js";
import { colour, encoded } from "./masks.js";
import { Annotation } from "./annotation.js";
import { Drawing } from "./draw.js";
import { Player } from "./player.js";
import { changedLayers, offeredRows, rowsOf, statementForm, statementsPanel } from "./statements.js";
import { Timeline } from "./timeline.js";

export async function annotateView(video, query) {
  const work = await Annotation.open(video);
  const player = await Player.open("project", video, (frame) => work.instances(frame));
  const view = new AnnotateView(work, player);
  const start = query.get("frame") ?? view.nextKeyframe() ?? 0;
  return { made: view.made, keys: view.keys(), started: async () => {
    player.fit();
    await player.go(Number(start));
    player.prepare().catch((error) => say(error.message));
    if (work.project.can_run) work.follow();
  } };
}

const PANELS = ["Frame", "Doubtful", "Statements", "Edits"];

class AnnotateView {
  constructor(work, player) {
    Object.assign(this, { work, player, panel: "Frame" });
    const { vocabulary, has_segmenter: canAsk } = work.project;
    this.category = node("input", { list: "categories", "aria-label": "category of what is drawn next", placeholder: "category", value: "" });
    this.next = node("div", { class: "next" });
    this.stages = node("p", { class: "note stages" });
    this.content = node("div", { class: "content" });
    this.tabs = PANELS.map((name) => button(name, () => this.open(name)));
    this.drawing = new Drawing(player, { current: () => this.current(), drawn: explained((id, pixels) => this.drawn(id, pixels)),
      prompted: canAsk ? explained((prompt) => this.prompt(prompt)) : null });
    this.timeline = new Timeline(player, [], { edit: explained((...given) => this.editRange(...given)), take: explained((row, range) => this.takeRange(row, range)),
      make: explained((row, range) => this.addContact(range)) });
    work.changed = () => this.refresh();
    work.told = () => this.fillNext();
    player.on("frame", () => this.fill());
    player.on("pick", explained((ids) => this.picked(ids)));
    const moved = () => work.moved();
    this.made = [node("div", { pointermove: moved, keydown: moved }, node("div", { class: "heading" }, node("h2", {}, work.video), this.next), this.stages,
      node("datalist", { id: "categories" }, ...vocabulary.categories.map((value) => node("option", { value }))),
      node("div", { class: "columns" }, node("div", {}, node("div", { class: "inline wrap" },
        button("new object", () => this.newObject(), { title: "what is drawn next is a new object (o)" }), node("label", {}, "of category ", this.category)), this.drawing.element, player.element),
        node("section", { class: "side", "aria-label": "annotation" }, node("div", { class: "tabs" }, ...this.tabs), this.content)), this.timeline.element)];
    this.fillTimeline();
    this.fillNext();
  }

  async refresh() {
    this.fillTimeline();
    this.fillNext();
    await this.player.refresh();
  }

  get frame() {
    return this.player.frame;
  }

  /** The chosen object's id on this frame; null where none is chosen. */
  async chosen() {
    const [object] = this.player.selected;
    return [...(await this.work.marks(this.frame)).values()].find((mark) => mark.object === object) ?? null;
  }

  // ---------------------------------------------------------------- drawing

  async current() {
    const chosen = await this.chosen();
    return chosen ?? { id: null, mask: null };
  }

  async drawn(id, pixels) {
    const { width, height } = this.work.project;
    const target = id ?? this.work.addObject(this.newCategory());
    await this.work.setMask(this.frame, target, encoded(pixels, height, width));
    this.player.pick([(await this.work.marks(this.frame)).get(target).object]);
  }

  newCategory() {
    const category = this.category.value.trim();
    if (this.work.project.vocabulary.categories.includes(category)) return category;
    this.category.focus();
    this.player.refresh();
    throw new Error("Name the category first, one of the vocabulary, or choose an object.");
  }

  /** Ask the segmenter: its answer is a suggestion, of the chosen object or of a new one. */
  async prompt(prompt) {
    const { frame } = this;
    const object = (await this.chosen())?.id;
    const category = object ? this.work.categoryOf(object) : this.newCategory();
    const { prompts } = await this.work.frameOf(frame);
    await this.work.accept({ prompts: [...prompts, { frame, category, object, ...prompt }] }, "prompt");
  }

  async picked([object]) {
    if (!object?.startsWith("suggestion ")) {
      this.fill();
      return;
    }
    const { suggestions } = await this.work.frameOf(this.frame);
    await this.take(suggestions[Number(object.slice(11))]);
  }

  async take(suggestion) {
    const id = await this.work.take(this.frame, suggestion);
    this.player.pick([(await this.work.marks(this.frame)).get(id).object]);
  }

  // ---------------------------------------------------------------- what to do next

  nextKeyframe() {
    const { asked, accepted } = this.work.project;
    const done = new Set(accepted.filter(({ complete }) => complete).map(({ frame }) => frame));
    return asked.find((frame) => !done.has(frame)) ?? null;
  }

  doubts() {
    return this.work.project.doubts.filter(({ frame }) => !this.work.lookedAt.has(frame));
  }

  fillNext() {
    const { work } = this;
    const { project, running } = work;
    const keyframe = this.nextKeyframe();
    const doubts = this.doubts();
    const primary = (text, action) => button(text, explained(action), { class: "primary" });
    const parts = () => {
      if (work.contacts) return [primary(`Accept ${work.contacts.length} contacts`, () => work.acceptContacts()), button("discard", explained(() => work.keepContacts(null)))];
      if (running) return [node("progress", { "aria-label": "work in the background" }), node("span", {}, running)];
      if (project.can_run) return [primary("Run what is due", () => work.run())];
      if (!project.contacts && !project.asked.length && !project.accepted.length) return [node("span", {}, "First: on the timeline, drag over each stretch in which hands touch things (or [ on its first frame, ] on its last).")];
      if (keyframe !== null) return [primary(`Next keyframe: ${keyframe}`, () => this.player.go(keyframe)), node("span", {}, `missing: ${project.missing}`)];
      if (doubts.length) return [primary(`Look at frame ${doubts[0].frame}`, () => this.doubtful()), node("span", {}, `${doubts.length} doubtful frames are left`)];
      return [node("span", {}, "Ready to export: "), node("code", {}, project.export)];
    };
    this.next.replaceChildren(...parts());
    this.stages.replaceChildren(...project.stages.flatMap(({ name, state }) => [node("span", { class: `stage ${state}` }, `${name}: ${state}`), " "]));
    for (const [number, name] of PANELS.entries()) {
      this.tabs[number].textContent = name === "Doubtful" ? `Doubtful (${doubts.length})` : name;
      this.tabs[number].setAttribute("aria-pressed", String(name === this.panel));
    }
  }

  open(name) {
    this.panel = name;
    this.fillNext();
    this.fill();
  }

  async fill() {
    const turn = this.turn = (this.turn ?? 0) + 1;
    const made = await { Frame: () => this.framePanel(), Doubtful: () => this.doubtPanel(), Edits: () => this.editPanel(),
      Statements: () => this.statementPanel() }[this.panel]();
    if (turn !== this.turn) return;
    const label = (element) => element.getAttribute("aria-label") ?? element.textContent;
    const focused = this.content.contains(document.activeElement) ? label(document.activeElement) : null;
    this.content.replaceChildren(...made);
    if (focused !== null) [...this.content.querySelectorAll("button, input, select")].find((element) => label(element) === focused)?.focus();
  }

  // ---------------------------------------------------------------- panels

  async framePanel() {
    const { work, frame } = this;
    if (frame < 0) return [];
    const marks = [...(await work.marks(frame)).values()];
    const { suggestions } = await work.frameOf(frame);
    const isWhole = work.whole.has(frame);
    const isDrawn = work.drafts.has(frame);
    const chosen = await this.chosen();
    const state = isWhole ? "keyframe: all that is seen" : "between keyframes: a correction of what is drawn";
    const accept = isWhole || isDrawn ? [button(isWhole ? `Accept keyframe ${frame}` : `Accept correction of frame ${frame}`, explained(() => this.acceptFrame()), { class: isDrawn ? "primary" : "" })] : [];
    const discard = isDrawn ? [button("discard draft", explained(() => work.setDraft(frame, undefined)))] : [];
    const row = (mark) => node("li", {}, this.thing(mark), node("small", {}, ` ${mark.origin} `),
      button("✕", explained(() => work.remove(frame, mark.id)), { "aria-label": `remove ${work.nameOf(mark.object)}`, title: isWhole ? "not on this frame" : "not seen on this frame" }));
    return [node("p", {}, `Frame ${frame}, ${state}. `, ...accept, " ", ...discard),
      ...(chosen ? this.identity(chosen, new Set(marks.map(({ id }) => id))) : []),
      node("h4", {}, `Objects (${marks.length})`), node("ul", { class: "facts-list" }, ...marks.map(row)),
      node("h4", {}, `Suggestions (${suggestions.length})`), node("ul", { class: "facts-list" }, ...suggestions.map((suggestion, number) => {
        const name = suggestion.object ? work.names.get(suggestion.object) ?? suggestion.category : `${suggestion.category} (new)`;
        return node("li", {}, button(name, explained(() => this.take(suggestion)), { pointerenter: () => this.player.stress(`suggestion ${number}`), "aria-label": `accept suggestion ${name} of ${suggestion.origin}` }), node("small", {}, ` ${suggestion.origin}${suggestion.confidence === null ? "" : `, ${suggestion.confidence}`}`));
      }))];
  }

  thing({ id, object }) {
    const isChosen = this.player.selected.has(object);
    const made = button(this.work.nameOf(object), () => this.player.pick(isChosen ? [] : [object]), { class: "thing", "aria-pressed": String(isChosen), title: id });
    made.style.borderLeftColor = colour(object);
    return made;
  }

  newObject() {
    this.player.pick([]);
    this.category.focus();
  }

  /** Which object the chosen mask is of: on this frame while it is a draft, of the whole video by an edit. */
  identity({ id, object, mask }, here) {
    const { work, frame } = this;
    const isKnown = work.categories.has(object);
    const others = [...work.categories.keys()].filter((other) => other !== object);
    const list = (label, ids, action) => node("label", {}, `${label} `, node("select", { change: explained((event) => action(event.target.value)) },
      node("option", { value: "" }, "…"), ...ids.map((value) => node("option", { value }, work.nameOf(value)))));
    const category = node("input", { list: "categories", value: work.categoryOf(object) ?? "", "aria-label": "category of the chosen object" });
    const rename = async () => {
      if (isKnown) await work.edit({ edit: "rename", object, category: category.value }, `rename ${work.nameOf(object)}`);
      else await work.draw(frame, () => work.fresh.set(id, category.value));
    };
    return [node("h4", {}, `Chosen: ${work.nameOf(object)}`), node("div", { class: "inline wrap" }, category, button("rename", explained(rename)),
      list("this mask is", others.filter((other) => !here.has(other)), (other) => work.draw(frame, (draft) => {
        if (!work.whole.has(frame)) draft.set(id, mask);
        draft.delete(id);
        draft.set(other, mask);
      })),
      ...(isKnown ? [list("merge with", others, (other) => work.edit({ edit: "merge", into: other, objects: [object] }, `merge ${work.nameOf(object)} into ${work.nameOf(other)}`)),
        button("another object from here on", explained(() => work.edit({ edit: "split", object, frame, new: work.newId(work.categoryOf(object)) }, `split ${work.nameOf(object)}`)))] : []))];
  }

  statementPanel() {
    const { work, player } = this;
    const write = explained((layers) => work.layers(layers));
    this.form ??= statementForm(work, player, write);
    this.form.fill();
    return [this.form.element, ...statementsPanel(work.project, work.names, player, write)];
  }

  doubtPanel() {
    const { work } = this;
    return [node("p", {}, button("next doubtful (d)", () => this.doubtful()), " ", button("looks right (y)", explained(() => this.looksRight()))),
      node("ol", { class: "facts-list" }, ...work.project.doubts.map(({ frame, object, why, doubt }) => node("li", {},
        button(`frame ${frame}`, () => this.showDoubt(frame, object)), ` ${work.nameOf(object)}: ${why} (${doubt})${work.lookedAt.has(frame) ? " ✓ looked at" : ""}`)))];
  }

  editPanel() {
    const { edits } = this.work.project;
    const undone = new Set(edits.filter(({ edit }) => edit.edit === "undo").map(({ edit }) => edit.line));
    const text = ({ edit, ...rest }) => `${edit}: ${Object.values(rest).flat().map((value) => this.work.names.get(value) ?? value).join(", ")}`;
    return [node("p", {}, button("undo the last thing done here (u)", explained(() => this.work.undo()))), node("h4", {}, `Edits of identities (${edits.length})`),
      node("ol", { class: "facts-list" }, ...edits.map(({ line, by, edit }) => node("li", {}, `${line}. ${text(edit)} (${by}) `, undone.has(line) ? node("small", {}, "undone")
        : button("undo", explained(() => this.work.accept({ edits: [{ edit: "undo", line }] }, `undo of edit ${line}`)), { "aria-label": `undo edit ${line}` }))))];
  }

  // ---------------------------------------------------------------- steps

  async acceptFrame() {
    await this.drawing.busy;
    const { frame } = this;
    const isKeyframe = this.work.project.asked.includes(frame);
    await this.work.acceptFrame(frame);
    const next = this.nextKeyframe();
    if (isKeyframe && next !== null && this.frame === frame) await this.player.go(next);
  }

  async doubtful() {
    const [first] = this.doubts();
    if (first) await this.showDoubt(first.frame, first.object);
    else say("No doubtful frame is left.");
  }

  async showDoubt(frame, object) {
    await this.player.go(frame);
    this.player.pick([object]);
  }

  async looksRight() {
    if (this.doubts().every(({ frame }) => frame !== this.frame)) return;
    this.work.lookedAt.add(this.frame);
    await this.work.save();
    this.fillNext();
    this.fillTimeline();
    await this.doubtful();
    this.fill();
  }

  /** The next or last keyframe that is asked for. */
  keyframe(by) {
    const frames = by > 0 ? this.work.project.asked : this.work.project.asked.toReversed();
    const frame = frames.find((asked) => (asked - this.frame) * by > 0);
    if (frame !== undefined) this.player.go(frame);
  }

  keys() {
    const undo = explained(() => this.work.undo());
    const enter = explained(async () => {
      if (!(await this.drawing.finish()) && (this.work.whole.has(this.frame) || this.work.drafts.has(this.frame))) await this.acceptFrame();
    });
    return { ...this.player.keys(), ...this.drawing.keys(), n: () => this.keyframe(1), p: () => this.keyframe(-1), d: () => this.doubtful(), y: explained(() => this.looksRight()),
      u: undo, o: () => this.newObject(), Enter: enter, "[": () => this.beginContact(), "]": explained(() => this.endContact()) };
  }

  /** Contacts without a mouse: from this frame ... */
  beginContact() {
    this.contactStart = this.frame;
    say(`Hands touch things from frame ${this.frame}: go to the last such frame and press ]`);
  }

  /** ... to this one. */
  async endContact() {
    if (this.contactStart > this.frame) throw new Error("The contact would end before it begins.");
    if (this.contactStart !== undefined) await this.addContact([this.contactStart, this.frame + 1]);
    this.contactStart = undefined;
  }

  addContact(range) {
    return this.work.setContacts([...this.contacts(), range].sort((a, b) => a[0] - b[0]));
  }

  // ---------------------------------------------------------------- timeline

  contacts() {
    return this.work.contacts ?? this.work.project.contacts ?? [];
  }

  fillTimeline() {
    const { work } = this;
    const { project, names } = work;
    const touch = [{ layer: "touch", text: work.contacts ? "hands touch things (draft)" : "hands touch things", objects: [], ranges: this.contacts(), editable: true, grows: true },
      ...project.offered_contacts.map(({ origin, ranges }) => ({ layer: "touch", text: `proposed by ${origin}`, objects: [], ranges, offered: true }))];
    const done = new Set(project.accepted.map(({ frame }) => frame));
    const marks = (text, frames) => (frames.length ? [{ layer: "keyframe", text, objects: [], ranges: frames.map((frame) => [frame, frame + 1]) }] : []);
    this.timeline.set([...touch, ...marks("to annotate", project.asked.filter((frame) => !done.has(frame))), ...marks("annotated", [...done]),
      ...marks("drafts", [...work.drafts.keys()]), ...marks("doubtful", this.doubts().map(({ frame }) => frame)),
      ...rowsOf(project.layers, names, { editable: true }), ...offeredRows(project, names)]);
  }

  async editRange(row, range, changed) {
    if (row.layer === "touch") await this.work.setContacts([...this.contacts().filter(([start]) => start !== range[0]), ...(changed ? [changed] : [])].sort((a, b) => a[0] - b[0]));
    else await this.work.layers(changedLayers(this.work.project.layers, row.list, row.entry, range, changed));
  }

  async takeRange(row, range) {
    if (row.layer === "touch") await this.addContact(range);
    else await this.work.layers(changedLayers(this.work.project.layers, row.list, row.entry, null, range));
  }
}
