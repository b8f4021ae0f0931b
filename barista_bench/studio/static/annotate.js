// Annotating and reviewing a video: masks on its frames, identities, doubtful frames, statements, and the next step.
import { Annotation } from "./annotation.js";
import { CategoryField } from "./category_field.js";
import { conflictDialog } from "./conflict.js";
import { Drawing } from "./draw.js";
import { editPanel } from "./edit_panel.js";
import { button, countedList, node } from "./elements.js";
import { acceptFrame, framePanel } from "./frame_panel.js";
import { copyLast, ghostsOf, instancesOf, takeAll } from "./frame_work.js";
import { missingAnnotations } from "./missing.js";
import { nextStep } from "./next_step.js";
import { Player } from "./player.js";
import { statementForm } from "./statement_form.js";
import { changedLayers, offeredRows, proposedStatements, rowsOf } from "./statements.js";
import { explained, say } from "./status.js";
import { tabPanels } from "./tab_panels.js";
import { Timeline } from "./timeline.js";
/** @import { Child, Keys, View } from "./page.d.ts" */
/** @import { FrameRange, LayerName, Mask, Project, Row, StandingMask, Suggestion } from "./shapes.d.ts" */

/**
 * @param {string} video
 * @param {URLSearchParams} query
 * @returns {Promise<View>}
 */
export async function annotateView(video, query) {
  const opening = Annotation.open(video);
  const overlay = async (/** @type {number} */ frame) => instancesOf(await opening, frame);
  const named = query.has("frame") ? Number(query.get("frame")) : null;
  const [work, player] = await Promise.all([opening, Player.open("project", video, overlay, named)]);
  const first = named ?? nextKeyframe(work.project) ?? 0;
  const view = new AnnotateView(work, player);
  const onShown = async () => {
    await player.start(first);
    if (work.project.draft_problem) say(work.project.draft_problem);
    else if (work.drafts.size) say(`Your draft of ${work.drafts.size} frames was restored.`);
    if (work.project.can_run) work.follow();
  };
  return { elements: view.elements(), keys: view.keys(), onShown };
}

export class AnnotateView {
  /**
   * @param {Annotation} work
   * @param {Player} player
   */
  constructor(work, player) {
    this.work = work;
    this.player = player;
    this.category = new CategoryField(work.project.vocabulary.categories, () => this.drawing.choose("box"));
    /** Outlines of the annotated frames on both sides are shown. */
    this.showsGhosts = false;
    this.kept = node("output", { class: "kept" });
    this.next = node("div", { class: "next" });
    this.writeLayers = explained(work.layers.bind(work));
    this.form = statementForm(work, player, this.writeLayers, (range) => this.addContact(range));
    this.side = tabPanels("annotation", {
      Frame: () => framePanel(this),
      Doubtful: () => this.doubtPanel(),
      Statements: () => this.statementPanel(),
      Edits: () => editPanel(work),
      Missing: () => missingAnnotations(player),
    });
    this.drawing = new Drawing(player, {
      video: work.video,
      hasSegmenter: work.project.has_segmenter,
      current: async () => (await this.chosen()) ?? { id: null, mask: null },
      takeMask: this.takeMask.bind(this),
    });
    this.timeline = new Timeline(player, [], {
      edit: explained(this.editRange.bind(this)),
      take: explained((row, range) => this.editRange(row, null, range)),
      make: explained(this.addContact.bind(this)),
    });
    work.changed = () => this.refresh();
    work.onChange = () => this.fillNext();
    work.conflicting = conflictDialog(work, player);
    work.keeper.onState = () => this.fillKept();
    player.onRest(this.side.fill);
    player.onRest(explained(() => this.fillGhosts()));
    player.onPick(explained(this.picked.bind(this)));
    this.fillTimeline();
    this.fillNext();
    this.fillKept();
  }

  /** @returns {Child[]} */
  elements() {
    const { work, player } = this;
    const options = work.project.vocabulary.categories.map((value) => node("option", { value }));
    const hint = { title: "draw a new object next (o)", "data-icon": "plus" };
    const newObject = node(
      "div",
      { class: "inline wrap" },
      button("new object", () => this.newObject(), hint),
      node("label", {}, "of category ", this.category.input),
      this.drawing.hint,
      this.kept,
    );
    const picture = node("div", {}, newObject, this.category.offers, this.drawing.element, player.element);
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

  /** The chosen object's mask on this frame; null without a chosen object. @returns {Promise<StandingMask | null>} */
  async chosen() {
    const [object] = this.player.selected;
    return [...(await this.work.marks(this.frame)).values()].find((mark) => mark.object === object) ?? null;
  }

  /**
   * @param {string | null} id
   * @param {Mask} mask
   */
  async takeMask(id, mask) {
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
    try {
      return this.category.read();
    } catch (error) {
      this.player.refresh(); // shows the frame again without the refused stroke
      throw error;
    }
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
    return nextKeyframe(this.work.project);
  }

  /** Doubtful frames that no person has looked at. */
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
    const next = button("next doubtful (d)", () => this.doubtful(), { "data-icon": "arrow-right" });
    const right = button("looks right (y)", () => this.looksRight(), { "data-icon": "check" });
    return [node("p", {}, next, " ", right), ...countedList("Doubtful frames", items, "No frame is in doubt.")];
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
    this.work.save();
    await this.doubtful();
  }

  /** How far the draft is kept. */
  fillKept() {
    const { state, problem } = this.work.keeper;
    const words = { saved: "saved", saving: "saving …", failed: `not saved, trying again: ${problem}` };
    this.kept.textContent = words[state];
    this.kept.dataset.state = state;
    this.kept.dataset.icon = { saved: "cloud-check", saving: "cloud-upload", failed: "cloud-off" }[state];
  }

  async fillGhosts() {
    const { frame } = this;
    const ghosts = this.showsGhosts && frame >= 0 ? await ghostsOf(this.work, frame) : [];
    if (frame !== this.frame) return;
    this.player.canvas.ghosts = ghosts;
    this.player.canvas.redraw();
  }

  /** @param {number} number of an object on the frame, from 1 */
  async pickNumber(number) {
    const mark = [...(await this.work.marks(this.frame)).values()][number - 1];
    if (mark) this.player.pick([mark.object]);
  }

  async enter() {
    const canAccept = () => this.work.whole.has(this.frame) || this.work.drafts.has(this.frame);
    if (!(await this.drawing.finish()) && canAccept()) await acceptFrame(this);
  }

  async notHere() {
    const chosen = await this.chosen();
    if (!chosen) throw new Error("Choose an object first.");
    await this.work.remove(this.frame, chosen.id);
  }

  /** @returns {Keys} */
  keys() {
    const { work, player, side } = this;
    const undo = () => {
      say("undoing ...");
      return work.undo();
    };
    const redo = () => work.redo();
    /** @type {Keys} */
    const numbers = {};
    for (let number = 1; number <= 9; number += 1) {
      numbers[number] = ["choose an object of this frame, as listed", () => this.pickNumber(number)];
    }
    const ghosts = () => {
      this.showsGhosts = !this.showsGhosts;
      return this.fillGhosts();
    };
    return {
      n: ["next step", () => this.next.querySelector("button")?.click()],
      o: ["new object: name its category, Enter, and draw its box", () => this.newObject()],
      Enter: ["close the polygon, or accept the frame", () => this.enter()],
      a: ["accept all suggestions on this frame", () => takeAll(work, this.frame)],
      p: [
        "copy masks from the previous annotated frame: of the chosen object, or all",
        async () => copyLast(work, this.frame, (await this.chosen())?.id ?? null),
      ],
      k: ["show outlines from the previous and next annotated frame", ghosts],
      x: ["the chosen object is not visible here", () => this.notHere()],
      u: ["undo", undo],
      U: ["redo", redo],
      "ctrl+z": ["undo", undo],
      "ctrl+Z": ["redo", redo],
      d: ["next doubtful frame", () => this.doubtful()],
      y: ["this frame looks right", () => this.looksRight()],
      ...player.keys(),
      ...this.drawing.keys(),
      ...numbers,
      F: ["panel: the frame", () => side.open("Frame")],
      D: ["panel: doubtful frames", () => side.open("Doubtful")],
      S: ["panel: statements", () => side.open("Statements")],
      E: ["panel: edits", () => side.open("Edits")],
    };
  }

  /** @param {FrameRange} range with touches of hands */
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

/** The first requested frame without annotation; null without one. @param {Project} project */
function nextKeyframe({ asked, accepted }) {
  const done = new Set(accepted.filter(({ complete }) => complete).map(({ frame }) => frame));
  return asked.find((frame) => !done.has(frame)) ?? null;
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
