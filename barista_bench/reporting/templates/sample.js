// One sample: its frames, the answers of two models side by side, and all that was asked.
import { address } from "./addresses.js";
import { card, foldedText, pairs } from "./answers.js";
import { details, index } from "./blocks.js";
import { node, text } from "./elements.js";
import { selected } from "./filters.js";
import { stage } from "./pictures.js";
import { chip } from "./status_marks.js";

/** @import { Details, Outcome, Screen, Side, TaskBlock, TaskEntry } from "./shapes.d.ts" */

const MOST_OF_ANSWER = 160;

// What the reader chose, from sample to sample: the run of each model of a task, and two models by their labels.
/** @type {Map<string, number>} */
const chosenRuns = new Map();
/** @type {string[]} */
let chosenModels = [];

/** @param {TaskEntry} task @param {number} place */
const runKey = (task, place) => `${task.address} ${place}`;

/**
 * The places of the models that are shown: those of the address, those chosen before, the first ones.
 * @param {TaskEntry} task
 * @param {URLSearchParams} query
 */
function usualPair(task, query) {
  /** @param {string | null | undefined} label */
  const placeOf = (label) => task.labels.indexOf(label ?? "");
  const [first = 0] = [query.get("better") ?? query.get("model"), chosenModels[0]]
    .map(placeOf)
    .filter((place) => place >= 0);
  const second = [placeOf(query.get("worse")), placeOf(chosenModels[1]), ...task.labels.keys()].find(
    (place) => place >= 0 && place !== first,
  );
  return second === undefined ? [first] : [first, second];
}

/**
 * @param {TaskEntry} task
 * @param {Details} held
 * @param {URLSearchParams} query
 * @returns {Side[]}
 */
function sidesOf(task, held, query) {
  return usualPair(task, query).map((place) => {
    const answers = held.models[place];
    const chosen = answers.find(({ run }) => run === chosenRuns.get(runKey(task, place)));
    return { place, answers, answer: chosen ?? answers[0] };
  });
}

/**
 * The samples before and after among those that the address selects.
 * @param {TaskEntry} task
 * @param {TaskBlock} found
 * @param {number[]} kept
 * @param {number} at
 * @param {URLSearchParams} query
 */
function neighbours(task, found, kept, at, query) {
  const row = kept.indexOf(at);
  /** @param {number} by */
  const link = (by) => {
    const other = row >= 0 ? kept[row + by] : undefined;
    return other === undefined ? null : address(task.address, found.samples[other][0], query);
  };
  const all = address(task.address, "", query.size ? query : "all=1");
  return { place: row >= 0 ? ` ${row + 1} of ${kept.length} ` : " not among those chosen ", link, all };
}

/**
 * @param {TaskEntry} task
 * @param {ReturnType<typeof neighbours>} near
 */
function crumbs(task, { place, link, all }) {
  const [before, after] = [link(-1), link(1)];
  return node(
    "nav",
    { class: "crumbs", "aria-label": "place" },
    node("a", { href: all }, `${task.heading}, all samples`),
    node("span", {}, place),
    before
      ? node("a", { href: before, class: "button", title: "previous (k)", "data-icon": "arrow-up" }, "previous")
      : null,
    after ? node("a", { href: after, class: "button", title: "next (j)", "data-icon": "arrow-down" }, "next") : null,
  );
}

/**
 * Fields that choose the two models.
 * @param {TaskEntry} task
 * @param {Side[]} sides
 * @param {URLSearchParams} query
 * @param {() => void} again
 */
function modelFields(task, sides, query, again) {
  return sides.map((side, number) => {
    const change = () => {
      chosenModels = sides.map(({ place }) => task.labels[place]);
      chosenModels[number] = task.labels[Number(made.value)];
      for (const name of ["better", "worse", "model"]) query.delete(name);
      again();
    };
    const options = task.labels.map((name, place) =>
      node("option", { value: place, selected: place === side.place }, name),
    );
    const made = node("select", { id: `side-${number}`, change }, ...options);
    return node("label", {}, number ? "beside" : "model", made);
  });
}

/**
 * The answers of all models as a table.
 * @param {TaskEntry} task
 * @param {Details} held
 * @param {Outcome[]} outcomes
 */
function allModels(task, held, outcomes) {
  const rows = task.labels.map((name, place) => {
    const answer = held.models[place][0]?.text ?? "(none)";
    return node(
      "tr",
      {},
      text("th", name, { scope: "row" }),
      node("td", {}, chip(task, outcomes, place)),
      text("td", answer.slice(0, MOST_OF_ANSWER), { class: "text" }),
    );
  });
  const table = node("table", {}, text("caption", "all models", { class: "hidden" }), node("tbody", {}, ...rows));
  return node("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "all models" }, table);
}

/** Links to the other samples on these frames. @param {Details} held */
function relatedSamples(held) {
  const items = held.related.map(([number, sample, label]) => {
    const task = index.tasks[number];
    const link = node("a", { href: address(task.address, sample) }, `${task.heading}: ${label || sample}`);
    return node("li", {}, link);
  });
  return items.length ? [text("h3", "Also asked about these frames"), node("ul", { class: "related" }, ...items)] : [];
}

/** From a report that the studio serves to the frame in the video. @param {string} id */
function momentLink(id) {
  if (!("studio" in document.documentElement.dataset)) return null;
  const link = { href: `/#/example/${encodeURIComponent(id)}`, class: "button" };
  return node("p", {}, node("a", link, "see this moment of the video"));
}

/**
 * @param {TaskEntry} task
 * @param {TaskBlock} found
 * @param {string} id
 * @param {URLSearchParams} query
 * @param {() => void} again makes the screen anew
 * @returns {Promise<Screen>}
 */
export async function sampleScreen(task, found, id, query, again) {
  const at = found.samples.findIndex(([known]) => known === id);
  if (at < 0) {
    const problem = `${task.heading} has no sample ${id} in this report.`;
    return { made: [text("p", problem, { class: "alert" })], keys: {} };
  }
  const [, label, where, , , outcomes] = found.samples[at];
  const kept = await selected(task, found, query);
  const held = await details(task.first + at);
  const near = neighbours(task, found, kept, at, query);
  const sides = sidesOf(task, held, query);
  const view = stage(task, held, sides);
  /** @param {number} place @param {number} run */
  const choose = (place, run) => {
    chosenRuns.set(runKey(task, place), run);
    again();
  };
  const cards = sides.map((side, number) => card(task, side, sides[1 - number]?.answer, choose));
  const made = [
    crumbs(task, near),
    text("h2", id, { class: "id" }),
    text("p", `${label} · ${where}`, { class: "where" }),
    momentLink(id),
    view.made,
    node("div", { class: "filters" }, ...modelFields(task, sides, query, again)),
    node("div", { class: "cards" }, ...cards),
    node(
      "div",
      { class: "below" },
      foldedText("Truth", held.reference, true),
      foldedText("Prompt as sent", held.prompt),
      ...pairs("Metadata", held.metadata),
      ...pairs("Evidence in the scene graph", held.evidence),
    ),
    ...(task.labels.length > 2 ? [text("h3", "All models"), allModels(task, held, outcomes)] : []),
    ...relatedSamples(held),
  ];
  return { made, keys: keysOf(task, sides, view, near, again) };
}

/**
 * @param {TaskEntry} task
 * @param {Side[]} sides
 * @param {ReturnType<typeof stage>} view
 * @param {ReturnType<typeof neighbours>} near
 * @param {() => void} again
 */
function keysOf(task, sides, view, { link, all }, again) {
  const nextRun = () => {
    for (const { place, answers, answer } of sides) {
      if (!answer) continue;
      chosenRuns.set(runKey(task, place), answers[(answers.indexOf(answer) + 1) % answers.length].run);
    }
    again();
  };
  /** @param {number} by */
  const go = (by) => () => {
    const next = link(by);
    if (next) location.hash = next;
  };
  /** @param {number} by */
  const step = (by) => () => view.step?.(by);
  const leave = () => {
    location.hash = all;
  };
  const steps = { j: go(1), k: go(-1), ArrowRight: step(1), ArrowLeft: step(-1) };
  return { ...steps, r: nextRun, b: view.toggle, Escape: leave };
}
