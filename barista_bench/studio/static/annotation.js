// One video of a project: what stands on the server, what is drawn and not accepted (a draft, kept there), and undo.
import { boxOf, emptyMask } from "./run_lengths.js";
import { ask, finished, remembering, send } from "./server.js";
import { reasonOf, say } from "./status.js";
/** @import { Decisions, Draft, Edit, FrameDraft, FrameMask, FrameRange, Instance, Layers } from "./shapes.d.ts" */
/** @import { Mask, Project, StandingMask, Suggestion } from "./shapes.d.ts" */

export class Annotation {
  /** @param {string} video */
  static async open(video) {
    const made = new Annotation(video, await ask("/api/project", { video }));
    made.resume(made.project.draft);
    return made;
  }

  /**
   * @param {string} video
   * @param {Project} project
   */
  constructor(video, project) {
    this.video = video;
    this.project = project;
    /** What is drawn and not accepted, by frame. @type {Map<number, FrameDraft>} */
    this.drafts = new Map();
    /** Categories of objects that are new in drafts. @type {Map<string, string>} */
    this.fresh = new Map();
    /** Doubtful frames that were looked at. @type {Set<number>} */
    this.lookedAt = new Set();
    /** What was done here, and what takes it back. @type {{ text: string, back: () => unknown }[]} */
    this.history = [];
    this.revision = 0;
    this.page = String(Math.random());
    /** What is made in the background, in words. */
    this.running = "";
    this.isFollowing = false;
    /** @type {Promise<void>} */
    this.saving = Promise.resolve();
    /** Called when something else is to be shown. */
    this.changed = () => {};
    /** Called when the background is further on. */
    this.told = () => {};
    this.frameOf = remembering((frame) => ask("/api/project/frame", { video, frame }));
    this.names = new Map(project.objects.map(({ id, name }) => [id, name]));
    this.categories = new Map(project.objects.map(({ id, category }) => [id, category]));
    this.whole = wholeFrames(project);
  }

  /** What stands now. Where somebody else has decided meanwhile, nothing of here can be undone any more. */
  async reload({ decidedHere = false } = {}) {
    const { version } = this.project;
    this.project = await ask("/api/project", { video: this.video });
    if (!decidedHere && version !== this.project.version) this.history = [];
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
   * Masks that stand on a frame, by the id under which they are accepted: the draft's, people's, the tracks'.
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

  /**
   * What the player draws; of objects that have no mask here the first suggestion is among it.
   * @param {number} frame
   * @returns {Promise<Instance[]>}
   */
  async instances(frame) {
    const marks = await this.marks(frame);
    const { suggestions } = await this.frameOf(frame);
    const shown = [...marks.values()].flatMap((mark) => {
      const box = boxOf(mark.mask);
      return box ? [{ ...mark, name: this.nameOf(mark.object), box }] : [];
    });
    const taken = new Set(marks.keys());
    /** @param {Suggestion} suggestion */
    const isFree = ({ object, mask }) => {
      if (!object) return !shown.some((mark) => mark.mask.counts === mask.counts);
      const isFirst = !taken.has(object);
      taken.add(object);
      return isFirst;
    };
    const offered = suggestions.flatMap((suggestion, number) => {
      if (!isFree(suggestion)) return [];
      const { category, origin, mask } = suggestion;
      const name = `${category}? (${origin})`;
      return [{ object: `suggestion ${number}`, name, mask, box: boxOf(mask), offered: true }];
    });
    return [...shown, ...offered];
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
    this.history.push({ text: `drawing on frame ${frame}`, back: () => this.setDraft(frame, before) });
    await this.setDraft(frame, draft);
  }

  /**
   * @param {number} frame
   * @param {FrameDraft | undefined} draft
   */
  setDraft(frame, draft) {
    if (draft) this.drafts.set(frame, draft);
    else this.drafts.delete(frame);
    return this.save();
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
  decided(drafts) {
    const used = new Set([...drafts.values()].flatMap((draft) => [...draft.keys()]));
    const isNew = (/** @type {string} */ id) => used.has(id) && !this.categories.has(id);
    const keyframes = [...drafts].map(([frame, draft]) => ({
      frame,
      complete: this.whole.has(frame),
      masks: Object.fromEntries(draft),
    }));
    return { objects: Object.fromEntries([...this.fresh].filter(([id]) => isNew(id))), keyframes };
  }

  /** Keeps the draft on the server, one request after the other. */
  async save() {
    const decisions = { video: this.video, ...this.decided(this.drafts) };
    const draft = { decisions, looked_at: [...this.lookedAt] };
    this.saving = this.saving
      .then(async () => {
        await send("/api/project/draft", { ...draft, revision: this.revision + 1, page: this.page });
        this.revision += 1;
      })
      .catch((error) => say(`The draft is not saved: ${reasonOf(error)}`));
    await this.saving;
    this.changed();
  }

  /** @param {Draft | null} draft */
  resume(draft) {
    if (!draft) return;
    const { keyframes, objects } = draft.decisions;
    for (const { frame, masks } of keyframes) this.drafts.set(frame, new Map(Object.entries(masks)));
    for (const [id, category] of Object.entries(objects)) this.fresh.set(id, category);
    this.lookedAt = new Set(draft.looked_at);
    this.revision = draft.revision;
  }

  /**
   * Hands in decisions.
   * @param {Decisions} decisions
   * @param {string} text
   * @param {Decisions | null} [back] decisions that undo them
   */
  async accept(decisions, text, back) {
    try {
      await send("/api/project/accept", { video: this.video, seen: this.project.version, ...decisions });
    } catch (error) {
      await this.reload(); // refused, maybe because somebody else has decided meanwhile
      this.changed();
      throw error;
    }
    if (back) this.history.push({ text, back: () => this.accept(back, text) });
    this.running = "starting";
    this.told();
    say(`accepted: ${text}`);
    await this.reload({ decidedHere: true });
    this.changed();
    this.follow();
  }

  /** @param {number} frame */
  async acceptFrame(frame) {
    const { accepted } = await this.frameOf(frame);
    const stood = new Map([...(await this.marks(frame, null))].map(([id, { mask }]) => [id, mask]));
    const draft = this.drafts.get(frame) ?? stood;
    const isFirst = !accepted && this.whole.has(frame); // a first decision stands
    const back = isFirst ? null : this.decided(new Map([[frame, this.restored(frame, draft, stood)]]));
    this.drafts.delete(frame);
    try {
      const decided = this.decided(new Map([[frame, draft]]));
      await this.accept(decided, `frame ${frame}`, back && { keyframes: back.keyframes });
    } catch (error) {
      this.drafts.set(frame, draft);
      throw error;
    }
    this.lookedAt.add(frame);
    await this.save();
  }

  /**
   * What takes a draft back once it is accepted; between keyframes what was not there before is empty.
   * @param {number} frame
   * @param {FrameDraft} draft
   * @param {FrameDraft} stood
   * @returns {FrameDraft}
   */
  restored(frame, draft, stood) {
    if (this.whole.has(frame)) return stood;
    return new Map([...draft.keys()].map((id) => [id, stood.get(id) ?? this.empty()]));
  }

  /** @param {Layers} layers */
  layers(layers) {
    const { activities, process_steps: steps, attributes, relations } = this.project.layers;
    const before = { activities, process_steps: steps, attributes, relations };
    return this.accept({ layers }, "statements", { layers: before });
  }

  /**
   * An edit of identities; it is undone by the line that it becomes.
   * @param {Edit} edit
   * @param {string} text
   */
  edit(edit, text) {
    const line = this.project.edits.length + 1;
    return this.accept({ edits: [edit] }, text, { edits: [{ edit: "undo", line }] });
  }

  /** Where hands touch things. @param {FrameRange[]} ranges */
  contacts(ranges) {
    const before = this.project.contacts;
    const contacts = ranges.toSorted((a, b) => a[0] - b[0]);
    return this.accept({ contacts }, "contacts", before && { contacts: before });
  }

  async undo() {
    const last = this.history.at(-1);
    if (!last) throw new Error("Nothing of this session is left to undo.");
    await last.back();
    this.history.pop();
    say(`undone: ${last.text}`);
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
      await finished(
        () => ask("/api/project/progress", { video: this.video }),
        ({ state, step }) => {
          this.running = state === "waiting" ? "waiting for its turn" : `making ${step || "ready"}`;
          this.told();
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
