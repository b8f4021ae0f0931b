// Which view the address names, its keys, and the way between views.
import { ask, node, say, sleep } from "./page.js";
import { answerView, rateView } from "./answer.js";
import { agreementView } from "./agreement.js";
import { annotateView } from "./annotate.js";
import { address, exploreView, searchView } from "./explore.js";
import { questionsView } from "./questions.js";

const opened = await ask("/api/studio");
const graphs = opened.videos.filter(({ kind }) => kind === "graph");
const projects = opened.videos.filter(({ kind }) => kind === "project");

const TABS = [
  ["Explore", "#/", graphs.length > 0],
  ["Search", "#/search", graphs.length > 0],
  ["Runs", "#/runs", opened.runs > 0],
  ["Questions", "#/questions", opened.reviews.length > 0],
  ["Answer", "#/answer", opened.datasets.length > 0],
  ["Rate", "#/rate", opened.rated > 0],
  ["Agreement", "#/agreement", opened.compared.length > 0],
].filter(([, , isOpen]) => isOpen);

function list(title, videos, link) {
  return videos.length ? [node("h2", {}, title), node("ul", { class: "videos" }, ...videos.map(({ id }) => node("li", {}, node("a", { href: link(id) }, id))))] : [];
}

function homeView() {
  if (!opened.videos.length) {
    return { made: [node("h2", {}, "Open here"), node("ul", {}, ...TABS.map(([title, link]) => node("li", {}, node("a", { href: link }, title))))] };
  }
  const problems = opened.problems.length
    ? [node("div", { class: "alert" }, `${opened.problems.length} problems: ${opened.problems[0]}`)] : [];
  return { made: [...problems, ...list(`${graphs.length} annotated videos`, graphs, (id) => address(id, 0)),
    ...list(`${projects.length} videos to annotate`, projects, (id) => `#/project/${encodeURIComponent(id)}`),
    opened.runs ? node("p", {}, node("a", { href: "#/runs" }, `The report over ${opened.runs === 1 ? "1 run" : `${opened.runs} runs`}`)) : ""] };
}

/** From a sample of a report to its moment. */
async function exampleView(id) {
  const { video, frames } = await ask("/api/example", { id });
  location.replace(address(video, frames[0], { example: id }));
  return { made: [] };
}

async function runsView() {
  for (;;) {
    const { state, problem, runs } = await ask("/api/report");
    if (state === "ready") {
      location.replace("/report");
      return { made: [] };
    }
    if (state !== "making") return { made: [node("h2", {}, "Runs"), node("p", { class: "alert" }, problem ?? "No run is open.")] };
    document.getElementById("main").replaceChildren(node("h2", {}, "Runs"), node("p", {}, `scoring ${runs} runs ... `, node("progress", { "aria-label": "scoring" })));
    await sleep(500);
  }
}

const ROUTES = {
  "": homeView,
  graph: (video, query) => exploreView(video, query),
  search: (_, query) => searchView(graphs, query),
  example: (id) => exampleView(id),
  runs: runsView,
  questions: questionsView,
  answer: (_, query) => answerView(query),
  rate: rateView,
  project: (video, query) => annotateView(video, query),
  agreement: () => agreementView(projects),
};

let keys = {};
let turn = 0;
async function show() {
  const mine = turn += 1;
  const [path, query] = location.hash.replace(/^#\//, "").split("?");
  const [route, name] = path.split("/").map(decodeURIComponent);
  document.getElementById("tabs").replaceChildren(...TABS.map(([title, link]) =>
    node("a", { href: link, "aria-current": link === `#/${route === "graph" ? "" : route}` ? "page" : null }, title)));
  const main = document.getElementById("main");
  main.setAttribute("aria-busy", "true");
  say(name ? `reading ${name} ...` : "");
  try {
    const view = await (ROUTES[route] ?? homeView)(name, new URLSearchParams(query));
    if (mine !== turn) return;
    keys = view.keys ?? {};
    main.replaceChildren(...view.made);
    say("");
    await view.started?.();
  } catch (error) {
    if (mine === turn) main.replaceChildren(node("p", { class: "alert" }, error.message));
    say("");
  } finally {
    if (mine === turn) main.removeAttribute("aria-busy");
  }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=range]), select, textarea, dialog")) return;
  if (event.key === " " && event.target.closest("button, summary")) return;
  const action = keys[`${event.shiftKey && event.key.startsWith("Arrow") ? "shift+" : ""}${event.key}`];
  if (!action) return;
  event.preventDefault();
  action();
});
addEventListener("hashchange", show);
show();
