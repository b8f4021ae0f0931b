// Panels; one is shown at a time.
import { button, node } from "./elements.js";
import { explained } from "./status.js";

/** @import { Child } from "./page.d.ts" */

/** @param {Element} element */
const nameOf = (element) => element.getAttribute("aria-label") ?? element.textContent;

/**
 * Fills an element again; the field with the focus gets it back, if a field of its name is still there.
 * @param {HTMLElement} content
 * @param {Child[]} children
 */
function refill(content, children) {
  const focused = content.contains(document.activeElement) ? document.activeElement : null;
  const name = focused && nameOf(focused);
  content.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
  if (name === null) return;
  /** @type {NodeListOf<HTMLElement>} */
  const fields = content.querySelectorAll("button, input, select");
  [...fields].find((element) => nameOf(element) === name)?.focus();
}

/**
 * `panels` promise their elements by title; `fill()` asks the open one again, `open(title)` another.
 * @param {string} label
 * @param {Record<string, () => Child[] | Promise<Child[]>>} panels
 * @param {string} [open]
 */
export function tabPanels(label, panels, open = Object.keys(panels)[0]) {
  const content = node("div", { class: "content" });
  let turn = 0;
  const fill = explained(async () => {
    turn += 1;
    const mine = turn;
    for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.textContent === open));
    const children = await panels[open]();
    if (mine === turn) refill(content, children);
  });
  /** @param {string} title */
  const show = (title) => {
    open = title;
    return fill();
  };
  const tabs = Object.keys(panels).map((title) => button(title, () => show(title)));
  const row = node("div", { class: "tabs" }, ...tabs);
  return { element: node("section", { class: "side", "aria-label": label }, row, content), fill, open: show };
}
