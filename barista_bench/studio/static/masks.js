// COCO run lengths in the browser: decoding, encoding, painting, and which object a pixel is of.

/** Calls `visit(first, end)` for each run of pixels inside, counted down the columns. */
function inside({ counts }, visit) {
  const runs = [];
  let pixel = 0;
  for (let at = 0; at < counts.length;) {
    let value = 0;
    let shift = 0;
    let byte;
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

/** Writes `value` at the pixels of a mask; rows come first. */
function fill(pixels, mask, value) {
  const [height, width] = mask.size;
  inside(mask, (first, end) => {
    for (let pixel = first; pixel < end; pixel += 1) pixels[(pixel % height) * width + Math.floor(pixel / height)] = value;
  });
}

/** The mask of pixels, rows first: anything but 0 is inside. */
function encoded(pixels, height, width) {
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
  let counts = "";
  runs.forEach((length, number) => {
    let value = number > 2 ? length - runs[number - 2] : length;
    for (let more = true; more;) {
      let byte = value & 31;
      value >>= 5;
      more = byte & 16 ? value !== -1 : value !== 0;
      if (more) byte |= 32;
      counts += String.fromCharCode(byte + 48);
    }
  });
  return { counts, size: [height, width] };
}

export const empty = ([height, width]) => encoded([], height, width);

/** What is drawn on a canvas as a mask. */
export function maskOf(canvas) {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  return encoded(Uint8Array.from({ length: width * height }, (_, at) => data[4 * at + 3] >> 7), height, width);
}

/** Draws a mask onto a canvas of its size. */
export function drawMask(context, mask) {
  const [height, width] = mask.size;
  const image = context.createImageData(width, height);
  fill(new Uint32Array(image.data.buffer), mask, 0xff_ff_ff_ff);
  context.putImageData(image, 0, 0);
}

/** Smallest [x, y, width, height] around a mask; null around none. */
export function boxOf(mask) {
  const [height] = mask.size;
  let [left, top, right, bottom] = [Infinity, Infinity, 0, 0];
  inside(mask, (first, end) => {
    const [column, lastColumn] = [Math.floor(first / height), Math.floor((end - 1) / height)];
    left = Math.min(left, column);
    right = Math.max(right, lastColumn + 1);
    top = Math.min(top, column < lastColumn ? 0 : first % height);
    bottom = Math.max(bottom, column < lastColumn ? height : ((end - 1) % height) + 1);
  });
  return right ? [left, top, right - left, bottom - top] : null;
}

/** Red, green and blue for each object, the same on every frame and in every view. */
function channels(id) {
  let hash = 7;
  for (const character of id) hash = (Math.imul(hash, 31) + character.codePointAt(0)) >>> 0;
  const hue = (hash * 4.5836) % 12;
  return [0, 8, 4].map((offset) => {
    const turn = (offset + hue) % 12;
    return Math.round(255 * (0.6 - 0.36 * Math.max(-1, Math.min(turn - 3, 9 - turn, 1))));
  });
}
export const colour = (id, alpha = 1) => `rgb(${channels(id).join(" ")} / ${alpha})`;

/**
 * Paint masks over each other, large ones first; those that are only offered are paler.
 * Returns the canvas and `at(x, y)`: the number of the instance at a pixel of the frame, or -1.
 */
export function painted(instances, isStrong) {
  const layers = instances.map(({ mask }, number) => ({ mask, number, area: 0 })).filter(({ mask }) => mask.counts !== undefined);
  if (!layers.length) return { canvas: null, at: () => -1 };
  for (const layer of layers) inside(layer.mask, (first, end) => { layer.area += end - first; });
  const [height, width] = layers[0].mask.size;
  const owner = new Int16Array(width * height).fill(-1);
  for (const { mask, number } of layers.sort((a, b) => b.area - a.area)) fill(owner, mask, number);
  const colours = instances.map(({ object, offered }) => {
    const [red, green, blue] = channels(object);
    return ((isStrong(object) ? 190 : offered ? 50 : 90) << 24) | (blue << 16) | (green << 8) | red;
  });
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let at = 0; at < pixels.length; at += 1) if (owner[at] >= 0) pixels[at] = colours[owner[at]];
  context.putImageData(image, 0, 0);
  const at = (x, y) => (x >= 0 && y >= 0 && x < width && y < height ? owner[Math.floor(y) * width + Math.floor(x)] : -1);
  return { canvas, at };
}
