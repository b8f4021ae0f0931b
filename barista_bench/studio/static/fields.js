// An answer as its JSON schema says, filled in by hand: each field is {element, read()}; boxes and outlines are drawn on pictures.
import { button, drawn, node, say } from "./page.js";
import { encoded } from "./masks.js";

/**
 * Pictures to draw on. A drag fills the field that is aimed at: `take(number, points, size, isWhole)`, points in pixels of
 * picture `number`; then comes the next empty one. `scale` is what a full side of a picture maps to in boxes.
 */
export class Sheets {
  constructor(sources, scale) {
    Object.assign(this, { scale, target: null, fields: new Set() });
    this.marks = new Map();
    this.sheets = sources.map((src, number) => {
      const image = node("img", { src, alt: `picture ${number + 1}`, draggable: "false" });
      const layer = drawn("svg", { class: "layer", "aria-hidden": "true" });
      const element = node("div", { class: "sheet" }, image, layer);
      element.addEventListener("pointerdown", (press) => this.drag(number, press));
      return { image, layer, element };
    });
  }

  /** Resolves when all pictures are there to be seen. */
  async ready() {
    for (const { image, layer } of this.sheets) {
      await image.decode();
      layer.setAttribute("viewBox", `0 0 ${image.naturalWidth} ${image.naturalHeight}`);
    }
  }

  size(number) {
    const { naturalWidth: width, naturalHeight: height } = this.sheets[number].image;
    return { width, height };
  }

  drag(number, press) {
    const { target } = this;
    if (!target) return;
    press.preventDefault();
    const { element } = this.sheets[number];
    const { width, height } = this.size(number);
    const points = [];
    const follow = ({ clientX, clientY }) => {
      const { left, top, width: across, height: down } = element.getBoundingClientRect();
      const inside = (value, most) => Math.max(0, Math.min(most, value * most));
      points.push([inside((clientX - left) / across, width), inside((clientY - top) / down, height)]);
      if (points.length > 2) target.take(number, points, { width, height }, false);
    };
    element.setPointerCapture(press.pointerId);
    follow(press);
    element.addEventListener("pointermove", follow);
    element.addEventListener("pointerup", () => {
      element.removeEventListener("pointermove", follow);
      if (points.length < 3) return;
      target.take(number, points, { width, height }, true);
      this.aim();
    }, { once: true });
  }

  /** By default at the first field that is empty. */
  aim(target = [...this.fields].find((made) => made.isEmpty())) {
    this.target = target ?? null;
    for (const made of this.fields) made.drawing.setAttribute("aria-pressed", String(made === target));
  }

  /** A field that can be drawn: gives it a button, and takes it off the pictures when it is removed. */
  join(made) {
    made.drawing = button("draw", () => {
      this.aim(made);
      say("drag over the picture");
    });
    made.removed = () => {
      this.fields.delete(made);
      this.mark(made, 0, null);
      this.aim();
    };
    this.fields.add(made);
    this.aim();
    return made.drawing;
  }

  /** What a field shows on a picture; null takes it away. */
  mark(field, number, points) {
    this.marks.get(field)?.remove();
    if (!points) return;
    const shape = drawn("polygon", { points: points.map((point) => point.join(",")).join(" "), class: "drawn" });
    this.marks.set(field, shape);
    this.sheets[number].layer.append(shape);
  }
}

export function field(schema, name, sheets) {
  if (schema.anyOf) return alternatives(schema.anyOf, name, sheets);
  if ("const" in schema) return { element: null, read: () => schema.const };
  if (schema.enum) return selected(schema.enum, name);
  if (schema.type === "array" && schema.maxItems === 4) return box(schema, name, sheets);
  if (schema.type === "array") return list(schema, name, sheets);
  if (schema.type === "object" && schema.properties.counts) return outline(sheets);
  if (schema.type === "object") return group(schema, name, sheets);
  return plain(schema, name);
}

const words = (name) => name.replaceAll("_", " ");

function plain({ type, minimum, maximum }, name) {
  const isNumber = type !== "string";
  const input = node("input", { type: isNumber ? "number" : "text", step: type === "integer" ? 1 : "any", min: minimum, max: maximum, required: true });
  return { element: node("label", {}, `${words(name)} `, input), input, read: () => (isNumber ? Number(input.value) : input.value) };
}

function selected(values, name) {
  const select = node("select", { required: true }, ...values.map((value, at) => node("option", { value: at }, String(value))));
  return { element: node("label", {}, `${words(name)} `, select), read: () => values[Number(select.value)] };
}

function group({ properties }, name, sheets) {
  const fields = Object.entries(properties).map(([key, schema]) => [key, field(schema, key, sheets)]);
  const elements = fields.map(([, { element }]) => element);
  const number = fields.find(([key]) => key === "frame")?.[1];
  for (const [, made] of fields) made.drawnOn = (picture) => { if (number) number.input.value = picture; };
  return { element: node("fieldset", {}, name ? node("legend", {}, words(name)) : null, ...elements), removed: () => fields.forEach(([, made]) => made.removed?.()),
    read: () => Object.fromEntries(fields.map(([key, { read }]) => [key, read()])) };
}

/** One of several records, which differ in what they hold fixed. */
function alternatives(schemas, name, sheets) {
  const titles = schemas.map(({ properties }) => Object.values(properties).filter((part) => "const" in part).map((part) => part.const).join(", "));
  const choice = selected(titles, "kind");
  const holder = node("div", {});
  let made = null;
  const fill = () => {
    made?.removed?.();
    made = field(schemas[titles.indexOf(choice.read())], name, sheets);
    holder.replaceChildren(made.element);
  };
  choice.element.addEventListener("change", fill);
  fill();
  return { element: node("div", { class: "alternatives" }, choice.element, holder), read: () => made.read(), removed: () => made.removed?.() };
}

function list({ items, minItems = 0, maxItems = Infinity }, name, sheets) {
  const rows = new Map();
  const holder = node("ol", { class: "entries" });
  const add = () => {
    if (rows.size >= maxItems) {
      say(`no more than ${maxItems}`);
      return;
    }
    const made = field(items, items.type === "object" || items.anyOf ? "" : name.replace(/e?s$/, ""), sheets);
    const row = node("li", {}, made.element, button("remove", () => {
      rows.delete(row);
      row.remove();
      made.removed?.();
    }));
    rows.set(row, made);
    holder.append(row);
    made.element.querySelector("input, select, button")?.focus();
  };
  const element = node("fieldset", {}, name ? node("legend", {}, words(name)) : null, holder, button(`add ${words(name.replace(/e?s$/, "")) || "one"}`, add));
  for (let at = 0; at < minItems; at += 1) add();
  return { element, read: () => [...rows.values()].map(({ read }) => read()), removed: () => rows.forEach((made) => made.removed?.()) };
}

/** Four numbers, typed or drawn: x and y of two corners, `scale` to a full side. */
function box(schema, name, sheets) {
  const inputs = ["left", "top", "right", "bottom"].map((side) => node("input", { type: "number", min: 0, max: sheets.scale, required: true, "aria-label": `${words(name)}: ${side}` }));
  const made = { read: () => inputs.map(({ value }) => Number(value)), isEmpty: () => inputs.some(({ value }) => !value) };
  made.take = (number, points, { width, height }) => {
    const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
    const [left, top, right, bottom] = [xs[0], ys[0], xs.at(-1), ys.at(-1)];
    const corners = [Math.min(left, right) / width, Math.min(top, bottom) / height, Math.max(left, right) / width, Math.max(top, bottom) / height];
    inputs.forEach((input, at) => { input.value = Math.round(corners[at] * sheets.scale); });
    sheets.mark(made, number, [[left, top], [right, top], [right, bottom], [left, bottom]]);
  };
  made.element = node("span", { class: "inline" }, `${words(name)} `, ...inputs, sheets.join(made));
  return made;
}

/** Run lengths of the pixels inside of outlines drawn by hand. */
function outline(sheets) {
  const state = node("output", {}, "nothing drawn");
  let canvas = null;
  const made = { isEmpty: () => !canvas, read: () => {
    if (!canvas) throw new Error("draw an outline, or remove the entry");
    const { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    return encoded(Uint8Array.from({ length: width * height }, (_, at) => (data[4 * at + 3] > 127 ? 1 : 0)), height, width);
  } };
  made.take = (number, points, size, isWhole) => {
    sheets.mark(made, number, points);
    if (!isWhole) return;
    canvas = Object.assign(document.createElement("canvas"), size);
    const pen = canvas.getContext("2d");
    pen.beginPath();
    for (const point of points) pen.lineTo(...point);
    pen.fill();
    state.textContent = `drawn on picture ${number + 1}`;
    made.drawnOn?.(number);
  };
  made.element = node("span", { class: "inline" }, "outline ", state, sheets.join(made));
  return made;
}
