// The home page: the open folders, and a card for each video with its progress and next step.
import { node } from "./elements.js";
import { address } from "./graph_player.js";
import { openButton } from "./job_table.js";
import { ask, below } from "./server.js";
import { counted, minutes } from "./words.js";

/** @import { View } from "./page.d.ts" */
/** @import { Folder, Found, Opened, VideoCard } from "./home_shapes.d.ts" */

// The next steps, in the order of the work.
/** @type {Record<VideoCard["next"], (card: VideoCard) => string>} */
const NEXT = {
  problem: () => "a file cannot be read",
  contacts: () => "mark when hands touch things",
  keyframes: ({ asked = 0, done = 0 }) => `annotate ${counted(asked - done, "keyframe")}`,
  stages: () => "run the stages that are due",
  doubtful: ({ doubtful = 0 }) => `look at ${counted(doubtful, "doubtful frame")}`,
  export: () => "ready to export",
  look: () => "explore",
};
/** @type {Record<VideoCard["next"], string>} */
const FILTERS = {
  problem: "with a problem",
  contacts: "without contacts",
  keyframes: "with keyframes to annotate",
  stages: "with stages due",
  doubtful: "with doubtful frames",
  export: "ready to export",
  look: "of the release",
};
const STEPS = /** @type {VideoCard["next"][]} */ (Object.keys(NEXT));

/** @type {Record<string, (one: VideoCard, other: VideoCard) => number>} */
const SORTS = {
  name: (one, other) => one.id.localeCompare(other.id, undefined, { numeric: true }),
  "next step": (one, other) => STEPS.indexOf(one.next) - STEPS.indexOf(other.next),
  "longest first": (one, other) => (other.seconds ?? 0) - (one.seconds ?? 0),
  "most doubtful first": (one, other) => (other.doubtful ?? 0) - (one.doubtful ?? 0),
};

const AT_ONCE = 60; // cards that are made before one scrolls

/** @type {Record<Folder["kind"], [title: string, link: string, icon: string]>} */
const FOLDERS = {
  project: ["project", "#/", "film"],
  release: ["release", "#/search", "boxes"],
  dataset: ["dataset", "#/answer", "database"],
  runs: ["runs", "#/runs", "chart-column"],
  review: ["review", "#/questions", "list-checks"],
};

/** @param {VideoCard} card */
const linkOf = ({ kind, id }) => (kind === "graph" ? address(id, 0) : `#/project/${encodeURIComponent(id)}`);

/**
 * @param {Opened} opened
 * @param {URLSearchParams} query
 * @returns {Promise<View>}
 */
export async function homeView(opened, query) {
  const { cards, folders, closed, reports } = await ask("/api/home");
  const [problem] = opened.problems;
  const alert = problem && node("div", { class: "alert" }, `${counted(opened.problems.length, "problem")}: ${problem}`);
  const elements = [
    alert,
    folders.length ? folderList(folders) : null,
    reports.length ? reportLinks(reports) : null,
    closed.length ? closedList(closed, !folders.length) : null,
  ];
  if (!cards.length) return { elements: [...elements, ...emptyHome(opened, folders)] };
  return { elements: [...elements, ...videoGrid(cards, query)] };
}

/**
 * @param {Opened} opened
 * @param {Folder[]} folders
 */
function emptyHome(opened, folders) {
  if (folders.length) return [node("p", { class: "empty" }, "No videos are open. Choose a folder above.")];
  const hint = opened.folder
    ? node(
        "p",
        { class: "empty" },
        "This folder is empty. ",
        node("a", { href: "#/make?step=start" }, "Start a project"),
        " of your own videos, or ",
        node("a", { href: "#/make?step=mini" }, "make a small kitchen"),
        " to try the studio.",
      )
    : node("p", { class: "empty" }, "Start the studio with a release, a dataset, runs, a project or a review file.");
  return [node("h2", {}, `Welcome, ${opened.person}`), hint];
}

/**
 * What can be opened further.
 * @param {Found[]} closed
 * @param {boolean} open
 */
function closedList(closed, open) {
  const items = closed.map(({ kind, path }) => node("span", {}, openButton(path), node("small", {}, ` ${kind}`)));
  const summary = node("summary", {}, `Also in this folder: ${closed.length}`);
  return node("details", { class: "closed", open }, summary, node("p", {}, ...items));
}

/**
 * Written reports: separate pages, which the studio's server keeps away from the studio.
 * @param {string[]} paths
 */
function reportLinks(paths) {
  const href = (/** @type {string} */ path) => below(`/written/${path.split("/").map(encodeURIComponent).join("/")}`);
  const links = paths.map((path) => node("a", { href: href(path), target: "_blank" }, path));
  return node("p", { class: "controls" }, `${counted(paths.length, "written report")}:`, ...links);
}

/** @param {Folder[]} folders */
function folderList(folders) {
  const items = folders.map(({ kind, path, name, counts }) => {
    const [title, href, icon] = FOLDERS[kind];
    const figures = Object.entries(counts)
      .filter(([, count], at) => count > 0 || at === 0)
      .map(([noun, count]) => node("span", {}, counted(count, noun)));
    const heading = node("a", { href, title: path }, name || path);
    return node(
      "li",
      {},
      node("span", { class: "kind", "data-icon": icon }, title),
      heading,
      node("p", { class: "figures" }, ...figures),
    );
  });
  return node("ul", { class: "folders", "aria-label": "Open folders" }, ...items);
}

/**
 * @param {VideoCard[]} cards
 * @param {URLSearchParams} query with the chosen filters, so that the way back from a video leads to the same cards
 */
function videoGrid(cards, query) {
  const lengths = lengthsWhenSeen();
  const grid = growingGrid((/** @type {VideoCard} */ card) => cardOf(card, lengths));
  const steps = STEPS.filter((step) => cards.some(({ next }) => next === step));
  const text = node("input", { type: "search", value: query.get("text"), placeholder: "name or annotator" });
  const next = chooser([["", "all videos"], ...steps.map((step) => [step, FILTERS[step]])], query.get("next"));
  const sort = chooser(
    Object.keys(SORTS).map((name) => [name, name]),
    query.get("sort"),
  );
  const count = node("p", { class: "note", role: "status" });
  const fill = () => {
    const sought = text.value.toLocaleLowerCase();
    const matching = cards
      .filter((card) => !next.value || card.next === next.value)
      .filter(({ id, by }) => [id, ...by].some((name) => name.toLocaleLowerCase().includes(sought)))
      .toSorted(SORTS[sort.value]);
    grid.show(matching);
    count.textContent = matching.length
      ? `${matching.length} of ${counted(cards.length, "video")}`
      : "No video matches. Remove a filter.";
    const filters = Object.entries({ text: text.value, next: next.value, sort: sort.value });
    const chosen = filters.filter(([name, value]) => value && !(name === "sort" && value === "name"));
    const params = new URLSearchParams(chosen);
    history.replaceState(null, "", params.size ? `#/?${params}` : "#/");
  };
  for (const field of [text, next, sort]) field.addEventListener("input", fill);
  fill();
  const label = (/** @type {string} */ title, /** @type {HTMLElement} */ field) => node("label", {}, title, field);
  const fields = node("div", { class: "filters" }, label("find", text), label("show", next), label("sort by", sort));
  return [node("h2", { class: "hidden" }, "Videos"), node("div", { class: "heading" }, fields, count), ...grid.parts];
}

/**
 * A grid that adds cards as the person scrolls towards its end.
 * @template Item
 * @param {(item: Item) => Node} cardFor
 */
function growingGrid(cardFor) {
  const grid = node("div", { class: "video-cards" });
  const end = node("div", { class: "end" });
  /** @type {Item[]} */
  let remaining = [];
  const add = () => grid.append(...remaining.splice(0, AT_ONCE).map(cardFor));
  const observer = new IntersectionObserver(
    ([{ isIntersecting }]) => {
      if (!isIntersecting || !remaining.length) return;
      add();
      observer.unobserve(end); // observed again: it may still be in sight
      observer.observe(end);
    },
    { rootMargin: "1000px" },
  );
  observer.observe(end);
  /** @param {Item[]} items */
  const show = (items) => {
    remaining = [...items];
    grid.replaceChildren();
    add();
  };
  return { parts: [grid, end], show };
}

/**
 * @param {string[][]} options value and title
 * @param {string | null} chosen
 */
function chooser(options, chosen) {
  const select = node("select", {}, ...options.map(([value, title]) => node("option", { value }, title)));
  if (options.some(([value]) => value === chosen)) select.value = chosen ?? "";
  return select;
}

/**
 * @param {VideoCard} card
 * @param {IntersectionObserver} lengths
 */
function cardOf(card, lengths) {
  const { kind, id, seconds, by, problem } = card;
  const src = below(`/media/${kind}/${encodeURIComponent(id)}/poster.jpg`);
  const image = node("img", { src, alt: "", loading: "lazy", decoding: "async", width: 320, height: 180 });
  image.addEventListener("error", () => image.classList.add("missing"));
  const length = node("span", { class: "length" }, seconds === null ? "" : minutes(seconds));
  const people = by.length ? node("p", { class: "by" }, `accepted by ${by.join(", ")}`) : null;
  const element = node(
    "article",
    { class: `video-card next-${card.next}`, "data-video": id },
    node("div", { class: "poster" }, image, length),
    node("h3", {}, node("a", { href: linkOf(card) }, id)),
    kind === "project" && !problem ? progressOf(card) : null,
    people,
    node("p", { class: "following", title: problem }, NEXT[card.next](card), workLeft(card)),
  );
  if (seconds === null && kind === "graph") lengths.observe(element);
  return element;
}

/** A person's remaining work; masks are estimated from the annotated keyframes. @param {VideoCard} card */
function workLeft({ asked = 0, done = 0, masks = 0, annotated = 0, doubtful = 0 }) {
  const masksLeft = annotated ? Math.round(((asked - done) * masks) / annotated) : 0;
  const counts = [
    masksLeft && `about ${counted(masksLeft, "mask")}`,
    doubtful && counted(doubtful, "doubtful frame"),
  ].filter(Boolean);
  return counts.length ? node("small", {}, `${counts.join(", ")} to go`) : null;
}

/** @param {VideoCard} card */
function progressOf({ asked = 0, done = 0, contacts = 0, masks = 0, layers = 0 }) {
  const bar = asked ? node("progress", { max: asked, value: done, "aria-label": "keyframes annotated" }) : null;
  const keyframes = asked ? `${done} of ${counted(asked, "keyframe")}` : counted(done, "keyframe");
  const facts = [counted(contacts, "contact"), keyframes, counted(masks, "mask"), counted(layers, "statement")];
  return node("div", { class: "far" }, bar, node("p", {}, ...facts.map((fact) => node("span", {}, fact))));
}

/** Asks for the length of a video whose card comes into sight. */
function lengthsWhenSeen() {
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting || !(target instanceof HTMLElement)) continue;
      observer.unobserve(target);
      const request = ask("/api/length", { kind: "graph", video: target.dataset.video ?? "" });
      request.then(
        ({ seconds }) => {
          target.querySelector(".length")?.replaceChildren(seconds === null ? "" : minutes(seconds));
        },
        () => target.classList.add("no-video"), // the card stays: its graph can be looked at
      );
    }
  });
  return observer;
}
