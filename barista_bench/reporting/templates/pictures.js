// The frames of a sample, with layers of boxes and masks. Two frames are side by side, more form a strip.
import { pictureUrl } from "./blocks.js";
import { node, svgNode, text } from "./elements.js";
import { paintedMask } from "./painted_mask.js";

/** @import { Details, DrawnBox, PlacedPicture, Side, TaskEntry } from "./shapes.d.ts" */

/** @typedef {{ name: string, look: string, boxes: DrawnBox[] }} Layer */

/** @type {Record<string, number[]>} */
const TINTS = {
  reference: [0, 211, 154, 120],
  given: [86, 180, 233, 120],
  m0: [255, 140, 58, 120],
  m1: [240, 228, 66, 120],
};
/** Space in pixels on the left of the chosen picture in the strip. */
const BEFORE_CHOSEN = 120;

// The reader's choices, kept between samples: the hidden layers by name, and whether layers are shown.
/** @type {Map<string, boolean>} */
const layersOff = new Map();
let areLayersShown = true;

/** @param {Layer} layer */
const isVisible = (layer) => areLayersShown && !layersOff.get(layer.name);

/**
 * The layers: boxes in the question, in the reference, and in the models' answers.
 * @param {TaskEntry} task
 * @param {Details} sampleData
 * @param {Side[]} sides
 * @returns {Layer[]}
 */
function layersOf(task, sampleData, sides) {
  const questionLayers = ["given", "reference"].map((kind) => ({
    name: kind,
    look: kind,
    boxes: sampleData.boxes.filter((box) => box[1] === kind),
  }));
  const answerLayers = sides.map(({ place, answer }, at) => ({
    name: task.labels[place],
    look: `m${at}`,
    boxes: answer?.boxes ?? [],
  }));
  return [...questionLayers, ...answerLayers].filter((layer) => layer.boxes.length);
}

/**
 * @param {PlacedPicture} picture
 * @param {Layer} layer
 * @param {number} image
 */
function boxesOf(picture, layer, image) {
  const size = picture.width / 54;
  const boxes = layer.boxes.filter((box) => box[0] === image);
  const shapes = boxes.flatMap(([, , label, [x0, y0, x1, y1]]) => {
    const [x, y] = [Math.min(x0, x1), Math.min(y0, y1)];
    const box = svgNode("rect", { x, y, width: Math.abs(x1 - x0), height: Math.abs(y1 - y0) });
    if (!label) return [box];
    // Labels of boxes at the right grow to the left, so that the picture's edge does not cut them.
    const isRight = x > picture.width * 0.6;
    const attributes = {
      x: isRight ? Math.min(picture.width - 2, Math.max(x0, x1)) : Math.max(2, x),
      "text-anchor": isRight ? "end" : "start",
      y: Math.min(picture.height - 2, y > size * 1.3 ? y - size * 0.3 : y + size),
      "font-size": size,
    };
    return [box, svgNode("text", attributes, label)];
  });
  return svgNode("g", { class: layer.look }, ...shapes);
}

/** @param {Details} sampleData @param {number} image */
const captionOf = (sampleData, image) => sampleData.captions[image] ?? `image ${image}`;

/**
 * @param {Details} sampleData
 * @param {number} image
 * @param {Layer[]} layers
 */
function figureOf(sampleData, image, layers) {
  const placed = sampleData.pictures[image];
  const { file, width, height } = placed;
  const visibleLayers = layers.filter(isVisible);
  const masks = visibleLayers.flatMap(({ boxes, look }) =>
    boxes.flatMap(([at, , , , mask]) => (at === image && mask ? [paintedMask(mask, TINTS[look])] : [])),
  );
  const caption = captionOf(sampleData, image);
  const picture = node("img", { src: pictureUrl(file), alt: caption, width, height });
  const boxes = svgNode(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    ...visibleLayers.map((layer) => boxesOf(placed, layer, image)),
  );
  const frame = node("div", { class: "frame" }, picture, ...masks, boxes);
  return node("figure", {}, frame, text("figcaption", caption));
}

/**
 * Buttons that show and hide layers.
 * @param {Layer[]} layers
 * @param {(look: string) => void} repaint
 */
function togglesOf(layers, repaint) {
  return layers.map((layer) => {
    const click = () => {
      layersOff.set(layer.name, isVisible(layer));
      areLayersShown = true;
      repaint(layer.look);
    };
    const look = { class: `layer ${layer.look}`, "data-layer": layer.look };
    const name = layer.look === "reference" ? "true" : layer.name;
    return node(
      "button",
      { type: "button", ...look, "aria-pressed": String(isVisible(layer)), click },
      node("span", { class: "swatch" }),
      name,
    );
  });
}

/**
 * The pictures, and functions to step through them. `step` is null if there is only one view.
 * @param {TaskEntry} task
 * @param {Details} sampleData
 * @param {Side[]} sides
 * @returns {{ element: HTMLElement, step: ((by: number) => void) | null, toggle: () => void }}
 */
export function stage(task, sampleData, sides) {
  if (sampleData.problem)
    return { element: text("p", sampleData.problem, { class: "alert" }), step: null, toggle: () => {} };
  const layers = layersOf(task, sampleData, sides);
  const count = sampleData.pictures.length;
  const isStrip = count > 2;
  const frames = node("div", { class: isStrip ? "pictures one" : "pictures" });
  const toggles = node("div", { class: "layers" });
  let current = 0;
  const scrub = () => {
    show(Number(range.value));
  };
  const range = node("input", {
    type: "range",
    min: 0,
    max: count - 1,
    value: 0,
    "aria-label": "frame",
    input: scrub,
  });
  const thumbs = sampleData.pictures.map(({ file }, at) => {
    const picture = node("img", { src: pictureUrl(file), alt: "", loading: "lazy" });
    return node("button", { type: "button", "aria-label": captionOf(sampleData, at), click: () => show(at) }, picture);
  });
  const strip = node("div", { class: "strip" }, ...(isStrip ? thumbs : []));
  /** @param {number} at */
  function show(at) {
    current = Math.min(count - 1, Math.max(0, at));
    range.value = String(current);
    thumbs.forEach((thumb, place) => {
      thumb.setAttribute("aria-pressed", String(place === current));
    });
    if (isStrip) strip.scrollLeft = thumbs[current].offsetLeft - BEFORE_CHOSEN;
    paint();
  }
  function paint() {
    const images = isStrip ? [current] : [...sampleData.pictures.keys()];
    frames.replaceChildren(...images.map((image) => figureOf(sampleData, image, layers)));
    toggles.replaceChildren(...togglesOf(layers, repaint));
  }
  /** The pressed button is made again and keeps the focus. @param {string} look */
  function repaint(look) {
    paint();
    /** @type {HTMLElement | null} */
    const pressed = toggles.querySelector(`[data-layer=${look}]`);
    pressed?.focus();
  }
  if (count) show(0);
  return {
    element: node("div", { class: "stage" }, frames, ...(isStrip ? [range, strip] : []), toggles),
    step: isStrip ? (by) => show(current + by) : null,
    toggle: () => {
      areLayersShown = !areLayersShown;
      paint();
    },
  };
}
