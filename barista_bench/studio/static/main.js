// Which view the address names, its keys, and the way between views.
import { ask, finished, node, say } from "./page.js";
import { answerView, rateView } from "./answer.js";
import { agreementView } from "./agreement.js";
import { annotateView } from "./annotate.js";
import { address, exploreView, searchView } from "./explore.js";
import { questionsView } from "./questions.js";

const opened = await ask("/api/studio");
const { graphs, projects } = opened;

const TABS = [
  [graphs.length ? "Explore" : "Annotate", "#/", graphs.length + projects.length],
  ["Search", "#/search", graphs.length],
  ["Runs", "#/runs", opened.runs],
  ["Questions", "#/questions", opened.reviews],
  ["Answer", "#/answer", opened.datasets],
  ["Rate", "#/rate", opened.rated],
  ["Agreement", "#/agreement", opened.compared],
].filter(([, , count]) => count > 0);

const links = (pairs) => node("ul", { class: "videos" }, ...pairs.map(([title, href]) => node("li", {}, node("a", { href }, title))));
const list = (title, videos, link) => (videos.length ? [node("h2", {}, `${title} (${videos.length})`), links(videos.map((id) => [id, link(id)]))] : []);

function homeView() {
  if (!graphs.length && !projects.length) return { made: [node("h2", {}, "Open here"), links(TABS)] };
  const problems = opened.problems.length ? [node("div", { class: "alert" }, `${opened.problems.length} problems: ${opened.problems[0]}`)] : [];
  return { made: [...problems, ...list("Annotated videos", graphs, (id) => address(id, 0)),
    ...list("Videos to annotate", projects, (id) => `#/project/${encodeURIComponent(id)}`)] };
}

/** From a sample of a report to its moment. */
async function exampleView(id) {
  const { video, frames } = await ask("/api/example", { id });
  location.replace(address(video, frames[0], { example: id }));
  return { made: [] };
}

function runsView() {
  const state = node("p", {}, "scoring ... ", node("progress", { "aria-label": "scoring" }));
  return { made: [node("h2", {}, "Runs"), state], started: async () => {
    await finished(() => ask("/api/report"), ({ runs }) => { state.firstChild.textContent = `scoring ${runs} runs ... `; }, state);
    location.replace("/report");
  } };
}

const ROUTES = {
  "": homeView,
  graph: exploreView,
  search: (_, query) => searchView(graphs, query),
  example: exampleView,
  runs: runsView,
  questions: questionsView,
  answer: (_, query) => answerView(query),
  rate: rateView,
  project: annotateView,
  agreement: () => agreementView(projects),
};

const HOME = ["graph", "project"];
let keys = {};
let turn = 0;
async function show() {
  const mine = turn += 1;
  const [path, query] = location.hash.replace(/^#\//, "").split("?");
  const [route, name] = path.split("/").map((part) => (/%(?![0-9a-f]{2})/i.test(part) ? part : decodeURIComponent(part)));
  document.getElementById("tabs").replaceChildren(...TABS.map(([title, link]) =>
    node("a", { href: link, "aria-current": link === `#/${HOME.includes(route) ? "" : route}` ? "page" : null }, title)));
  const main = document.getElementById("main");
  main.setAttribute("aria-busy", "true");
  const reading = name ? `reading ${name} ...` : "";
  say(reading);
  try {
    const view = await (Object.hasOwn(ROUTES, route) ? ROUTES[route] : homeView)(name, new URLSearchParams(query));
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
