// The frames of a sample: two side by side, more as a strip to scrub through, with layers of boxes and masks.
const layersOff = new Map();
let layersShown = true;

// COCO's compressed run lengths: five bits a character, differences from the run before the last from the third on.
function runLengths(counts) {
  const runs = [];
  for (let at = 0; at < counts.length;) {
    let [value, shift, more] = [0, 0, true];
    while (more && at < counts.length) {
      const bits = counts.charCodeAt(at) - 48;
      value |= (bits & 31) << shift;
      more = Boolean(bits & 32);
      [at, shift] = [at + 1, shift + 5];
      if (!more && bits & 16) value |= -1 << shift;
    }
    runs.push(runs.length > 2 ? value + runs.at(-2) : value);
  }
  return runs;
}

function maskOf([height, width, counts], colour) {
  const canvas = node("canvas", { width, height, class: "mask" });
  const image = canvas.getContext("2d").createImageData(width, height);
  let [at, inside] = [0, false];
  for (const run of runLengths(counts)) {
    for (let end = Math.min(at + run, width * height); inside && at < end; at += 1) {
      image.data.set(colour, 4 * ((at % height) * width + Math.floor(at / height)));
    }
    if (!inside) at += run;
    inside = !inside;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function layersOf(task, found, pair) {
  const asked = ["given", "truth"].map((kind) => ({ name: kind, look: kind, marks: found.boxes.filter((box) => box[1] === kind) }));
  const answered = pair.map(({ place, answer }, at) => ({ name: task.labels[place], look: `m${at}`, marks: answer?.boxes ?? [] }));
  return [...asked, ...answered].filter((layer) => layer.marks.length);
}
const visible = (layer) => layersShown && !layersOff.get(layer.name);

function boxesOf(placed, layer, image) {
  const size = placed.width / 54;
  const marks = layer.marks.filter((mark) => mark[0] === image);
  return drawn("g", { class: layer.look }, ...marks.flatMap(([, , label, [x0, y0, x1, y1]]) => {
    const [x, y] = [Math.min(x0, x1), Math.min(y0, y1)];
    const box = drawn("rect", { x, y, width: Math.abs(x1 - x0), height: Math.abs(y1 - y0) });
    if (!label) return [box];
    // Labels of boxes at the right grow to the left, so that the picture's edge does not cut them.
    const right = x > placed.width * 0.6;
    return [box, drawn("text", {
      x: right ? Math.min(placed.width - 2, Math.max(x0, x1)) : Math.max(2, x), "text-anchor": right ? "end" : "start",
      y: Math.min(placed.height - 2, y > size * 1.3 ? y - size * 0.3 : y + size), "font-size": size,
    }, label)];
  }));
}

const TINTS = { truth: [0, 211, 154, 120], given: [86, 180, 233, 120], m0: [255, 140, 58, 120], m1: [240, 228, 66, 120] };
function figureOf(found, image, layers) {
  const placed = found.pictures[image];
  const shown = layers.filter(visible);
  const masks = shown.flatMap((layer) => layer.marks.filter((mark) => mark[0] === image && mark[4])
    .map((mark) => maskOf(mark[4], TINTS[layer.look])));
  const caption = found.captions[image] ?? `image ${image}`;
  const picture = node("img", { src: pictureUrl(placed.file), alt: caption, width: placed.width, height: placed.height });
  return node("figure", {}, node("div", { class: "frame" }, picture, ...masks,
    drawn("svg", { viewBox: `0 0 ${placed.width} ${placed.height}`, "aria-hidden": "true" }, ...shown.map((layer) => boxesOf(placed, layer, image)))),
  text("figcaption", caption));
}

// The pictures and what steps through them; `step` is null where nothing can be stepped through.
function stage(task, found, pair) {
  if (found.problem) return { made: text("p", found.problem, { class: "alert" }), step: null, toggle: () => {} };
  const layers = layersOf(task, found, pair);
  const count = found.pictures.length;
  const strip = count > 2;
  const frames = node("div", { class: strip ? "pictures one" : "pictures" });
  const toggles = node("div", { class: "layers" });
  let current = 0;
  const range = node("input", { type: "range", min: 0, max: count - 1, value: 0, "aria-label": "frame", input: () => show(Number(range.value)) });
  const thumbs = found.pictures.map(({ file }, at) => node("button", { type: "button", "aria-label": found.captions[at] ?? `image ${at}`, click: () => show(at) },
    node("img", { src: pictureUrl(file), alt: "", loading: "lazy" })));
  function show(at) {
    current = Math.min(count - 1, Math.max(0, at));
    range.value = current;
    thumbs.forEach((thumb, place) => thumb.setAttribute("aria-pressed", String(place === current)));
    if (strip && thumbs[current].parentNode) thumbs[current].parentNode.scrollLeft = thumbs[current].offsetLeft - 120;
    paint();
  }
  function paint() {
    frames.replaceChildren(...(strip ? [figureOf(found, current, layers)] : found.pictures.map((_, at) => figureOf(found, at, layers))));
    toggles.replaceChildren(...layers.map((layer) => node("button", {
      type: "button", class: `layer ${layer.look}`, "aria-pressed": String(visible(layer)), "data-layer": layer.look,
      click: () => { layersOff.set(layer.name, visible(layer)); layersShown = true; paint(); toggles.querySelector(`[data-layer=${layer.look}]`).focus(); },
    }, node("span", { class: "swatch" }), { given: "given", truth: "true" }[layer.look] ?? layer.name)));
  }
  if (count) show(0);
  return {
    made: node("div", { class: "stage" }, frames, strip ? range : null, strip ? node("div", { class: "strip" }, ...thumbs) : null, toggles),
    step: strip ? (by) => show(current + by) : null,
    toggle: () => { layersShown = !layersShown; paint(); },
  };
}
