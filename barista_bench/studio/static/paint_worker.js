// Masks painted over each other, away from the page's thread. Pictures are turned: a column of the frame is a row here,
// as run lengths count.
import { areaOf, visitInside } from "./run_lengths.js";

/** @import { PaintOrder } from "./masks.js" */
/** @import { Mask } from "./shapes.d.ts" */

const RIM = 2; // pixels

/**
 * Only the pixels inside the rim of an area of one colour.
 * @param {Uint32Array} pixels
 * @param {number} height
 */
function outline(pixels, height) {
  const reach = [-RIM, RIM, -RIM * height, RIM * height];
  return pixels.map((value, at) => (value && reach.every((by) => pixels[at + by] === value) ? 0 : value));
}

/**
 * Paints every `shrink`th pixel of every `shrink`th column of a mask.
 * @param {Uint32Array} pixels
 * @param {Mask} mask
 * @param {number} colour
 * @param {number} shrink
 */
function fill(pixels, mask, colour, shrink) {
  const [height] = mask.size;
  const short = Math.ceil(height / shrink);
  visitInside(mask, (first, end) => {
    const start = Math.ceil(Math.floor(first / height) / shrink) * shrink;
    for (let column = start; column * height < end; column += shrink) {
      const top = Math.max(first - column * height, 0);
      const bottom = Math.min(end - column * height, height);
      const row = (column / shrink) * short;
      pixels.fill(colour, row + Math.ceil(top / shrink), row + Math.ceil(bottom / shrink));
    }
  });
}

/** @param {MessageEvent<PaintOrder>} event */
async function paint({ data: { number, masks, colours, isOutline, shrink } }) {
  const [height, width] = masks[0].size.map((side) => Math.ceil(side / shrink));
  const areas = masks.map((mask) => areaOf(mask));
  const order = [...masks.keys()].sort((a, b) => areas[b] - areas[a]);
  let pixels = new Uint32Array(width * height);
  for (const at of order) fill(pixels, masks[at], colours[at], shrink);
  if (isOutline) pixels = outline(pixels, height);
  const bitmap = await createImageBitmap(new ImageData(new Uint8ClampedArray(pixels.buffer), height, width));
  postMessage({ number, bitmap }, { transfer: [bitmap] });
}

addEventListener("message", paint);
