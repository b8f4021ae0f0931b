// Which view the address names, its keys, and the way between views.
import { agreementView } from "./agreement.js";
import { annotateView } from "./annotate.js";
import { answerView } from "./answer.js";
import { draftView } from "./draft.js";
import { node } from "./elements.js";
import { exploreView } from "./explore.js";
import { address } from "./graph_player.js";
import { homeView } from "./home.js";
import { makeView } from "./make.js";
import { openPalette } from "./palette.js";
import { questionsView } from "./questions.js";
import { rateView } from "./rate.js";
import { searchView } from "./search.js";
import { ask, below, waitUntilDone } from "./server.js";
import { explained, part, reasonOf, say } from "./status.js";

/** @import { Opened } from "./home_shapes.d.ts" */
/** @import { Keys, View } from "./page.d.ts" */

const studio = ask("/api/studio");

/**
 * @param {Opened} opened
 * @returns {[title: string, link: string, count: number][]}
 */
const uses = (opened) => [
  ["Home", "#/", 1],
  ["Search", "#/search", opened.graphs.length],
  ["Words", "#/words", opened.graphs.length],
  ["Runs", "#/runs", opened.runs],
  ["Questions", "#/questions", opened.reviews],
  ["Answer", "#/answer", opened.datasets],
  ["Rate", "#/rate", opened.rated],
  ["Agreement", "#/agreement", opened.compared],
  ["Make", "#/make", opened.folder ? 1 : 0],
];
/** Routes of the first tab beside its own. */
const HOME = ["graph", "project"];

/**
 * From a sample of a report to its moment.
 * @param {string} id
 * @returns {Promise<View>}
 */
async function exampleView(id) {
  const { video, frames } = await ask("/api/example", { id });
  location.replace(address(video, frames[0], { example: id }));
  return { elements: [] };
}

/** @returns {View} */
function runsView() {
  const words = new Text("scoring ... ");
  const state = node("p", {}, words, node("progress", { "aria-label": "scoring" }));
  const onShown = async () => {
    await waitUntilDone(
      () => ask("/api/report"),
      ({ runs }) => {
        words.textContent = `scoring ${runs} runs ... `;
      },
      state,
    );
    location.replace(below("/report"));
  };
  return { elements: [node("h2", {}, "Runs"), state], onShown };
}

// By the first part of the address; `name` is the second.
/** @type {Record<string, (name: string, query: URLSearchParams) => View | Promise<View>>} */
const ROUTES = {
  "": async (_, query) => homeView(await studio, query),
  graph: exploreView,
  search: async (_, query) => searchView((await studio).graphs, query),
  words: draftView,
  example: exampleView,
  runs: runsView,
  questions: questionsView,
  answer: (_, query) => answerView(query),
  rate: rateView,
  project: annotateView,
  agreement: async () => agreementView((await studio).projects),
  make: (_, query) => makeView(query),
};

/** A decoded part of an address; a broken one unchanged. @param {string} text */
const decodePart = (text) => (/%(?![0-9a-f]{2})/i.test(text) ? text : decodeURIComponent(text));

/** @param {string} route */
async function fillTabs(route) {
  const current = `#/${HOME.includes(route) ? "" : route}`;
  const tabs = uses(await studio)
    .filter(([, , count]) => count > 0)
    .map(([title, href]) => node("a", { href, "aria-current": href === current ? "page" : null }, title));
  part("tabs").replaceChildren(...tabs);
}

/** @type {Keys} */
let keys = {};
/** Views are made one after the other; only the last one asked for is shown. */
let turn = 0;

async function show() {
  turn += 1;
  const mine = turn;
  const [path, query] = location.hash.replace(/^#\//, "").split("?");
  const [route, name] = path.split("/").map(decodePart);
  fillTabs(route).catch((error) => say(reasonOf(error)));
  const main = part("main");
  main.setAttribute("aria-busy", "true");
  say(name ? `reading ${name} ...` : "");
  try {
    const view = await (Object.hasOwn(ROUTES, route) ? ROUTES[route] : ROUTES[""])(name, new URLSearchParams(query));
    if (mine !== turn) return;
    keys = view.keys ?? {};
    part("keys").hidden = !Object.keys(keys).length;
    main.replaceChildren(...node("main", {}, view.elements).childNodes);
    say("");
    await view.onShown?.();
  } catch (error) {
    if (mine === turn) main.replaceChildren(node("p", { class: "alert" }, reasonOf(error)));
    say("");
  } finally {
    if (mine === turn) main.removeAttribute("aria-busy");
  }
}

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.altKey || !(target instanceof Element)) return;
  if (target.closest("input:not([type=range]), select, textarea, dialog")) return;
  if (key === " " && target.closest("button, summary")) return;
  const modifier = event.ctrlKey || event.metaKey ? "ctrl+" : event.shiftKey && key.startsWith("Arrow") ? "shift+" : "";
  const [, act] = (key === "?" ? ["", () => openPalette(keys)] : keys[modifier + key]) ?? [];
  if (!act) return;
  event.preventDefault();
  explained(act)();
});
part("keys").addEventListener("click", () => openPalette(keys));
addEventListener("hashchange", show);
show();
