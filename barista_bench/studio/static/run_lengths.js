// COCO's compressed run lengths: masks decoded and encoded.
/** @import { Box, Mask } from "./shapes.d.ts" */

/**
 * Calls `visit(first, end)` for each run of pixels inside, counted down the columns.
 * @param {Mask} mask
 * @param {(first: number, end: number) => void} visit
 */
export function visitInside({ counts }, visit) {
  /** @type {number[]} */
  const runs = [];
  let pixel = 0;
  for (let at = 0; at < counts.length; ) {
    let value = 0;
    let shift = 0;
    let byte = 0;
    do {
      byte = counts.charCodeAt(at) - 48;
      value |= (byte & 31) << shift;
      shift += 5;
      at += 1;
    } while (byte & 32);
    if (byte & 16) value |= -1 << shift;
    if (runs.length > 2) value += runs[runs.length - 2];
    runs.push(value);
    if (runs.length % 2 === 0 && value) visit(pixel, pixel + value);
    pixel += value;
  }
}

/** In pixels. @param {Mask} mask */
export function areaOf(mask) {
  let area = 0;
  visitInside(mask, (first, end) => {
    area += end - first;
  });
  return area;
}

/**
 * Whether a pixel is of a mask.
 * @param {Mask} mask
 * @param {number} x
 * @param {number} y
 */
export function isInside(mask, x, y) {
  const [height, width] = mask.size;
  if (x < 0 || y < 0 || x >= width || y >= height) return false;
  const pixel = x * height + y;
  let isFound = false;
  visitInside(mask, (first, end) => {
    isFound ||= first <= pixel && pixel < end;
  });
  return isFound;
}

/**
 * Writes `value` at the pixels of a mask; rows come first.
 * @param {Int16Array | Uint32Array} pixels
 * @param {Mask} mask
 * @param {number} value
 */
export function fillInside(pixels, mask, value) {
  const [height, width] = mask.size;
  visitInside(mask, (first, end) => {
    for (let pixel = first; pixel < end; pixel += 1) {
      pixels[(pixel % height) * width + Math.floor(pixel / height)] = value;
    }
  });
}

/** @param {number[]} runs */
function compress(runs) {
  let counts = "";
  for (const [number, length] of runs.entries()) {
    let value = number > 2 ? length - runs[number - 2] : length;
    for (let more = true; more; ) {
      let byte = value & 31;
      value >>= 5;
      more = byte & 16 ? value !== -1 : value !== 0;
      if (more) byte |= 32;
      counts += String.fromCharCode(byte + 48);
    }
  }
  return counts;
}

/**
 * The mask of pixels, rows first: anything but 0 is inside.
 * @param {ArrayLike<number>} pixels
 * @param {number} height
 * @param {number} width
 * @returns {Mask}
 */
function encode(pixels, height, width) {
  const runs = [0];
  let isInside = false;
  for (let x = 0; x < width; x += 1) {
    for (let y = 0; y < height; y += 1) {
      if (Boolean(pixels[y * width + x]) !== isInside) {
        runs.push(0);
        isInside = !isInside;
      }
      runs[runs.length - 1] += 1;
    }
  }
  return { counts: compress(runs), size: [height, width] };
}

/** @param {Mask["size"]} size */
export const emptyMask = ([height, width]) => encode([], height, width);

/** The mask on a canvas. @param {CanvasRenderingContext2D} context */
export function maskOf(context) {
  const { width, height } = context.canvas;
  const { data } = context.getImageData(0, 0, width, height);
  return encode(
    Uint8Array.from({ length: width * height }, (_, at) => data[4 * at + 3] >> 7),
    height,
    width,
  );
}

/**
 * Draws a mask onto a canvas of its size.
 * @param {CanvasRenderingContext2D} context
 * @param {Mask} mask
 */
export function drawMask(context, mask) {
  const [height, width] = mask.size;
  const image = context.createImageData(width, height);
  fillInside(new Uint32Array(image.data.buffer), mask, 0xff_ff_ff_ff);
  context.putImageData(image, 0, 0);
}

/**
 * Smallest box around a mask; null around none.
 * @param {Mask} mask
 * @returns {Box | null}
 */
export function boxOf(mask) {
  const [height] = mask.size;
  let [left, top, right, bottom] = [Infinity, Infinity, 0, 0];
  visitInside(mask, (first, end) => {
    const [column, lastColumn] = [Math.floor(first / height), Math.floor((end - 1) / height)];
    left = Math.min(left, column);
    right = Math.max(right, lastColumn + 1);
    top = Math.min(top, column < lastColumn ? 0 : first % height);
    bottom = Math.max(bottom, column < lastColumn ? height : ((end - 1) % height) + 1);
  });
  return right ? [left, top, right - left, bottom - top] : null;
}
