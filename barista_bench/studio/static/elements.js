// Elements of the page, and what follows a pressed pointer.
import { explained } from "./status.js";

/** @import { Child, Properties } from "./page.d.ts" */

/**
 * @template {Element} Made
 * @param {Made} element
 * @param {Properties} properties
 * @param {(Child | Child[])[]} children
 */
function fill(element, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}

/**
 * An element. Properties: `class`, attributes; functions are listeners of the event of that name. Strings become text.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Properties} [properties]
 * @param {(Child | Child[])[]} children
 */
export const node = (tag, properties = {}, ...children) => fill(document.createElement(tag), properties, children);

/**
 * As `node`, of SVG.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Properties} [properties]
 * @param {(Child | Child[])[]} children
 */
export const svgNode = (tag, properties = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);

/**
 * A button; the page shows an error of the action it starts.
 * @param {string} label
 * @param {(event: MouseEvent) => unknown} click
 * @param {Properties} [properties]
 */
export const button = (label, click, properties = {}) =>
  node("button", { type: "button", click: explained(click), ...properties }, label);

/** The name of a field on the page. @param {HTMLInputElement} field */
function fieldName(field) {
  if (field.type === "radio") {
    const group = field.closest("fieldset, [role=group]");
    return group?.querySelector("legend")?.textContent ?? `one of the ${group?.getAttribute("aria-label")}`;
  }
  const own = [...(field.labels?.[0]?.childNodes ?? [])].find((child) => child.nodeType === Node.TEXT_NODE);
  return field.getAttribute("aria-label") ?? own?.textContent?.trim() ?? field.name;
}

/** A message about missing or wrong fields. @param {HTMLInputElement[]} incomplete */
function incompleteText(incomplete) {
  const missing = incomplete.filter(({ validity }) => validity.valueMissing);
  const wrong = incomplete.filter(({ validity }) => !validity.valueMissing);
  const names = [...new Set(missing.map(fieldName))].join(", ");
  return [names && `Missing: ${names}.`, ...wrong.map((field) => `${fieldName(field)}: ${field.validationMessage}`)]
    .filter(Boolean)
    .join(" ");
}

/**
 * A form whose fields `submit(form)` sends, without leaving the page. Missing fields are named below it.
 * @param {Properties} properties
 * @param {(element: HTMLFormElement) => unknown} submit
 * @param {(Child | Child[])[]} children
 */
export function form(properties, submit, ...children) {
  const problem = node("p", { class: "alert", role: "alert", hidden: true });
  const handIn = explained(() => {
    const incomplete = /** @type {HTMLInputElement[]} */ ([...element.elements]).filter(
      (field) => !field.checkValidity(),
    );
    problem.textContent = incompleteText(incomplete);
    problem.hidden = !incomplete.length;
    if (problem.hidden) return submit(element);
    element.append(problem);
    incomplete[0].focus();
    return undefined;
  });
  /** @param {Event} event */
  const submitted = (event) => {
    event.preventDefault();
    return handIn();
  };
  /** @type {HTMLFormElement} */
  const element = node("form", { ...properties, novalidate: true, submit: submitted }, ...children);
  return element;
}

/**
 * Items under a heading that counts them; without any, what to do.
 * @param {string} title
 * @param {(Child | Child[])[]} items
 * @param {string} [otherwise]
 */
export const countedList = (title, items, otherwise = "") => [
  node("h4", {}, `${title} (${items.length})`),
  items.length || !otherwise
    ? node("ul", { class: "facts-list" }, ...items.map((item) => node("li", {}, item)))
    : node("p", { class: "nothing" }, otherwise),
];

const WORD_OF_KIND = { hit: "right", miss: "missing", wrong: "wrong" };

/** Right, missing and wrong parts of an answer. @param {import("./asking_shapes.d.ts").ExplainedRows} rows */
export const explainedList = (rows) =>
  node("ul", {}, ...rows.map(([kind, row]) => node("li", {}, node("b", {}, `${WORD_OF_KIND[kind]}: `), row)));

/**
 * An empty canvas of a size in pixels, and its context.
 * @param {{ width: number, height: number }} size
 * @param {CanvasRenderingContext2DSettings} [settings]
 */
export function blankCanvas({ width, height }, settings) {
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d", settings);
  if (!context) throw new Error("this browser does not support canvas");
  return { canvas, context };
}

/**
 * Follows a pressed pointer: `move(event)` wherever it goes, `end(event)` when it is lifted.
 * @param {PointerEvent} press
 * @param {(event: PointerEvent) => void} move
 * @param {(event: PointerEvent) => void} end
 */
export function follow(press, move, end) {
  const target = /** @type {HTMLElement} */ (press.currentTarget);
  /** @param {PointerEvent} event */
  const lift = (event) => {
    target.removeEventListener("pointermove", move);
    end(event);
  };
  target.setPointerCapture(press.pointerId);
  target.addEventListener("pointermove", move);
  target.addEventListener("pointerup", lift, { once: true });
}
