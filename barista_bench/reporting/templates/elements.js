// Elements of the page. Texts come from models and annotations, so they only become text nodes.
/** @import { Child, Options } from "./shapes.d.ts" */

const SVG = "http://www.w3.org/2000/svg";

/** The element with an id, or null. @param {string} id */
export const get = (id) => document.getElementById(id);

/**
 * An element that every page has.
 * @param {string} id
 */
export function part(id) {
  const element = get(id);
  if (!element) throw new Error(`the page has no ${id}`);
  return element;
}

/**
 * @template {Element} Filled
 * @param {Filled} element
 * @param {Options} options
 * @param {(Child | Child[])[]} children
 */
function fill(element, options, children) {
  for (const [name, value] of Object.entries(options)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== "") element.append(child);
  return element;
}

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Options} [options]
 * @param {(Child | Child[])[]} children
 */
export const node = (tag, options = {}, ...children) => fill(document.createElement(tag), options, children);

/**
 * Make an SVG element, like `node`.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Options} [options]
 * @param {(Child | Child[])[]} children
 */
export const svgNode = (tag, options = {}, ...children) => fill(document.createElementNS(SVG, tag), options, children);

/**
 * An element that holds one text.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} content
 * @param {Options} [options]
 */
export const text = (tag, content, options = {}) => node(tag, options, content);

/** @type {WeakMap<Element, () => void>} */
const unfoldings = new WeakMap();

/**
 * A folded element is made when it is opened, so large tables cost no time before.
 * @param {string} title
 * @param {() => Child | Child[]} make
 */
export function foldedBlock(title, make, open = false) {
  const body = node("div");
  const unfold = () => {
    if (!body.firstChild) fill(body, {}, [make()]);
  };
  const unfoldOpened = () => {
    if (element.open) unfold();
  };
  const element = node("details", { class: "block", open, toggle: unfoldOpened }, text("summary", title), body);
  unfoldings.set(element, unfold);
  if (open) unfold();
  return element;
}

/** Open all folded elements. */
export function unfoldAll() {
  for (const closed of document.querySelectorAll("main details:not([open])")) {
    unfoldings.get(closed)?.();
    closed.setAttribute("open", "");
  }
}
