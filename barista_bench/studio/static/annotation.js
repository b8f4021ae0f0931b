// One video of a project: the decisions on the server, drafts that are not accepted yet (kept there, too), and undo.
import { DraftKeeper } from "./draft_keeper.js";
import { Steps } from "./history.js";
import { emptyMask } from "./run_lengths.js";
import { ask, caching, RefusedError, send, waitUntilDone } from "./server.js";
import { reasonOf, say } from "./status.js";

/** @import { Decisions, Draft, Edit, FrameDraft, FrameMask, FrameRange, Layers } from "./shapes.d.ts" */
/** @import { Mask, Project, StandingMask, Suggestion } from "./shapes.d.ts" */
/** @import { Conflicting } from "./conflict.js" */

/** Another person's decision stays, by this person's choice. */
class TheirsTakenError extends Error {}

export class Annotation {
  /** @param {string} video */
  static async open(video) {
    const annotation = new Annotation(video, await ask("/api/project", { video }));
    annotation.resume(annotation.project.draft);
    return annotation;
  }

  /**
   * @param {string} video
   * @param {Project} project
   */
  constructor(video, project) {
    this.video = video;
    this.project = project;
    /** Drawn frames that are not accepted yet. @type {Map<number, FrameDraft>} */
    this.drafts = new Map();
    /** Categories of objects that are new in drafts. @type {Map<string, string>} */
    this.fresh = new Map();
    /** Doubtful frames that were looked at. @type {Set<number>} */
    this.lookedAt = new Set();
    this.steps = new Steps();
    this.keeper = new DraftKeeper(project.draft?.revision ?? 0);
    this.keeper.conflicted = () => this.draftConflicted();
    /** The work in the background, in words. */
    this.running = "";
    this.isFollowing = false;
    /** Shows two that decided differently, and promises whose is taken. @type {Conflicting} */
    this.conflicting = async () => null;
    /** Called when something else is to be shown. */
    this.changed = () => {};
    /** Called when the background is further on. */
    this.onChange = () => {};
    this.frameOf = caching((frame) => ask("/api/project/frame", { video, frame }));
    this.names = new Map(project.objects.map(({ id, name }) => [id, name]));
    this.categories = new Map(project.objects.map(({ id, category }) => [id, category]));
    this.whole = wholeFrames(project);
  }

  /** The current decisions. After another person's decision, no step of this page can be undone. */
  async reload({ decidedHere = false } = {}) {
    const { version } = this.project;
    this.project = await ask("/api/project", { video: this.video });
    if (!decidedHere && version !== this.project.version) this.steps.forget();
    this.names = new Map(this.project.objects.map(({ id, name }) => [id, name]));
    this.categories = new Map(this.project.objects.map(({ id, category }) => [id, category]));
    this.whole = wholeFrames(this.project);
    this.frameOf.forget();
  }

  /** A mask of nothing. */
  empty() {
    return emptyMask([this.project.height, this.project.width]);
  }

  /** @param {string} id */
  nameOf(id) {
    return this.names.get(id) ?? this.fresh.get(id) ?? id;
  }

  /** @param {string} id */
  categoryOf(id) {
    return this.categories.get(id) ?? this.fresh.get(id);
  }

  /**
   * Masks of a frame, by the id under which they are accepted: the draft's, people's, the tracks'.
   * @param {number} frame
   * @param {FrameDraft | null} [draft]
   */
  async marks(frame, draft = this.drafts.get(frame)) {
    const { accepted, tracks } = await this.frameOf(frame);
    /** @type {Map<string, StandingMask>} */
    const marks = new Map();
    /**
     * @param {StandingMask["origin"]} origin
     * @param {FrameMask[]} masks
     */
    const add = (origin, masks) => {
      for (const { object, accepted_as: id, mask } of masks) marks.set(id, { id, object, mask, origin });
    };
    if (!accepted || !this.whole.has(frame)) add("propagated", tracks);
    add("accepted", accepted ?? []);
    if (draft) {
      const objects = new Map([...marks].map(([id, { object }]) => [id, object]));
      if (this.whole.has(frame)) marks.clear();
      for (const [id, mask] of draft) marks.set(id, { id, object: objects.get(id) ?? id, mask, origin: "draft" });
    }
    return marks;
  }

  /** An id that nothing has: the category and a number. @param {string} category */
  newId(category) {
    const stem = category.replaceAll(" ", "_");
    let number = 1;
    while (this.categoryOf(`${stem}-${number}`)) number += 1;
    return `${stem}-${number}`;
  }

  /** @param {string} category */
  addObject(category) {
    const id = this.newId(category);
    this.fresh.set(id, category);
    return id;
  }

  /** @param {number} frame */
  discard(frame) {
    const before = this.drafts.get(frame);
    return this.steps.take({
      text: `discarding frame ${frame}`,
      forth: () => this.setDraft(frame, undefined),
      back: () => this.setDraft(frame, before),
    });
  }

  /**
   * Changes the draft of a frame: `edit` gets its masks by id. Where the frame is to be annotated whole, all of them.
   * @param {number} frame
   * @param {(draft: FrameDraft) => unknown} edit
   */
  async draw(frame, edit) {
    const before = this.drafts.get(frame);
    const marks = this.whole.has(frame) ? [...(await this.marks(frame)).values()] : [];
    const draft = new Map(before ?? marks.map(({ id, mask }) => [id, mask]));
    edit(draft);
    await this.steps.take({
      text: `drawing on frame ${frame}`,
      forth: () => this.setDraft(frame, draft),
      back: () => this.setDraft(frame, before),
    });
  }

  /**
   * @param {number} frame
   * @param {FrameDraft | undefined} draft
   */
  setDraft(frame, draft) {
    if (draft) this.drafts.set(frame, draft);
    else this.drafts.delete(frame);
    this.save();
  }

  /**
   * @param {number} frame
   * @param {string} id
   * @param {Mask} mask
   */
  setMask(frame, id, mask) {
    return this.draw(frame, (draft) => draft.set(id, mask));
  }

  /**
   * Of a frame that is annotated whole the mask goes; elsewhere it is empty: the object is not seen there.
   * @param {number} frame
   * @param {string} id
   */
  remove(frame, id) {
    return this.draw(frame, (draft) => (this.whole.has(frame) ? draft.delete(id) : draft.set(id, this.empty())));
  }

  /**
   * @param {number} frame
   * @param {Suggestion} suggestion
   */
  async take(frame, { object, category, mask }) {
    if (object && !this.categoryOf(object)) this.fresh.set(object, category);
    const id = object ?? this.addObject(category);
    await this.setMask(frame, id, mask);
    return id;
  }

  /** Decisions on frames, with the objects that are new in them. @param {Map<number, FrameDraft>} drafts */
  decisionsOf(drafts) {
    const used = new Set([...drafts.values()].flatMap((draft) => [...draft.keys()]));
    const isNew = (/** @type {string} */ id) => used.has(id) && !this.categories.has(id);
    const keyframes = [...drafts].map(([frame, draft]) => ({
      frame,
      complete: this.whole.has(frame),
      masks: Object.fromEntries(draft),
    }));
    return { objects: Object.fromEntries([...this.fresh].filter(([id]) => isNew(id))), keyframes };
  }

  /** Shows the draft, and keeps it on the server in the background. */
  save() {
    const decisions = { video: this.video, ...this.decisionsOf(this.drafts) };
    this.keeper.keep({ decisions, looked_at: [...this.lookedAt] });
    this.changed();
  }

  /** Another page of the same person wrote the draft: either this one replaces it, or it replaces this one. */
  async draftConflicted() {
    const { draft } = await ask("/api/project", { video: this.video });
    const theirs = draftsOf(draft);
    const frames = [...new Set([...this.drafts.keys(), ...theirs.keys()])];
    const differences = frames
      .map((frame) => ({ frame, mine: this.drafts.get(frame), theirs: theirs.get(frame) }))
      .filter(({ mine, theirs: other }) => textOf(mine) !== textOf(other));
    const names = { mine: "this page's", theirs: "the other page's" };
    const side = differences.length
      ? await this.conflicting("You changed the draft of this video on another page.", { frames: differences }, names)
      : "mine";
    if (side === "theirs") {
      this.drafts.clear();
      this.steps.forget();
      this.resume(draft);
      this.keeper.drop();
      this.changed();
    } else if (side === "mine") {
      this.keeper.revision = draft?.revision ?? 0;
      this.save();
    }
  }

  /** @param {Draft | null} draft */
  resume(draft) {
    if (!draft) return;
    const { objects } = draft.decisions;
    for (const [frame, masks] of draftsOf(draft)) this.drafts.set(frame, masks);
    for (const [id, category] of Object.entries(objects)) this.fresh.set(id, category);
    this.lookedAt = new Set(draft.looked_at);
    this.keeper.revision = draft.revision;
  }

  /**
   * Hands in decisions. After another person's decision, both are shown, and this person chooses one.
   * @param {Decisions} decisions
   * @param {string} text
   */
  async handIn(decisions, text) {
    const before = this.project;
    try {
      await send("/api/project/accept", { video: this.video, seen: before.version, ...decisions });
    } catch (error) {
      await this.reload();
      this.changed();
      if (!(error instanceof RefusedError && error.status === 409)) throw error;
      const names = { mine: "yours", theirs: "what stands now" };
      const side = await this.conflicting("Someone else has decided in the meantime.", { decisions, before }, names);
      if (side === "theirs") throw new TheirsTakenError("What stood is kept.");
      if (!side) throw error;
      await this.handIn(decisions, text);
      return;
    }
    this.running = "starting";
    this.onChange();
    await this.reload({ decidedHere: true });
    this.changed();
    this.follow();
  }

  /**
   * @param {Decisions} decisions
   * @param {string} text
   * @param {Decisions} back decisions that undo them
   */
  accept(decisions, text, back) {
    return this.decide({ text, forth: () => this.handIn(decisions, text), back: () => this.handIn(back, text) });
  }

  /** A step that hands in decisions, and says so. @param {import("./history.js").Step} step */
  async decide(step) {
    say(`accepting ${step.text} ...`);
    await this.steps.take(step);
    say(`accepted: ${step.text}`);
  }

  /** @param {number} frame */
  async acceptFrame(frame) {
    const { accepted } = await this.frameOf(frame);
    const stood = new Map([...(await this.marks(frame, null))].map(([id, { mask }]) => [id, mask]));
    const drawn = this.drafts.get(frame);
    const draft = drawn ?? stood;
    const decisions = this.decisionsOf(new Map([[frame, draft]]));
    const { keyframes } = this.decisionsOf(new Map([[frame, this.decisionBefore(frame, draft, stood)]]));
    const undo = accepted ? { keyframes } : { withdrawn: [frame] };
    const text = `frame ${frame}`;
    const forth = async () => {
      this.drafts.delete(frame);
      try {
        await this.handIn(decisions, text);
      } catch (error) {
        if (drawn && !(error instanceof TheirsTakenError)) this.drafts.set(frame, drawn);
        this.save();
        throw error;
      }
      this.lookedAt.add(frame);
      this.save();
    };
    const back = async () => {
      await this.handIn(undo, text);
      if (drawn) this.setDraft(frame, drawn);
    };
    await this.decide({ text, forth, back });
  }

  /**
   * The decision that takes a draft back after it is accepted; new masks between keyframes become empty.
   * @param {number} frame
   * @param {FrameDraft} draft
   * @param {FrameDraft} stood
   * @returns {FrameDraft}
   */
  decisionBefore(frame, draft, stood) {
    if (this.whole.has(frame)) return stood;
    return new Map([...draft.keys()].map((id) => [id, stood.get(id) ?? this.empty()]));
  }

  /** @param {Layers} layers */
  layers(layers) {
    const { activities, process_steps, attributes, relations } = this.project.layers;
    return this.accept({ layers }, "statements", { layers: { activities, process_steps, attributes, relations } });
  }

  /**
   * An edit of identities; it is undone by the line that it becomes.
   * @param {Edit} edit
   * @param {string} text
   */
  edit(edit, text) {
    let line = 0;
    const forth = () => {
      line = this.project.edits.length + 1;
      return this.handIn({ edits: [edit] }, text);
    };
    return this.decide({ text, forth, back: () => this.handIn({ edits: [{ edit: "undo", line }] }, text) });
  }

  /** Where hands touch things. @param {FrameRange[]} ranges */
  contacts(ranges) {
    const before = this.project.contacts;
    const contacts = ranges.toSorted((a, b) => a[0] - b[0]);
    return this.accept({ contacts }, "contacts", { contacts: before ?? [] });
  }

  async undo() {
    say(`undone: ${await this.steps.undo()}`);
  }

  async redo() {
    say(`redone: ${await this.steps.redo()}`);
  }

  async run() {
    await send("/api/project/run", { video: this.video });
    this.follow();
  }

  /** Waits for the stages behind, telling how far they are. */
  async follow() {
    if (this.isFollowing) return;
    this.isFollowing = true;
    try {
      await waitUntilDone(
        () => ask("/api/project/progress", { video: this.video }),
        ({ state, step }) => {
          this.running = state === "waiting" ? "waiting for its turn" : `making ${step || "ready"}`;
          this.onChange();
        },
      );
    } catch (error) {
      say(reasonOf(error));
    }
    this.isFollowing = false;
    this.running = "";
    await this.reload();
    this.changed();
  }
}

/** Frames that are annotated whole: all that is seen is drawn. @param {Project} project */
function wholeFrames({ asked, accepted }) {
  return new Set([...asked, ...accepted.filter(({ complete }) => complete).map(({ frame }) => frame)]);
}

/** The masks of a stored draft. @param {Draft | null} draft @returns {Map<number, FrameDraft>} */
const draftsOf = (draft) =>
  new Map((draft?.decisions.keyframes ?? []).map(({ frame, masks }) => [frame, new Map(Object.entries(masks))]));

/** To compare drafts. @param {FrameDraft | undefined} draft */
const textOf = (draft) => draft && JSON.stringify([...draft].map(([id, { counts }]) => [id, counts]).sort());
