// Masks painted over each other in the colours of their objects, and which object a pixel is of.
import { blankCanvas } from "./elements.js";
import { fillInside, visitInside } from "./run_lengths.js";

/** @import { Instance, Mask } from "./shapes.d.ts" */

const OPACITY = { chosen: 190, offered: 50, other: 90 };

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

/** @param {Mask} mask */
function areaOf(mask) {
  let area = 0;
  visitInside(mask, (first, end) => {
    area += end - first;
  });
  return area;
}

/**
 * Paints masks over each other, large ones first; those that are only offered are paler.
 * Returns the canvas and `at(x, y)`: the number of the instance at a pixel of the frame, or -1.
 * @param {Instance[]} instances
 * @param {(object: string) => boolean} isChosen
 */
export function painted(instances, isChosen) {
  const layers = instances.flatMap(({ mask }, number) =>
    "counts" in mask ? [{ mask, number, area: areaOf(mask) }] : [],
  );
  if (!layers.length) return { canvas: undefined, at: () => -1 };
  const [height, width] = layers[0].mask.size;
  const owner = new Int16Array(width * height).fill(-1);
  for (const { mask, number } of layers.sort((a, b) => b.area - a.area)) fillInside(owner, mask, number);
  const colours = instances.map(({ object, offered }) => {
    const [red, green, blue] = channels(object);
    const opacity = isChosen(object) ? OPACITY.chosen : offered ? OPACITY.offered : OPACITY.other;
    return (opacity << 24) | (blue << 16) | (green << 8) | red;
  });
  const { canvas, context } = blankCanvas({ width, height });
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let at = 0; at < pixels.length; at += 1) if (owner[at] >= 0) pixels[at] = colours[owner[at]];
  context.putImageData(image, 0, 0);
  /**
   * @param {number} x
   * @param {number} y
   */
  const at = (x, y) =>
    x >= 0 && y >= 0 && x < width && y < height ? owner[Math.floor(y) * width + Math.floor(x)] : -1;
  return { canvas, at };
}
