// A mask as a canvas. Masks of annotations and models may be broken, so this code never reads or writes past an end.
import { node } from "./elements.js";

/** @import { DrawnMask } from "./shapes.d.ts" */

/**
 * Decode COCO's compressed run lengths: five bits each, and from the third run on the difference to two runs before.
 * @param {string} counts
 */
function runLengths(counts) {
  /** @type {number[]} */
  const runs = [];
  for (let at = 0; at < counts.length; ) {
    let [value, shift, more] = [0, 0, true];
    while (more && at < counts.length) {
      const bits = counts.charCodeAt(at) - 48;
      value |= (bits & 31) << shift;
      more = Boolean(bits & 32);
      [at, shift] = [at + 1, shift + 5];
      if (!more && bits & 16) value |= -1 << shift;
    }
    runs.push(runs.length > 2 ? value + runs[runs.length - 2] : value);
  }
  return runs;
}

/**
 * @param {DrawnMask} mask
 * @param {number[]} colour red, green, blue and opacity, each to 255
 */
export function paintedMask([height, width, counts], colour) {
  const canvas = node("canvas", { width, height, class: "mask" });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(width, height);
  let [at, isInside] = [0, false];
  for (const run of runLengths(counts)) {
    for (let end = Math.min(at + run, width * height); isInside && at < end; at += 1) {
      image.data.set(colour, 4 * ((at % height) * width + Math.floor(at / height)));
    }
    if (!isInside) at += run;
    isInside = !isInside;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
