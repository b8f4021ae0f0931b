// The content of an annotated frame, and masks taken over from suggestions and other frames.
import { boxOf } from "./run_lengths.js";

/** @import { Annotation } from "./annotation.js" */
/** @import { Instance, StandingMask, Suggestion } from "./shapes.d.ts" */

/**
 * The layers that the player draws; they include the first suggestion of each object without a mask here.
 * @param {Annotation} work
 * @param {number} frame
 * @returns {Promise<Instance[]>}
 */
export async function instancesOf(work, frame) {
  const marks = await work.marks(frame);
  const { suggestions } = await work.frameOf(frame);
  const standing = [...marks.values()].flatMap((mark) => {
    const box = boxOf(mark.mask);
    return box ? [{ ...mark, name: work.nameOf(mark.object), box }] : [];
  });
  const offered = freeOf(suggestions, marks).map((suggestion) => {
    const { category, origin, mask } = suggestion;
    const object = `suggestion ${suggestions.indexOf(suggestion)}`;
    return { object, name: `${category}? (${origin})`, mask, box: boxOf(mask), offered: true };
  });
  return [...standing, ...offered];
}

/**
 * The first suggestion of each object without a mask on a frame; and suggestions of new objects that are not taken yet.
 * @param {Suggestion[]} suggestions
 * @param {Map<string, StandingMask>} marks
 */
function freeOf(suggestions, marks) {
  const used = new Set(marks.keys());
  const drawn = new Set([...marks.values()].map(({ mask }) => mask.counts));
  return suggestions.filter(({ object, mask }) => {
    if (!object) return !drawn.has(mask.counts);
    const isFirst = !used.has(object);
    used.add(object);
    return isFirst;
  });
}

/**
 * All suggestions of objects that have no mask here.
 * @param {Annotation} work
 * @param {number} frame
 */
export async function takeAll(work, frame) {
  const { suggestions } = await work.frameOf(frame);
  const free = freeOf(suggestions, await work.marks(frame));
  if (!free.length) throw new Error("Everything suggested here is already drawn.");
  const named = free.map(({ object, category, mask }) => {
    if (object && !work.categoryOf(object)) work.fresh.set(object, category);
    return { id: object ?? work.addObject(category), mask };
  });
  await work.draw(frame, (draft) => {
    for (const { id, mask } of named) draft.set(id, mask);
  });
}

/**
 * The nearest drawn or annotated frames before and after one; undefined without such a frame.
 * @param {Annotation} work
 * @param {number} frame
 */
export function neighbours(work, frame) {
  const frames = [...work.project.accepted.map((entry) => entry.frame), ...work.drafts.keys()].sort((a, b) => a - b);
  return { before: frames.findLast((other) => other < frame), after: frames.find((other) => other > frame) };
}

/**
 * Masks of the annotated frame before this one as a start: of one object, or of all without a mask here.
 * @param {Annotation} work
 * @param {number} frame
 * @param {string | null} only
 */
export async function copyLast(work, frame, only) {
  const { before } = neighbours(work, frame);
  if (before === undefined) throw new Error("No earlier frame is annotated.");
  const here = await work.marks(frame);
  const lacking = [...(await work.marks(before)).values()].filter(({ id, mask }) => {
    const mark = here.get(id);
    return boxOf(mask) && (only ? id === only : !mark || !boxOf(mark.mask));
  });
  if (!lacking.length) throw new Error(`Frame ${before} has no further masks.`);
  await work.draw(frame, (draft) => {
    for (const { id, mask } of lacking) draft.set(id, mask);
  });
}

/**
 * The masks of the annotated frames on both sides, to be outlined.
 * @param {Annotation} work
 * @param {number} frame
 * @returns {Promise<Instance[]>}
 */
export async function ghostsOf(work, frame) {
  const { before, after } = neighbours(work, frame);
  const frames = [before, after].filter((other) => other !== undefined);
  const marks = await Promise.all(frames.map((other) => work.marks(other)));
  return marks.flatMap((some) =>
    [...some.values()].map(({ object, mask }) => ({ object, name: work.nameOf(object), mask, box: null })),
  );
}
