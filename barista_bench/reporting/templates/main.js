// Show the screen of an address. Handle keys, theme and help.
import { parseAddress } from "./addresses.js";
import { index, taskBlock, whenLoaded } from "./blocks.js";
import { get, node, part, text, unfoldAll } from "./elements.js";
import { FAILURES, failuresScreen } from "./failures.js";
import { gallery } from "./gallery.js";
import { acrossScreen, firstScreen, tabOf } from "./overview.js";
import { sampleScreen } from "./sample.js";
import { shownTable } from "./tables.js";
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

/** Screens are made one after the other. Only the last requested screen is shown. */
let turn = 0;
/** @type {Record<string, () => void>} */
let actions = {};
/** @type {Place | null} */
let lastPlace = null;

function toStart() {
  location.hash = "";
}

/**
 * @param {Place} place
 * @returns {Promise<Screen>}
 */
async function screenOf({ task: taskAddress, sample, query }) {
  if (taskAddress === FAILURES && sample) return { parts: await failuresScreen(sample), keys: { Escape: toStart } };
  const number = index.tasks.findIndex(({ address }) => address === taskAddress);
  if (number < 0) {
    const parts = taskAddress === "across" ? await acrossScreen() : firstScreen(tabOf(taskAddress));
    return { parts, keys: {} };
  }
  const task = index.tasks[number];
  const taskData = await taskBlock(number);
  await whenLoaded; // pictures are at the end of the page
  if (sample) return sampleScreen(task, taskData, sample, query, () => show(true));
  const parts = await taskScreen(task, taskData);
  if (taskData.samples.length) parts.push(await gallery(task, taskData, query));
  return { parts, keys: { Escape: toStart, "/": () => get("by-text")?.focus() } };
}

/** @param {string} taskAddress the task of the address */
function fillTabs(taskAddress) {
  const task = index.tasks.findIndex(({ address }) => address === taskAddress);
  const active = task < 0 ? tabOf(taskAddress) : index.tabs.find((tab) => tab.tasks.includes(task));
  const marked = taskAddress === "across" || taskAddress === FAILURES ? null : active;
  part("tabs").replaceChildren(
    ...index.tabs.map((tab) => {
      const current = tab === marked ? (task < 0 ? "page" : "true") : null;
      return node("a", { href: `#${tab.address}`, "aria-current": current }, tab.board.title);
    }),
  );
}

/**
 * Move the reader after a change of screen: to the changed field, to the samples, or to the top.
 * @param {Place} newPlace
 * @param {string} focused the id of the element that had the focus, if the screen is made again
 * @param {boolean} isRedrawn
 */
function moveReader(newPlace, focused, isRedrawn) {
  const main = part("main");
  const isTask = index.tasks.some(({ address }) => address === newPlace.task);
  if (focused) get(focused)?.focus({ preventScroll: true });
  else if (isTask && !newPlace.sample && newPlace.query.size) get("samples")?.scrollIntoView();
  else if (lastPlace !== null && !isRedrawn) scrollTo(0, 0);
  if (lastPlace !== null && !isRedrawn && !focused) main.focus({ preventScroll: true });
  const field = lastPlace?.task === newPlace.task && !newPlace.sample && lastPlace.changed;
  if (field) get(field)?.focus({ preventScroll: true });
}

async function show(isRedrawn = false) {
  turn += 1;
  const ownTurn = turn;
  const newPlace = parseAddress(location.hash);
  fillTabs(newPlace.task);
  try {
    const { parts, keys } = await screenOf(newPlace);
    if (ownTurn !== turn) return;
    const focused = isRedrawn ? (document.activeElement?.id ?? "") : "";
    part("main").replaceChildren(...parts.filter((child) => child !== null && child !== undefined));
    actions = keys;
    moveReader(newPlace, focused, isRedrawn);
    lastPlace = newPlace;
  } catch (error) {
    if (ownTurn !== turn) return;
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
  const allActions = { t: nextTheme, "?": toggleHelp, ...actions };
  const action = allActions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
// Folded elements are printed too.
addEventListener("beforeprint", unfoldAll);
addEventListener("hashchange", () => {
  if (lastPlace) lastPlace.changed = document.activeElement?.id ?? "";
  show();
});
part("theme").addEventListener("click", nextTheme);
part("ask").addEventListener("click", toggleHelp);
part("provenance").addEventListener("toggle", () => {
  if (!part("provenance").querySelector("table"))
    part("provenance").append(...index.provenance.map((table) => shownTable(table)));
});
document.querySelector(".tools")?.removeAttribute("hidden");
show();
