// Masks painted over each other in the colours of their objects, and which object a pixel is of.
import { areaOf, isInside } from "./run_lengths.js";

/** @import { Instance, Mask } from "./shapes.d.ts" */

/**
 * A request to `paint_worker.js`.
 * @typedef {object} PaintOrder
 * @property {number} number
 * @property {Mask[]} masks
 * @property {number[]} colours as ImageData has them
 * @property {boolean} isOutline
 * @property {number} shrink pixels of the frame, across and down, for one painted pixel
 */

const OPACITY = { chosen: 190, offered: 50, other: 90 };
const MOST_KEPT = 24; // painted frames: 8 MB each in 1080p

/** Red, green and blue for each object, the same on every frame and in every view. @param {string} id */
function channels(id) {
  let hash = 7;
  for (const character of id) hash = (Math.imul(hash, 31) + Number(character.codePointAt(0))) >>> 0;
  const hue = (hash * 4.5836) % 12;
  return [0, 8, 4].map((offset) => {
    const turn = (offset + hue) % 12;
    return Math.round(255 * (0.6 - 0.36 * Math.max(-1, Math.min(turn - 3, 9 - turn, 1))));
  });
}

/** @param {string} id */
export const colour = (id, alpha = 1) => `rgb(${channels(id).join(" ")} / ${alpha})`;

/**
 * The number of the instance at a pixel of the frame, the smallest where several are there; -1 for none.
 * @param {Instance[]} instances
 * @param {number} x
 * @param {number} y
 */
export function instanceAt(instances, x, y) {
  let [found, least] = [-1, Infinity];
  for (const [number, { mask }] of instances.entries()) {
    if (!("counts" in mask) || !isInside(mask, Math.floor(x), Math.floor(y))) continue;
    const area = areaOf(mask);
    if (area < least) [found, least] = [number, area];
  }
  return found;
}

/**
 * How Konva lays a painted picture, whose rows are columns of the frame.
 * @param {ImageBitmap | undefined} image
 * @param {number} [shrink] with which it was painted
 */
export const turned = (image, shrink = 1) => ({
  image,
  width: image && image.width * shrink,
  height: image && image.height * shrink,
  rotation: 90,
  scaleY: -1,
});

/** @type {Map<number, (bitmap: ImageBitmap) => void>} */
const resolvers = new Map();
let number = 0;
/** Started with the page: it takes longer to start than to paint. */
const worker = new Worker(new URL("./paint_worker.js", import.meta.url), { type: "module" });
worker.onmessage = ({ data }) => {
  resolvers.get(data.number)?.(data.bitmap);
  resolvers.delete(data.number);
};

/**
 * @param {Mask[]} masks
 * @param {number[]} colours
 * @param {{ isOutline?: boolean, shrink?: number }} [how]
 * @returns {Promise<ImageBitmap>}
 */
function inThread(masks, colours, { isOutline = false, shrink = 1 } = {}) {
  number += 1;
  const { promise, resolve } = Promise.withResolvers();
  resolvers.set(number, resolve);
  worker.postMessage({ number, masks, colours, isOutline, shrink });
  return promise;
}

/** A mask while it is drawn. @param {Mask} mask */
export const paintAlone = (mask) => inThread([mask], [(OPACITY.chosen << 24) | 0x00_d8_ff]);

/** Paints in a separate thread, and keeps the last painted masks. */
export class Painter {
  /** @param {(object: string) => boolean} isChosen */
  constructor(isChosen) {
    this.isChosen = isChosen;
    /** @type {Map<Instance[], { how: string, bitmap: Promise<ImageBitmap> }>} */
    this.cache = new Map();
  }

  /**
   * Masks over each other, large ones first; those that are only offered are paler. Undefined where there is none.
   * @param {Instance[]} instances
   * @param {{ isOutline?: boolean, shrink?: number }} [look]
   * @returns {Promise<ImageBitmap | undefined>}
   */
  async paint(instances, { isOutline = false, shrink = 1 } = {}) {
    const painted = instances.filter(({ mask }) => "counts" in mask);
    if (!painted.length) return undefined;
    const how = [shrink, ...painted.map(({ object }) => Number(this.isChosen(object)))].join("");
    const known = this.cache.get(instances);
    if (known?.how === how) return known.bitmap;
    const masks = painted.map(({ mask }) => /** @type {Mask} */ (mask));
    const colours = painted.map(({ object, offered }) => {
      const [red, green, blue] = channels(object);
      const opacity = isOutline || this.isChosen(object) ? OPACITY.chosen : offered ? OPACITY.offered : OPACITY.other;
      return ((opacity << 24) | (blue << 16) | (green << 8) | red) >>> 0;
    });
    const bitmap = inThread(masks, colours, { isOutline, shrink });
    this.cache.delete(instances);
    this.cache.set(instances, { how, bitmap });
    if (this.cache.size > MOST_KEPT) this.cache.delete(this.cache.keys().next().value ?? instances);
    return bitmap;
  }
}
