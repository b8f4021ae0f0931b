// Annotating and reviewing a video: masks on its frames, identities, doubtful frames, statements, and what comes next.
import { Annotation } from "./annotation.js";
import { Drawing } from "./draw.js";
import { editPanel } from "./edit_panel.js";
import { button, listed, node } from "./elements.js";
import { framePanel } from "./frame_panel.js";
import { nextStep } from "./next_step.js";
import { Player } from "./player.js";
import { statementForm } from "./statement_form.js";
import { changedLayers, offeredRows, proposedStatements, rowsOf } from "./statements.js";
import { explained, say } from "./status.js";
import { tabbed } from "./tabbed.js";
import { Timeline } from "./timeline.js";
/** @import { Child, Keys, View } from "./page.d.ts" */
/** @import { FrameRange, LayerName, Mask, MaskPrompt, Row, StandingMask, Suggestion } from "./shapes.d.ts" */

/**
 * @param {string} video
 * @param {URLSearchParams} query
 * @returns {Promise<View>}
 */
export async function annotateView(video, query) {
  const work = await Annotation.open(video);
  const player = await Player.open("project", video, (frame) => work.instances(frame));
  const view = new AnnotateView(work, player);
  const started = async () => {
    await player.start(Number(query.get("frame") ?? view.nextKeyframe() ?? 0));
    if (work.project.draft_problem) say(work.project.draft_problem);
    else if (work.drafts.size) say(`Your draft of ${work.drafts.size} frames is here again.`);
    if (work.project.can_run) work.follow();
  };
  return { made: view.made(), keys: view.keys(), started };
}

export class AnnotateView {
  /**
   * @param {Annotation} work
   * @param {Player} player
   */
  constructor(work, player) {
    this.work = work;
    this.player = player;
    /** Of what is drawn next. */
    this.category = node("input", {
      list: "categories",
      "aria-label": "category of what is drawn next",
      placeholder: "category",
    });
    this.next = node("div", { class: "next" });
    this.writeLayers = explained(work.layers.bind(work));
    this.form = statementForm(work, player, this.writeLayers, (range) => this.addContact(range));
    this.side = tabbed("annotation", {
      Frame: () => framePanel(this),
      Doubtful: () => this.doubtPanel(),
      Statements: () => this.statementPanel(),
      Edits: () => editPanel(work),
    });
    this.drawing = new Drawing(player, {
      current: async () => (await this.chosen()) ?? { id: null, mask: null },
      drawn: explained(this.drawn.bind(this)),
      prompted: work.project.has_segmenter ? explained(this.prompt.bind(this)) : null,
    });
    this.timeline = new Timeline(player, [], {
      edit: explained(this.editRange.bind(this)),
      take: explained((row, range) => this.editRange(row, null, range)),
      make: explained(this.addContact.bind(this)),
    });
    work.changed = () => this.refresh();
    work.told = () => this.fillNext();
    player.onFrame(this.side.fill);
    player.onPick(explained(this.picked.bind(this)));
    this.fillTimeline();
    this.fillNext();
  }

  /** @returns {Child[]} */
  made() {
    const { work, player } = this;
    const options = work.project.vocabulary.categories.map((value) => node("option", { value }));
    const hint = { title: "what is drawn next is a new object (o)" };
    const newObject = node(
      "div",
      { class: "inline wrap" },
      button("new object", () => this.newObject(), hint),
      node("label", {}, "of category ", this.category),
    );
    const picture = node("div", {}, newObject, this.drawing.element, player.element);
    return [
      node("div", { class: "heading" }, node("h2", {}, work.video), this.next),
      node("datalist", { id: "categories" }, ...options),
      node("div", { class: "columns" }, picture, this.side.element),
      this.timeline.element,
    ];
  }

  refresh() {
    this.fillTimeline();
    this.fillNext();
    return this.player.refresh();
  }

  get frame() {
    return this.player.frame;
  }

  /** The chosen object's mask on this frame; null where none is chosen. @returns {Promise<StandingMask | null>} */
  async chosen() {
    const [object] = this.player.selected;
    return [...(await this.work.marks(this.frame)).values()].find((mark) => mark.object === object) ?? null;
  }

  /**
   * @param {string | null} id
   * @param {Mask} mask
   */
  async drawn(id, mask) {
    const target = id ?? this.work.addObject(this.newCategory());
    await this.work.setMask(this.frame, target, mask);
    await this.pick(target);
  }

  /** @param {string} id under which a mask is accepted */
  async pick(id) {
    const mark = (await this.work.marks(this.frame)).get(id);
    if (mark) this.player.pick([mark.object]);
  }

  newCategory() {
    const category = this.category.value.trim();
    if (this.work.project.vocabulary.categories.includes(category)) return category;
    this.category.focus();
    this.player.refresh();
    throw new Error("Name the category first, one of the vocabulary, or choose an object.");
  }

  /**
   * Asks the segmenter: its answer is a suggestion, of the chosen object or of a new one.
   * @param {MaskPrompt} prompt
   */
  async prompt(prompt) {
    const { frame } = this;
    const object = (await this.chosen())?.id ?? null;
    const category = (object && this.work.categoryOf(object)) ?? this.newCategory();
    const { prompts } = await this.work.frameOf(frame);
    await this.work.accept({ prompts: [...prompts, { frame, category, object, ...prompt }] }, "prompt");
  }

  /** @param {string[]} objects */
  async picked([object]) {
    if (!object?.startsWith("suggestion ")) this.side.fill();
    else await this.take((await this.work.frameOf(this.frame)).suggestions[Number(object.slice(11))]);
  }

  /** @param {Suggestion} suggestion */
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

  /** Those that nobody has looked at. */
  doubts() {
    return this.work.project.doubts.filter(({ frame }) => !this.work.lookedAt.has(frame));
  }

  fillNext() {
    this.next.replaceChildren(...nextStep(this));
  }

  statementPanel() {
    const { work, player, writeLayers } = this;
    this.form.fill();
    return [this.form.element, ...proposedStatements(work.project, work.names, player, writeLayers)];
  }

  doubtPanel() {
    const { work } = this;
    const items = work.project.doubts.map(({ frame, object, why, doubt }) => {
      const seen = work.lookedAt.has(frame) ? " ✓ looked at" : "";
      return [
        button(`frame ${frame}`, () => this.showDoubt(frame, object)),
        ` ${work.nameOf(object)}: ${why} (doubt ${doubt.toFixed(2)})${seen}`,
      ];
    });
    const next = button("next doubtful (d)", () => this.doubtful());
    const right = button(
      "looks right (y)",
      explained(() => this.looksRight()),
    );
    return [node("p", {}, next, " ", right), ...listed("Doubtful frames", items)];
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

  /**
   * @param {number} frame
   * @param {string} object
   */
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

  /** @returns {Keys} */
  keys() {
    const enter = async () => {
      const canAccept = () => this.work.whole.has(this.frame) || this.work.drafts.has(this.frame);
      if (!(await this.drawing.finish()) && canAccept()) await this.acceptFrame();
    };
    return {
      ...this.player.keys(),
      ...this.drawing.keys(),
      d: () => this.doubtful(),
      y: explained(() => this.looksRight()),
      u: explained(() => this.work.undo()),
      o: () => this.newObject(),
      Enter: explained(enter),
    };
  }

  /** @param {FrameRange} range in which hands touch things */
  addContact(range) {
    return this.work.contacts([...(this.work.project.contacts ?? []), range]);
  }

  fillTimeline() {
    const { project, names, drafts } = this.work;
    const { contacts, offered_contacts: offered } = project;
    /** @type {{ layer: LayerName, objects: string[] }} */
    const touch = { layer: "touch", objects: [] };
    const touches = { ...touch, text: "hands touch things", ranges: contacts ?? [], editable: true, grows: true };
    const proposed = offered.map(({ origin, ranges }) => ({
      ...touch,
      text: `proposed by ${origin}`,
      ranges,
      offered: true,
    }));
    const done = new Set(project.accepted.map(({ frame }) => frame));
    const due = project.asked.filter((frame) => !done.has(frame));
    const doubtful = this.doubts().map(({ frame }) => frame);
    this.timeline.set([
      touches,
      ...proposed,
      ...keyframeRow("to annotate", due),
      ...keyframeRow("annotated", [...done]),
      ...keyframeRow("drafts", [...drafts.keys()]),
      ...keyframeRow("doubtful", doubtful),
      ...rowsOf(project.layers, names, { editable: true }),
      ...offeredRows(project, names),
    ]);
  }

  /**
   * Puts `changed` in the place of a range; null for either where there is none.
   * @param {Row} row
   * @param {FrameRange | null} range
   * @param {FrameRange | null} changed
   */
  async editRange({ statement }, range, changed) {
    if (statement) {
      await this.work.layers(changedLayers(this.work.project.layers, statement, range, changed));
      return;
    }
    const others = (this.work.project.contacts ?? []).filter(([start]) => start !== range?.[0]);
    await this.work.contacts([...others, ...(changed ? [changed] : [])]);
  }
}

/**
 * @param {string} text
 * @param {number[]} frames
 * @returns {Row[]} none without a frame
 */
function keyframeRow(text, frames) {
  if (!frames.length) return [];
  return [{ layer: "keyframe", text, objects: [], ranges: frames.map((frame) => [frame, frame + 1]) }];
}
