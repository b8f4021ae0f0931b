// What is shown is told by the address alone; keys, theme and help.
import { parsed } from "./addresses.js";
import { index, loaded, taskBlock } from "./blocks.js";
import { get, node, part, text, unfoldAll } from "./elements.js";
import { gallery } from "./gallery.js";
import { acrossScreen, firstScreen, tabOf } from "./overview.js";
import { sampleScreen } from "./sample.js";
import { taskScreen } from "./task.js";

/** @import { Place, Screen } from "./shapes.d.ts" */

const THEMES = ["auto", "dark", "light"];

function nextTheme() {
  const root = document.documentElement;
  const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "auto") + 1) % THEMES.length];
  root.dataset.theme = next;
  part("theme").textContent = `theme: ${next}`;
}

const help = /** @type {HTMLDialogElement} */ (part("help"));
const toggleHelp = () => (help.open ? help.close() : help.showModal());

/** Screens are made one after the other; only the last one asked for is shown. */
let turn = 0;
/** @type {Record<string, () => void>} */
let actions = {};
/** @type {Place | null} */
let before = null;

/**
 * @param {Place} place
 * @returns {Promise<Screen>}
 */
async function screenOf({ task: wanted, sample, query }) {
  const number = index.tasks.findIndex(({ address }) => address === wanted);
  if (number < 0) {
    const made = wanted === "across" ? await acrossScreen() : firstScreen(tabOf(wanted));
    return { made, keys: {} };
  }
  const task = index.tasks[number];
  const found = await taskBlock(number);
  await loaded; // pictures stand at the end of the page
  if (sample) return sampleScreen(task, found, sample, query, () => show(true));
  const made = await taskScreen(task, found);
  if (found.samples.length) made.push(await gallery(task, found, query));
  const leave = () => {
    location.hash = "";
  };
  return { made, keys: { Escape: leave, "/": () => get("by-text")?.focus() } };
}

/** @param {string} wanted the task of the address */
function fillTabs(wanted) {
  const task = index.tasks.findIndex(({ address }) => address === wanted);
  const active = task < 0 ? tabOf(wanted) : index.tabs.find((tab) => tab.tasks.includes(task));
  const marked = wanted === "across" ? null : active;
  part("tabs").replaceChildren(
    ...index.tabs.map((tab) => {
      const current = tab === marked ? (task < 0 ? "page" : "true") : null;
      return node("a", { href: `#${tab.address}`, "aria-current": current }, tab.board.title);
    }),
  );
}

/**
 * Where the reader is after a screen has changed: at the field that changed it, at the samples, at the top.
 * @param {Place} now
 * @param {string} focused the id of what had the focus, of a screen that is made anew
 * @param {boolean} again
 */
function place(now, focused, again) {
  const main = part("main");
  const isTask = index.tasks.some(({ address }) => address === now.task);
  if (focused) get(focused)?.focus({ preventScroll: true });
  else if (isTask && !now.sample && now.query.size) get("samples")?.scrollIntoView();
  else if (before !== null && !again) scrollTo(0, 0);
  if (before !== null && !again && !focused) main.focus({ preventScroll: true });
  const field = before?.task === now.task && !now.sample && before.changed;
  if (field) get(field)?.focus({ preventScroll: true });
}

async function show(again = false) {
  turn += 1;
  const mine = turn;
  const now = parsed(location.hash);
  fillTabs(now.task);
  try {
    const { made, keys } = await screenOf(now);
    if (mine !== turn) return;
    const focused = again ? (document.activeElement?.id ?? "") : "";
    part("main").replaceChildren(...made.filter((child) => child !== null && child !== undefined));
    actions = keys;
    place(now, focused, again);
    before = now;
  } catch (error) {
    if (mine !== turn) return;
    const reason = error instanceof Error ? error.message : String(error);
    const problem = `This part cannot be read (${reason}). It needs a browser of 2023 or later.`;
    part("main").replaceChildren(text("p", problem, { class: "alert" }));
  }
}

document.addEventListener("keydown", (event) => {
  const { target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || help.open || !(target instanceof HTMLElement)) return;
  if (target.closest("input:not([type=range]), select, textarea")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  if (target.closest(".tile, input") && event.key.startsWith("Arrow")) return;
  /** @type {Record<string, () => void>} */
  const known = { t: nextTheme, "?": toggleHelp, ...actions };
  const action = known[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
// What is folded on screen is printed all the same.
addEventListener("beforeprint", unfoldAll);
addEventListener("hashchange", () => {
  if (before) before.changed = document.activeElement?.id ?? "";
  show();
});
part("theme").addEventListener("click", nextTheme);
part("ask").addEventListener("click", toggleHelp);
document.querySelector(".tools")?.removeAttribute("hidden");
show();
