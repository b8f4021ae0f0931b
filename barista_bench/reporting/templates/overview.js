// Screens over tasks: a benchmark's leaderboard and the reader's questions, and the analyses over all tasks.
import { acrossBlock, index } from "./blocks.js";
import { node, text } from "./elements.js";
import { leaderboard } from "./leaderboard.js";
import { graphOf } from "./propagation.js";
import { questions } from "./questions.js";
import { shownIfShort } from "./tables.js";

/** @import { Tab } from "./shapes.d.ts" */

/** The page's section "Why it fails", or null without diagnoses. */
const why = document.getElementById("why");
why?.remove();

/** The section with the diagnoses of one benchmark. @param {string} benchmark */
function whyOf(benchmark) {
  const parts = /** @type {HTMLElement[]} */ ([...(why?.querySelectorAll("[data-benchmark]") ?? [])]);
  for (const part of parts) part.hidden = part.dataset.benchmark !== benchmark;
  return why && !parts.every((part) => part.hidden) ? [why] : [];
}

/** The tab of an address, or the first one. @param {string} wanted */
export const tabOf = (wanted) => index.tabs.find((tab) => tab.address === wanted) ?? index.tabs[0];

/** @param {Tab} tab */
export function firstScreen(tab) {
  const across = "Across tasks: agreement, baselines, consistency, propagation of errors";
  return [
    text("h2", tab.board.title),
    ...whyOf(tab.board.benchmark),
    ...leaderboard(tab),
    text("h3", "Key questions"),
    ...questions(tab.tasks.map((number) => index.tasks[number])),
    node("p", {}, node("a", { href: "#across" }, across)),
  ];
}

export async function acrossScreen() {
  const acrossData = await acrossBlock();
  return [
    text("h2", "Across tasks"),
    ...acrossData.graphs.map(graphOf),
    ...acrossData.tables.map((table) => shownIfShort(table)),
    ...acrossData.left_out.map((reason) => text("p", `Not shown: ${reason}`, { class: "note" })),
  ];
}
