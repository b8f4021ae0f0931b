// Masks painted over each other, away from the page's thread. Pictures are turned: a column of the frame is a row here,
// as run lengths count.
import { areaOf, visitInside } from "./run_lengths.js";

/** @import { PaintOrder } from "./masks.js" */

const RIM = 2; // pixels

/**
 * Only what is within the rim of an area of one colour.
 * @param {Uint32Array} pixels
 * @param {number} height
 */
function outlined(pixels, height) {
  const reach = [-RIM, RIM, -RIM * height, RIM * height];
  return pixels.map((value, at) => (value && reach.every((by) => pixels[at + by] === value) ? 0 : value));
}

/** @param {MessageEvent<PaintOrder>} event */
async function paint({ data: { number, masks, colours, isOutline } }) {
  const [height, width] = masks[0].size;
  const areas = masks.map((mask) => areaOf(mask));
  const order = [...masks.keys()].sort((a, b) => areas[b] - areas[a]);
  let pixels = new Uint32Array(width * height);
  for (const at of order) visitInside(masks[at], (first, end) => pixels.fill(colours[at], first, end));
  if (isOutline) pixels = outlined(pixels, height);
  const bitmap = await createImageBitmap(new ImageData(new Uint8ClampedArray(pixels.buffer), height, width));
  postMessage({ number, bitmap }, { transfer: [bitmap] });
}

addEventListener("message", paint);
