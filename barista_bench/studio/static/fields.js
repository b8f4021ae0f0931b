// An answer as its JSON schema says, filled in by hand: each field is {element, read()}.
import { blankCanvas, button, node } from "./elements.js";
import { maskOf } from "./run_lengths.js";
import { say } from "./status.js";
import { words } from "./words.js";
/** @import { Child } from "./page.d.ts" */
/** @import { Schema } from "./asking_shapes.d.ts" */
/** @import { Mask } from "./shapes.d.ts" */
/** @import { Sheets } from "./sheets.js" */

/** @typedef {{ element: HTMLElement | null, read: () => unknown }} Field */

/**
 * @param {Schema} schema
 * @param {string} name
 * @param {Sheets} sheets
 * @returns {Field}
 */
export function field(schema, name, sheets) {
  if (schema.anyOf) return alternatives(schema.anyOf, name, sheets);
  if ("const" in schema) return { element: null, read: () => schema.const };
  if (schema.enum) return selectOf(schema.enum, name);
  if (schema.type === "array" && schema.maxItems === 4) return box(name, sheets);
  if (schema.type === "array") return list(schema, name, sheets);
  if (schema.type === "object" && schema.properties?.counts) return outline(sheets);
  if (schema.type === "object") return group(schema, name, sheets);
  return plain(schema, name);
}

/**
 * @param {Schema} schema
 * @param {string} name
 * @returns {Field}
 */
function plain({ type, minimum, maximum }, name) {
  const isNumber = type !== "string";
  const step = type === "integer" ? 1 : "any";
  const kind = { type: isNumber ? "number" : "text", step, min: minimum, max: maximum };
  const input = node("input", { ...kind, required: true, "data-name": name });
  const element = node("label", {}, `${words(name)} `, input);
  return { element, read: () => (isNumber ? Number(input.value) : input.value) };
}

/**
 * @template Value
 * @param {Value[]} values
 * @param {string} name
 */
function selectOf(values, name) {
  const options = values.map((value, at) => node("option", { value: at }, String(value)));
  const nothing = values.length > 1 ? node("option", { value: "" }, "…") : null;
  const select = node("select", { required: true }, nothing, ...options);
  return { element: node("label", {}, `${words(name)} `, select), read: () => values[Number(select.value)], select };
}

/**
 * @param {string} name
 * @param {Child[]} parts
 */
const fieldset = (name, ...parts) => node("fieldset", {}, name ? node("legend", {}, words(name)) : null, ...parts);

/**
 * @param {Schema} schema
 * @param {string} name
 * @param {Sheets} sheets
 * @returns {Field}
 */
function group({ properties = {} }, name, sheets) {
  /** @type {[string, Field][]} */
  const fields = Object.entries(properties).map(([key, schema]) => [key, field(schema, key, sheets)]);
  const element = fieldset(name, ...fields.map(([, { element: part }]) => part));
  return { element, read: () => Object.fromEntries(fields.map(([key, { read }]) => [key, read()])) };
}

/** The fixed fields of a record, in words. @param {Schema} schema */
const titleOf = ({ properties = {} }) =>
  Object.values(properties)
    .filter((part) => "const" in part)
    .map((part) => part.const)
    .join(", ");

/**
 * One of several records with different fixed fields.
 * @param {Schema[]} schemas
 * @param {string} name
 * @param {Sheets} sheets
 * @returns {Field}
 */
function alternatives(schemas, name, sheets) {
  const titles = schemas.map(titleOf);
  const choice = selectOf(titles, "kind");
  const holder = node("div", {});
  /** @type {Field | null} */
  let record = null;
  const fill = () => {
    if (!choice.select.value) return;
    record = field(schemas[titles.indexOf(choice.read())], name, sheets);
    holder.replaceChildren(...(record.element ? [record.element] : []));
    sheets.aim();
  };
  choice.element.addEventListener("change", fill);
  fill();
  return { element: node("div", { class: "alternatives" }, choice.element, holder), read: () => record?.read() };
}

/**
 * @param {Schema} schema
 * @param {string} name
 * @param {Sheets} sheets
 * @returns {Field}
 */
function list({ items = {}, minItems = 0, maxItems = Infinity }, name, sheets) {
  /** @type {Map<HTMLElement, Field>} */
  const rows = new Map();
  const holder = node("ol", { class: "entries" });
  const entry = name.replace(/e?s$/, "");
  const add = () => {
    if (rows.size >= maxItems) {
      say(`no more than ${maxItems}`);
      return;
    }
    const item = field(items, items.type === "object" || items.anyOf ? "" : entry, sheets);
    const remove = () => {
      rows.delete(row);
      row.remove();
      sheets.aim();
    };
    /** @type {HTMLElement} */
    const row = node("li", {}, item.element, button("remove", remove, { "data-icon": "x" }));
    rows.set(row, item);
    holder.append(row);
    sheets.aim();
    /** @type {HTMLElement | null | undefined} */
    const first = item.element?.querySelector("input, select, button");
    first?.focus();
  };
  for (let at = 0; at < minItems; at += 1) add();
  const element = fieldset(name, holder, button(`add ${words(entry) || "one"}`, add, { "data-icon": "plus" }));
  return { element, read: () => [...rows.values()].map(({ read }) => read()) };
}

/**
 * Four numbers, typed or drawn: x and y of two corners, `scale` to a full side.
 * @param {string} name
 * @param {Sheets} sheets
 * @returns {Field}
 */
function box(name, sheets) {
  const { scale } = sheets;
  const inputs = ["left", "top", "right", "bottom"].map((side) => {
    const label = `${words(name)}: ${side}`;
    return node("input", { type: "number", min: 0, max: scale, required: true, "aria-label": label });
  });
  return sheets.join(
    {
      read: () => inputs.map(({ value }) => Number(value)),
      isEmpty: () => inputs.some(({ value }) => !value),
      outline: (points) => {
        const [first, last] = [points[0], points[points.length - 1]];
        const [left, right] = [first[0], last[0]].sort((a, b) => a - b);
        const [top, bottom] = [first[1], last[1]].sort((a, b) => a - b);
        return [
          [left, top],
          [right, top],
          [right, bottom],
          [left, bottom],
        ];
      },
      take: (_, [[left, top], , [right, bottom]], { width, height }) => {
        for (const [at, share] of [left / width, top / height, right / width, bottom / height].entries()) {
          inputs[at].value = String(Math.round(share * scale));
        }
      },
    },
    `${words(name)} `,
    ...inputs,
  );
}

/**
 * Run lengths of the pixels inside of an outline drawn by hand; a field `frame` beside it takes the picture's number.
 * @param {Sheets} sheets
 * @returns {Field}
 */
function outline(sheets) {
  const state = node("output", {}, "nothing drawn");
  /** @type {Mask | null} */
  let mask = null;
  const outlineField = sheets.join(
    {
      read: () => {
        if (!mask) throw new Error("draw an outline, or remove the entry");
        return mask;
      },
      isEmpty: () => !mask,
      outline: (points) => points,
      take: (number, points, size) => {
        const pen = blankCanvas(size).context;
        pen.beginPath();
        for (const [x, y] of points) pen.lineTo(x, y);
        pen.fill();
        mask = maskOf(pen);
        state.textContent = `drawn on picture ${number + 1}`;
        /** @type {HTMLInputElement | null | undefined} */
        const frame = outlineField.element.closest("fieldset")?.querySelector("[data-name=frame]");
        if (frame) frame.value = String(number);
      },
    },
    "outline ",
    state,
  );
  return outlineField;
}
