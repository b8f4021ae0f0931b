// Annotating and reviewing a video: the next thing to do, masks on its frames, identities, doubtful frames, statements.
import { button, explained, listed, node, say, tabbed } from "./page.js";
import { boxOf, colour } from "./masks.js";
import { Annotation } from "./annotation.js";
import { Drawing } from "./draw.js";
import { Player } from "./player.js";
import { changedLayers, offeredRows, rowsOf, statementForm, statementsPanel } from "./statements.js";
import { Timeline } from "./timeline.js";

export async function annotateView(video, query) {
  const work = await Annotation.open(video);
  const player = await Player.open("project", video, (frame) => work.instances(frame));
  const view = new AnnotateView(work, player);
  return { made: view.made, keys: view.keys(), started: async () => {
    await player.start(Number(query.get("frame") ?? view.nextKeyframe() ?? 0));
    if (work.drafts.size) say(`Your draft of ${work.drafts.size} frames is here again.`);
    if (work.project.can_run) work.follow();
  } };
}

class AnnotateView {
  constructor(work, player) {
    Object.assign(this, { work, player });
    const { vocabulary, has_segmenter: canAsk } = work.project;
    this.category = node("input", { list: "categories", "aria-label": "category of what is drawn next", placeholder: "category" });
    this.next = node("div", { class: "next" });
    this.form = statementForm(work, player, explained((layers) => work.layers(layers)), (range) => this.addContact(range));
    this.side = tabbed("annotation", { Frame: () => this.framePanel(), Doubtful: () => this.doubtPanel(), Statements: () => this.statementPanel(), Edits: () => this.editPanel() });
    this.drawing = new Drawing(player, { current: async () => (await this.chosen()) ?? { id: null, mask: null },
      drawn: explained((id, mask) => this.drawn(id, mask)), prompted: canAsk ? explained((prompt) => this.prompt(prompt)) : null });
    this.timeline = new Timeline(player, [], { edit: explained((...given) => this.editRange(...given)), take: explained((row, range) => this.editRange(row, null, range)),
      make: explained((range) => this.addContact(range)) });
    work.changed = () => this.refresh();
    work.told = () => this.fillNext();
    player.on("frame", this.side.fill);
    player.on("pick", explained((ids) => this.picked(ids)));
    this.made = [node("div", { class: "heading" }, node("h2", {}, work.video), this.next),
      node("datalist", { id: "categories" }, ...vocabulary.categories.map((value) => node("option", { value }))),
      node("div", { class: "columns" }, node("div", {}, node("div", { class: "inline wrap" },
        button("new object", () => this.newObject(), { title: "what is drawn next is a new object (o)" }), node("label", {}, "of category ", this.category)), this.drawing.element, player.element),
        this.side.element), this.timeline.element];
    this.fillTimeline();
    this.fillNext();
  }

  refresh() {
    this.fillTimeline();
    this.fillNext();
    return this.player.refresh();
  }

  get frame() {
    return this.player.frame;
  }

  /** The chosen object's mask on this frame; null where none is chosen. */
  async chosen() {
    const [object] = this.player.selected;
    return [...(await this.work.marks(this.frame)).values()].find((mark) => mark.object === object) ?? null;
  }

  async drawn(id, mask) {
    const target = id ?? this.work.addObject(this.newCategory());
    await this.work.setMask(this.frame, target, mask);
    await this.pick(target);
  }

  async pick(id) {
    this.player.pick([(await this.work.marks(this.frame)).get(id).object]);
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
    if (!object?.startsWith("suggestion ")) this.side.fill();
    else await this.take((await this.work.frameOf(this.frame)).suggestions[Number(object.slice(11))]);
  }

  async take(suggestion) {
    await this.pick(await this.work.take(this.frame, suggestion));
  }

  newObject() {
    this.player.pick([]);
    this.category.focus();
  }

  nextKeyframe() {
    const { asked, accepted } = this.work.project;
    const done = new Set(accepted.filter(({ complete }) => complete).map(({ frame }) => frame));
    return asked.find((frame) => !done.has(frame)) ?? null;
  }

  doubts() {
    return this.work.project.doubts.filter(({ frame }) => !this.work.lookedAt.has(frame));
  }

  fillNext() {
    const { project, running } = this.work;
    const keyframe = this.nextKeyframe();
    const doubts = this.doubts();
    const primary = (text, action) => button(text, explained(action), { class: "primary" });
    const parts = () => {
      if (running) return [node("progress", { "aria-label": "work in the background" }), node("span", {}, running)];
      if (project.can_run) return [primary("Run what is due", () => this.work.run())];
      if (!project.contacts && !project.asked.length && !project.accepted.length) return [node("span", {}, "First: on the timeline, drag over each stretch in which hands touch things (or add it under Statements).")];
      if (keyframe !== null) return [primary(`Next keyframe: ${keyframe}`, () => this.player.go(keyframe)), node("span", {}, `missing: ${project.missing}`)];
      if (doubts.length) return [primary(`Look at frame ${doubts[0].frame}`, () => this.doubtful()), node("span", {}, doubts.length === 1 ? "1 doubtful frame is left" : `${doubts.length} doubtful frames are left`)];
      return [node("span", {}, "Ready to export: "), node("code", {}, project.export)];
    };
    this.next.replaceChildren(...parts());
  }

  async framePanel() {
    const { work, frame } = this;
    if (frame < 0) return [];
    const marks = [...(await work.marks(frame)).values()];
    const { suggestions } = await work.frameOf(frame);
    const isWhole = work.whole.has(frame);
    const isDrawn = work.drafts.has(frame);
    const chosen = await this.chosen();
    const state = isWhole ? "a keyframe: draw all that is seen" : "between keyframes: what you draw here is carried on from here";
    const accept = isWhole || isDrawn ? [button(isWhole ? `Accept keyframe ${frame}` : `Accept correction of frame ${frame}`, explained(() => this.acceptFrame()), { class: isDrawn ? "primary" : "" })] : [];
    const discard = isDrawn ? [button("discard draft", explained(() => work.setDraft(frame, undefined)))] : [];
    return [node("p", {}, `Frame ${frame}, ${state}. `, ...accept, " ", ...discard),
      ...(chosen ? this.identity(chosen, new Set(marks.map(({ id }) => id))) : []),
      ...listed("Objects", marks.map((mark) => [this.thing(mark), node("small", {}, boxOf(mark.mask) ? ` ${mark.origin} ` : ` ${mark.origin}: not seen here `),
        boxOf(mark.mask) ? button("not here", explained(() => work.remove(frame, mark.id)), { "aria-label": `remove ${work.nameOf(mark.object)}`, title: "not seen on this frame; u undoes" }) : ""])),
      ...listed("Suggestions", suggestions.map((suggestion) => {
        const name = suggestion.object ? work.names.get(suggestion.object) ?? suggestion.category : `${suggestion.category} (new)`;
        return [button(name, explained(() => this.take(suggestion)), { "aria-label": `accept suggestion ${name} of ${suggestion.origin}` }), node("small", {}, ` ${suggestion.origin}`)];
      }))];
  }

  thing({ id, object }) {
    const isChosen = this.player.selected.has(object);
    const made = button(this.work.nameOf(object), () => this.player.pick(isChosen ? [] : [object]), { class: "thing", "aria-pressed": String(isChosen), title: id });
    made.style.borderLeftColor = colour(object);
    return made;
  }

  /** Which object the chosen mask is of: on this frame while it is a draft, of the whole video by an edit. */
  identity({ id, object, mask }, here) {
    const { work, frame } = this;
    const isKnown = work.categories.has(object);
    const others = [...work.categories.keys()].filter((other) => other !== object);
    const list = (label, ids, action) => node("label", {}, `${label} `, node("select", { change: explained((event) => action(event.target.value)) },
      node("option", { value: "" }, "…"), ...ids.map((value) => node("option", { value }, work.nameOf(value)))));
    const category = node("input", { list: "categories", value: work.categoryOf(object) ?? "", "aria-label": "category of the chosen object" });
    const rename = () => work.edit({ edit: "rename", object, category: category.value }, `rename ${work.nameOf(object)}`);
    return [node("h4", {}, `Chosen: ${work.nameOf(object)}`), node("div", { class: "inline wrap" },
      list("this mask is", others.filter((other) => !here.has(other)), (other) => work.draw(frame, (draft) => {
        if (!work.whole.has(frame)) draft.set(id, mask);
        draft.delete(id);
        draft.set(other, mask);
      })),
      ...(isKnown ? [category, button("rename", explained(rename)), list("merge with", others, (other) => work.edit({ edit: "merge", into: other, objects: [object] }, `merge ${work.nameOf(object)} into ${work.nameOf(other)}`)),
        button("another object from here on", explained(() => work.edit({ edit: "split", object, frame, new: work.newId(work.categoryOf(object)) }, `split ${work.nameOf(object)}`)))] : []))];
  }

  statementPanel() {
    const { work, player } = this;
    this.form.fill();
    return [this.form.element, ...statementsPanel(work.project, work.names, player, explained((layers) => work.layers(layers)))];
  }

  doubtPanel() {
    const { work } = this;
    return [node("p", {}, button("next doubtful (d)", () => this.doubtful()), " ", button("looks right (y)", explained(() => this.looksRight()))),
      ...listed("Doubtful frames", work.project.doubts.map(({ frame, object, why, doubt }) => [button(`frame ${frame}`, () => this.showDoubt(frame, object)),
        ` ${work.nameOf(object)}: ${why} (doubt ${doubt.toFixed(2)})${work.lookedAt.has(frame) ? " ✓ looked at" : ""}`]))];
  }

  editPanel() {
    const { work } = this;
    const { edits } = work.project;
    const undone = new Set(edits.filter(({ edit }) => edit.edit === "undo").map(({ edit }) => edit.line));
    const text = ({ edit, ...rest }) => `${edit}: ${Object.values(rest).flat().map((value) => work.names.get(value) ?? value).join(", ")}`;
    return [node("p", {}, button("undo the last thing done here (u)", explained(() => work.undo()))),
      ...listed("Edits of identities", edits.map(({ by, edit }, at) => [`${at + 1}. ${text(edit)} (${by}) `, undone.has(at + 1) ? node("small", {}, "undone")
        : button("undo", explained(() => work.accept({ edits: [{ edit: "undo", line: at + 1 }] }, `undo of edit ${at + 1}`)), { "aria-label": `undo edit ${at + 1}` })]))];
  }

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
    await this.doubtful();
  }

  keys() {
    const enter = explained(async () => {
      if (!(await this.drawing.finish()) && (this.work.whole.has(this.frame) || this.work.drafts.has(this.frame))) await this.acceptFrame();
    });
    return { ...this.player.keys(), ...this.drawing.keys(), d: () => this.doubtful(), y: explained(() => this.looksRight()),
      u: explained(() => this.work.undo()), o: () => this.newObject(), Enter: enter };
  }

  addContact(range) {
    return this.work.contacts([...(this.work.project.contacts ?? []), range]);
  }

  fillTimeline() {
    const { project, names, drafts } = this.work;
    const touch = [{ layer: "touch", text: "hands touch things", objects: [], ranges: project.contacts ?? [], editable: true, grows: true },
      ...project.offered_contacts.map(({ origin, ranges }) => ({ layer: "touch", text: `proposed by ${origin}`, objects: [], ranges, offered: true }))];
    const done = new Set(project.accepted.map(({ frame }) => frame));
    const marks = (text, frames) => (frames.length ? [{ layer: "keyframe", text, objects: [], ranges: frames.map((frame) => [frame, frame + 1]) }] : []);
    this.timeline.set([...touch, ...marks("to annotate", project.asked.filter((frame) => !done.has(frame))), ...marks("annotated", [...done]),
      ...marks("drafts", [...drafts.keys()]), ...marks("doubtful", this.doubts().map(({ frame }) => frame)),
      ...rowsOf(project.layers, names, { editable: true }), ...offeredRows(project, names)]);
  }

  /** Put `changed` in the place of a range; null for either where there is none. */
  async editRange(row, range, changed) {
    const added = changed ? [changed] : [];
    if (row.layer === "touch") await this.work.contacts([...(this.work.project.contacts ?? []).filter(([start]) => start !== range?.[0]), ...added]);
    else await this.work.layers(changedLayers(this.work.project.layers, row.list, row.entry, range, changed));
  }
}
