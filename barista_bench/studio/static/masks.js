// COCO run lengths in the browser: decoding, encoding, painting, and which object a pixel is of.

/** Lengths of the runs, off and on in turn, down the columns. */
export function runsOf(counts) {
  const runs = [];
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
  }
  return runs;
}

/** One byte a pixel, rows first: 1 inside. */
export function decoded({ counts, size: [height, width] }) {
  const pixels = new Uint8Array(height * width);
  let at = 0;
  runsOf(counts).forEach((run, number) => {
    if (number % 2) for (let pixel = at; pixel < at + run; pixel += 1) pixels[(pixel % height) * width + Math.floor(pixel / height)] = 1;
    at += run;
  });
  return pixels;
}

/** The inverse of `decoded`. */
export function encoded(pixels, height, width) {
  const runs = [];
  let last = 0;
  let run = 0;
  for (let x = 0; x < width; x += 1) {
    for (let y = 0; y < height; y += 1) {
      const value = pixels[y * width + x] ? 1 : 0;
      if (value !== last) {
        runs.push(run);
        run = 0;
        last = value;
      }
      run += 1;
    }
  }
  runs.push(run);
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

export const empty = ([height, width]) => encoded(new Uint8Array(height * width), height, width);

/** Smallest [x, y, width, height] around a mask; null around none. */
export function boxOf({ counts, size: [height] }) {
  let [left, top, right, bottom] = [Infinity, Infinity, 0, 0];
  let at = 0;
  runsOf(counts).forEach((run, number) => {
    if (number % 2 && run) {
      const isTall = Math.floor(at / height) !== Math.floor((at + run - 1) / height);
      left = Math.min(left, Math.floor(at / height));
      right = Math.max(right, Math.floor((at + run - 1) / height) + 1);
      top = Math.min(top, isTall ? 0 : at % height);
      bottom = Math.max(bottom, isTall ? height : ((at + run - 1) % height) + 1);
    }
    at += run;
  });
  return right ? [left, top, right - left, bottom - top] : null;
}

/** A hue for each object, the same on every frame and in every view. */
export function hue(id) {
  let hash = 7;
  for (const character of id) hash = (Math.imul(hash, 31) + character.codePointAt(0)) >>> 0;
  return (hash * 137.508) % 360;
}
export const colour = (id, alpha = 1) => `hsl(${hue(id)} 90% 60% / ${alpha})`;

function channels(id) {
  const shade = (offset) => {
    const turn = (offset + hue(id) / 30) % 12;
    return Math.round(255 * (0.6 - 0.36 * Math.max(-1, Math.min(turn - 3, 9 - turn, 1))));
  };
  return (shade(4) << 16) | (shade(8) << 8) | shade(0);
}

/**
 * Paint masks over each other, large ones first; those that are only offered are paler.
 * Returns the canvas and `at(x, y)`: the number of the instance at a pixel of the frame, or -1.
 */
export function painted(instances, isStrong) {
  const usable = instances.map(({ mask }, number) => ({ mask, number })).filter(({ mask }) => mask.counts !== undefined);
  const canvas = document.createElement("canvas");
  if (!usable.length) return { canvas: null, at: () => -1 };
  const [height, width] = usable[0].mask.size;
  Object.assign(canvas, { width, height });
  const layers = usable.map(({ mask, number }) => {
    const runs = runsOf(mask.counts);
    return { number, runs, area: runs.reduce((sum, run, at) => sum + (at % 2 ? run : 0), 0) };
  }).sort((a, b) => b.area - a.area);
  const owner = new Int16Array(width * height).fill(-1);
  for (const { number, runs } of layers) {
    let at = 0;
    runs.forEach((run, turn) => {
      if (turn % 2) for (let pixel = at; pixel < at + run; pixel += 1) owner[(pixel % height) * width + Math.floor(pixel / height)] = number;
      at += run;
    });
  }
  const colours = instances.map(({ object, offered }) => ((isStrong(object) ? 190 : offered ? 50 : 90) << 24) | channels(object));
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let at = 0; at < pixels.length; at += 1) if (owner[at] >= 0) pixels[at] = colours[owner[at]];
  context.putImageData(image, 0, 0);
  const at = (x, y) => (x >= 0 && y >= 0 && x < width && y < height ? owner[Math.floor(y) * width + Math.floor(x)] : -1);
  return { canvas, at };
}
