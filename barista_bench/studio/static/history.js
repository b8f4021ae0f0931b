// A person's steps on this page, undone and redone in order.

/** @typedef {{ text: string, forth: () => unknown, back: () => unknown }} Step */

export class Steps {
  constructor() {
    /** @type {Step[]} */
    this.done = [];
    /** @type {Step[]} */
    this.undone = [];
    /** One after the other. @type {Promise<unknown>} */
    this.turn = Promise.resolve();
  }

  /** @template Result @param {() => Promise<Result>} work @returns {Promise<Result>} */
  enqueue(work) {
    const result = this.turn.then(work);
    this.turn = result.catch(() => {});
    return result;
  }

  /** Takes a step, which can then be undone; steps undone before cannot be redone. @param {Step} step */
  take(step) {
    return this.enqueue(async () => {
      const { done } = this;
      await step.forth();
      if (this.done !== done) return; // forgotten meanwhile, and so is what stood before this step
      done.push(step);
      this.undone = [];
    });
  }

  /** Promises the undone step, in words. */
  undo() {
    return this.enqueue(() => moveStep(this.done, this.undone, "back", "undo"));
  }

  redo() {
    return this.enqueue(() => moveStep(this.undone, this.done, "forth", "do again"));
  }

  /** Another person has decided in the meantime: earlier steps can no longer be undone. */
  forget() {
    this.done = [];
    this.undone = [];
  }
}

/**
 * @param {Step[]} from
 * @param {Step[]} to
 * @param {"back" | "forth"} way
 * @param {string} verb
 */
async function moveStep(from, to, way, verb) {
  const step = from.at(-1);
  if (!step) throw new Error(`There is nothing left to ${verb} in this session.`);
  await step[way]();
  if (from.at(-1) === step) to.push(...from.splice(-1));
  return step.text;
}
