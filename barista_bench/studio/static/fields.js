// An answer as its JSON schema says, filled in by hand: each field is {element, read()}; boxes and outlines are drawn on pictures.
import { button, drawn, follow, node, say } from "./page.js";
import { maskOf } from "./masks.js";

/**
 * Pictures to draw on. A drag fills the field that is aimed at, by its `take(number, points, size)`, points in pixels of
 * picture `number`; then comes the next empty one. `scale` is what a full side of a picture maps to in boxes.
 */
export class Sheets {
  constructor(sources, scale) {
    Object.assign(this, { scale, target: null, fields: [] });
    this.sheets = sources.map((src, number) => {
      const image = node("img", { src, alt: `picture ${number + 1}`, draggable: "false" });
      const layer = drawn("svg", { class: "layer", "aria-hidden": "true" });
      return { image, layer, element: node("div", { class: "sheet", pointerdown: (press) => this.drag(number, press) }, image, layer) };
    });
  }

  /** Resolves when all pictures are there to be seen. */
  async ready() {
    for (const { image, layer } of this.sheets) {
      await image.decode();
      layer.setAttribute("viewBox", `0 0 ${image.naturalWidth} ${image.naturalHeight}`);
    }
  }

  drag(number, press) {
    const { target } = this;
    if (!target) {
      say("add an entry first: it takes what is drawn");
      return;
    }
    press.preventDefault();
    const { element, layer, image: { naturalWidth: width, naturalHeight: height } } = this.sheets[number];
    const points = [];
    target.mark?.remove();
    target.mark = drawn("polygon", { class: "drawn" });
    layer.append(target.mark);
    const move = ({ clientX, clientY }) => {
      const { left, top, width: across, height: down } = element.getBoundingClientRect();
      const within = (share, most) => Math.max(0, Math.min(most, share * most));
      points.push([within((clientX - left) / across, width), within((clientY - top) / down, height)]);
      target.mark.setAttribute("points", target.outline(points).map((point) => point.join(",")).join(" "));
    };
    move(press);
    follow(press, move, () => {
      if (points.length < 3) return;
      target.take(number, target.outline(points), { width, height });
      this.aim();
    });
  }

  /** By default at the first field that is empty; those that were taken off the page take their marks along. */
  aim(target = null) {
    const isShown = ({ element }) => element.isConnected;
    for (const gone of this.fields.filter((made) => !isShown(made))) gone.mark?.remove();
    this.target = target ?? this.fields.find((made) => isShown(made) && made.isEmpty());
    for (const made of this.fields) made.drawing.setAttribute("aria-pressed", String(made === this.target));
  }

  /** A field that can be drawn, `{read, isEmpty, outline(points), take}`, with its inputs and a button to draw it. */
  join(made, ...inputs) {
    made.drawing = button("draw", () => {
      this.aim(made);
      say("drag over the picture");
    });
    made.element = node("span", { class: "inline" }, ...inputs, made.drawing);
    this.fields.push(made);
    return made;
  }
}

export function field(schema, name, sheets) {
  if (schema.anyOf) return alternatives(schema.anyOf, name, sheets);
  if ("const" in schema) return { element: null, read: () => schema.const };
  if (schema.enum) return selected(schema.enum, name);
  if (schema.type === "array" && schema.maxItems === 4) return box(name, sheets);
  if (schema.type === "array") return list(schema, name, sheets);
  if (schema.type === "object" && schema.properties.counts) return outline(sheets);
  if (schema.type === "object") return group(schema, name, sheets);
  return plain(schema, name);
}

const words = (name) => name.replaceAll("_", " ");

function plain({ type, minimum, maximum }, name) {
  const isNumber = type !== "string";
  const input = node("input", { type: isNumber ? "number" : "text", step: type === "integer" ? 1 : "any", min: minimum, max: maximum, required: true, "data-name": name });
  return { element: node("label", {}, `${words(name)} `, input), read: () => (isNumber ? Number(input.value) : input.value) };
}

function selected(values, name) {
  const select = node("select", { required: true }, values.length > 1 ? node("option", { value: "" }, "…") : null, ...values.map((value, at) => node("option", { value: at }, String(value))));
  return { element: node("label", {}, `${words(name)} `, select), read: () => values[Number(select.value)], select };
}

const fieldset = (name, ...parts) => node("fieldset", {}, name ? node("legend", {}, words(name)) : null, ...parts);

function group({ properties }, name, sheets) {
  const fields = Object.entries(properties).map(([key, schema]) => [key, field(schema, key, sheets)]);
  return { element: fieldset(name, ...fields.map(([, { element }]) => element)), read: () => Object.fromEntries(fields.map(([key, { read }]) => [key, read()])) };
}

/** One of several records, which differ in what they hold fixed. */
function alternatives(schemas, name, sheets) {
  const titles = schemas.map(({ properties }) => Object.values(properties).filter((part) => "const" in part).map((part) => part.const).join(", "));
  const choice = selected(titles, "kind");
  const holder = node("div", {});
  let made = null;
  const fill = () => {
    if (!choice.select.value) return;
    made = field(schemas[titles.indexOf(choice.read())], name, sheets);
    holder.replaceChildren(made.element);
    sheets.aim();
  };
  choice.element.addEventListener("change", fill);
  fill();
  return { element: node("div", { class: "alternatives" }, choice.element, holder), read: () => made.read() };
}

function list({ items, minItems = 0, maxItems = Infinity }, name, sheets) {
  const rows = new Map();
  const holder = node("ol", { class: "entries" });
  const entry = name.replace(/e?s$/, "");
  const add = () => {
    if (rows.size >= maxItems) {
      say(`no more than ${maxItems}`);
      return;
    }
    const made = field(items, items.type === "object" || items.anyOf ? "" : entry, sheets);
    const row = node("li", {}, made.element, button("remove", () => {
      rows.delete(row);
      row.remove();
      sheets.aim();
    }));
    rows.set(row, made);
    holder.append(row);
    sheets.aim();
    made.element.querySelector("input, select, button")?.focus();
  };
  for (let at = 0; at < minItems; at += 1) add();
  return { element: fieldset(name, holder, button(`add ${words(entry) || "one"}`, add)), read: () => [...rows.values()].map(({ read }) => read()) };
}

/** Four numbers, typed or drawn: x and y of two corners, `scale` to a full side. */
function box(name, sheets) {
  const inputs = ["left", "top", "right", "bottom"].map((side) => node("input", { type: "number", min: 0, max: sheets.scale, required: true, "aria-label": `${words(name)}: ${side}` }));
  return sheets.join({
    read: () => inputs.map(({ value }) => Number(value)),
    isEmpty: () => inputs.some(({ value }) => !value),
    outline: (points) => {
      const [[left, right], [top, bottom]] = [0, 1].map((side) => [points[0][side], points.at(-1)[side]].sort((a, b) => a - b));
      return [[left, top], [right, top], [right, bottom], [left, bottom]];
    },
    take: (_, [[left, top], , [right, bottom]], { width, height }) => [left / width, top / height, right / width, bottom / height]
      .forEach((share, at) => { inputs[at].value = Math.round(share * sheets.scale); }),
  }, `${words(name)} `, ...inputs);
}

/** Run lengths of the pixels inside of an outline drawn by hand; a field `frame` beside it takes the picture's number. */
function outline(sheets) {
  const state = node("output", {}, "nothing drawn");
  let mask = null;
  const made = sheets.join({
    read: () => {
      if (!mask) throw new Error("draw an outline, or remove the entry");
      return mask;
    },
    isEmpty: () => !mask,
    outline: (points) => points,
    take: (number, points, size) => {
      const canvas = Object.assign(document.createElement("canvas"), size);
      const pen = canvas.getContext("2d");
      pen.beginPath();
      for (const point of points) pen.lineTo(...point);
      pen.fill();
      mask = maskOf(canvas);
      state.textContent = `drawn on picture ${number + 1}`;
      const frame = made.element.closest("fieldset")?.querySelector("[data-name=frame]");
      if (frame) frame.value = number;
    },
  }, "outline ", state);
  return made;
}
