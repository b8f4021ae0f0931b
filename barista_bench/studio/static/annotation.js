// One video of a project: what stands on the server, what is drawn and not accepted yet (kept there as a draft), and undo.
import { ask, finished, say, send } from "./page.js";
import { boxOf, empty } from "./masks.js";
import { remembering } from "./player.js";

export class Annotation {
  static async open(video) {
    const made = new Annotation(video);
    await made.reload();
    made.resume(made.project.draft);
    return made;
  }

  constructor(video) {
    Object.assign(this, { video, drafts: new Map(), fresh: new Map(), lookedAt: new Set(), history: [], revision: 0, page: String(Math.random()), running: "", changed: () => {}, told: () => {} });
    this.frameOf = remembering((frame) => ask("/api/project/frame", { video, frame }));
    this.saving = Promise.resolve();
  }

  /** What stands now. Where somebody else has decided meanwhile, nothing of here can be undone any more. */
  async reload({ decidedHere = false } = {}) {
    const { version } = this.project ?? {};
    this.project = await ask("/api/project", { video: this.video });
    if (!decidedHere && version !== this.project.version) this.history = [];
    this.names = new Map(this.project.objects.map(({ id, name }) => [id, name]));
    this.categories = new Map(this.project.objects.map(({ id, category }) => [id, category]));
    this.whole = new Set([...this.project.asked, ...this.project.accepted.filter(({ complete }) => complete).map(({ frame }) => frame)]);
    this.size = [this.project.height, this.project.width];
    this.frameOf.forget();
  }

  nameOf(id) {
    return this.names.get(id) ?? this.fresh.get(id) ?? id;
  }

  categoryOf(id) {
    return this.categories.get(id) ?? this.fresh.get(id);
  }

  /** Masks that stand on a frame, by the id under which they are accepted: the draft's, people's, the tracks'. */
  async marks(frame, draft = this.drafts.get(frame)) {
    const { accepted, tracks } = await this.frameOf(frame);
    const marks = new Map();
    const add = (origin, list) => list.forEach(({ object, accepted_as: id, mask }) => marks.set(id, { id, object, mask, origin }));
    if (!accepted || !this.whole.has(frame)) add("propagated", tracks);
    add("accepted", accepted ?? []);
    if (draft) {
      const objects = new Map([...marks].map(([id, { object }]) => [id, object]));
      if (this.whole.has(frame)) marks.clear();
      for (const [id, mask] of draft) marks.set(id, { id, object: objects.get(id) ?? id, mask, origin: "draft" });
    }
    return marks;
  }

  /** What the player draws; of objects that have no mask here the first suggestion is among it. */
  async instances(frame) {
    const marks = await this.marks(frame);
    const { suggestions } = await this.frameOf(frame);
    const shown = [...marks.values()].map((mark) => ({ ...mark, name: this.nameOf(mark.object), box: boxOf(mark.mask) })).filter(({ box }) => box);
    const taken = new Set(marks.keys());
    const isFree = ({ object, mask }) => (object ? !taken.has(object) && taken.add(object) : !shown.some((mark) => mark.mask.counts === mask.counts));
    const offered = suggestions.map((suggestion, number) => ({ ...suggestion, number })).filter(isFree)
      .map(({ category, origin, mask, number }) => ({ object: `suggestion ${number}`, name: `${category}? (${origin})`, mask, box: boxOf(mask), offered: true }));
    return [...shown, ...offered];
  }

  /** An id that nothing has: the category and a number. */
  newId(category) {
    const stem = category.replaceAll(" ", "_");
    for (let number = 1; ; number += 1) if (!this.categoryOf(`${stem}-${number}`)) return `${stem}-${number}`;
  }

  addObject(category) {
    const id = this.newId(category);
    this.fresh.set(id, category);
    return id;
  }

  /** Change the draft of a frame: `edit` gets its masks by id. Where the frame is to be annotated whole, all of them. */
  async draw(frame, edit) {
    const before = this.drafts.get(frame);
    const marks = this.whole.has(frame) ? await this.marks(frame) : new Map();
    const draft = new Map(before ?? [...marks.values()].map(({ id, mask }) => [id, mask]));
    edit(draft);
    this.history.push({ text: `drawing on frame ${frame}`, back: () => this.setDraft(frame, before) });
    await this.setDraft(frame, draft);
  }

  setDraft(frame, draft) {
    if (draft) this.drafts.set(frame, draft);
    else this.drafts.delete(frame);
    return this.save();
  }

  setMask(frame, id, mask) {
    return this.draw(frame, (draft) => draft.set(id, mask));
  }

  /** Of a frame that is annotated whole the mask goes; elsewhere it is empty: the object is not seen there. */
  remove(frame, id) {
    return this.draw(frame, (draft) => (this.whole.has(frame) ? draft.delete(id) : draft.set(id, empty(this.size))));
  }

  async take(frame, { object, category, mask }) {
    if (object && !this.categoryOf(object)) this.fresh.set(object, category);
    const id = object ?? this.addObject(category);
    await this.setMask(frame, id, mask);
    return id;
  }

  /** Decisions on frames, with the objects that are new in them. */
  decided(drafts) {
    const used = new Set([...drafts.values()].flatMap((draft) => [...draft.keys()]));
    return { objects: Object.fromEntries([...this.fresh].filter(([id]) => used.has(id) && !this.categories.has(id))),
      keyframes: [...drafts].map(([frame, draft]) => ({ frame, complete: this.whole.has(frame), masks: Object.fromEntries(draft) })) };
  }

  /** Keep the draft on the server, one request after the other. */
  async save() {
    const draft = { decisions: { video: this.video, ...this.decided(this.drafts) }, looked_at: [...this.lookedAt] };
    this.saving = this.saving.then(async () => {
      await send("/api/project/draft", { ...draft, revision: this.revision + 1, page: this.page });
      this.revision += 1;
    }).catch((error) => say(`The draft is not saved: ${error.message}`));
    await this.saving;
    this.changed();
  }

  resume(draft) {
    if (!draft) return;
    const { keyframes, objects } = draft.decisions;
    for (const { frame, masks } of keyframes) this.drafts.set(frame, new Map(Object.entries(masks)));
    for (const [id, category] of Object.entries(objects)) this.fresh.set(id, category);
    this.lookedAt = new Set(draft.looked_at);
    this.revision = draft.revision;
  }

  /** Hand in decisions. `back` undoes them: decisions again. */
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

  async acceptFrame(frame) {
    const { accepted } = await this.frameOf(frame);
    const stood = new Map([...(await this.marks(frame, null))].map(([id, { mask }]) => [id, mask]));
    const draft = this.drafts.get(frame) ?? stood;
    const gone = new Map([...draft.keys()].map((id) => [id, empty(this.size)]));
    const restored = this.whole.has(frame) ? stood : new Map([...gone, ...[...stood].filter(([id]) => draft.has(id))]);
    const back = accepted || !this.whole.has(frame) ? { keyframes: this.decided(new Map([[frame, restored]])).keyframes } : null; // a first decision stands
    this.drafts.delete(frame);
    try {
      await this.accept(this.decided(new Map([[frame, draft]])), `frame ${frame}`, back);
    } catch (error) {
      this.drafts.set(frame, draft);
      throw error;
    }
    this.lookedAt.add(frame);
    await this.save();
  }

  layers(layers) {
    const { activities, process_steps: steps, attributes, relations } = this.project.layers;
    return this.accept({ layers }, "statements", { layers: { activities, process_steps: steps, attributes, relations } });
  }

  /** An edit of identities; it is undone by the line that it becomes. */
  edit(edit, text) {
    const line = this.project.edits.length + 1;
    return this.accept({ edits: [edit] }, text, { edits: [{ edit: "undo", line }] });
  }

  contacts(contacts) {
    const before = this.project.contacts;
    return this.accept({ contacts: contacts.toSorted((a, b) => a[0] - b[0]) }, "contacts", before && { contacts: before });
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

  /** Wait for the stages behind, telling how far they are. */
  async follow() {
    if (this.following) return;
    this.following = true;
    try {
      await finished(() => ask("/api/project/progress", { video: this.video }), ({ state, step }) => {
        this.running = state === "waiting" ? "waiting for its turn" : `making ${step || "ready"}`;
        this.told();
      });
    } catch (error) {
      say(error.message);
    }
    this.following = false;
    this.running = "";
    await this.reload();
    this.changed();
  }
}
