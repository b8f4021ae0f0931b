// One sample: its frames, the answers of two models side by side, and the complete question.
import { address } from "./addresses.js";
import { card, foldedText, pairList } from "./answers.js";
import { details, index } from "./blocks.js";
import { node, text } from "./elements.js";
import { selectedSamples } from "./filters.js";
import { stage } from "./pictures.js";
import { chip } from "./status_marks.js";

/** @import { Details, Outcome, Screen, Side, TaskBlock, TaskEntry } from "./shapes.d.ts" */

const MOST_OF_ANSWER = 160;

// The reader's choices, kept between samples: the run of each model of a task, and two models by label.
/** @type {Map<string, number>} */
const chosenRepetitions = new Map();
/** @type {string[]} */
let chosenModels = [];

/** @param {TaskEntry} task @param {number} place */
const runKey = (task, place) => `${task.address} ${place}`;

/**
 * The positions of the shown models: from the address, from an earlier choice, or the first models.
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
 * @param {Details} sampleData
 * @param {URLSearchParams} query
 * @returns {Side[]}
 */
function sidesOf(task, sampleData, query) {
  return usualPair(task, query).map((place) => {
    const answers = sampleData.models[place];
    const chosenAnswer = answers.find(({ repetition }) => repetition === chosenRepetitions.get(runKey(task, place)));
    return { place, answers, answer: chosenAnswer ?? answers[0] };
  });
}

/**
 * Links to the previous and the next sample in the selection of the address.
 * @param {TaskEntry} task
 * @param {TaskBlock} taskData
 * @param {number[]} numbers
 * @param {number} at
 * @param {URLSearchParams} query
 */
function neighbours(task, taskData, numbers, at, query) {
  const row = numbers.indexOf(at);
  /** @param {number} by */
  const link = (by) => {
    const other = row >= 0 ? numbers[row + by] : undefined;
    return other === undefined ? null : address(task.address, taskData.samples[other][0], query);
  };
  const all = address(task.address, "", query.size ? query : "all=1");
  return { place: row >= 0 ? ` ${row + 1} of ${numbers.length} ` : " not in this selection ", link, all };
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
 * @param {() => void} redraw
 */
function modelFields(task, sides, query, redraw) {
  return sides.map((side, number) => {
    const change = () => {
      chosenModels = sides.map(({ place }) => task.labels[place]);
      chosenModels[number] = task.labels[Number(select.value)];
      for (const name of ["better", "worse", "model"]) query.delete(name);
      redraw();
    };
    const options = task.labels.map((name, place) =>
      node("option", { value: place, selected: place === side.place }, name),
    );
    const select = node("select", { id: `side-${number}`, change }, ...options);
    return node("label", {}, number ? "beside" : "model", select);
  });
}

/**
 * The answers of all models as a table.
 * @param {TaskEntry} task
 * @param {Details} sampleData
 * @param {Outcome[]} outcomes
 */
function allModels(task, sampleData, outcomes) {
  const rows = task.labels.map((name, place) => {
    const answer = sampleData.models[place][0]?.text ?? "(none)";
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

/** Links to the other samples on these frames. @param {Details} sampleData */
function relatedSamples(sampleData) {
  const items = sampleData.related.map(([number, sample, label]) => {
    const task = index.tasks[number];
    const link = node("a", { href: address(task.address, sample) }, `${task.heading}: ${label || sample}`);
    return node("li", {}, link);
  });
  return items.length
    ? [text("h3", "Other questions about these frames"), node("ul", { class: "related" }, ...items)]
    : [];
}

/** A link to the frame in the video, if the studio serves the report. @param {string} id */
function momentLink(id) {
  if (!("studio" in document.documentElement.dataset)) return null;
  const link = { href: `./#/example/${encodeURIComponent(id)}`, class: "button" };
  return node("p", {}, node("a", link, "see this moment of the video"));
}

/**
 * @param {TaskEntry} task
 * @param {TaskBlock} taskData
 * @param {string} id
 * @param {URLSearchParams} query
 * @param {() => void} redraw draws the screen again
 * @returns {Promise<Screen>}
 */
export async function sampleScreen(task, taskData, id, query, redraw) {
  const at = taskData.samples.findIndex(([sampleId]) => sampleId === id);
  if (at < 0) {
    const problem = `${task.heading} has no sample ${id} in this report.`;
    return { parts: [text("p", problem, { class: "alert" })], keys: {} };
  }
  const [, label, where, , , outcomes] = taskData.samples[at];
  const numbers = await selectedSamples(task, taskData, query);
  const sampleData = await details(task.first + at);
  const near = neighbours(task, taskData, numbers, at, query);
  const sides = sidesOf(task, sampleData, query);
  const view = stage(task, sampleData, sides);
  /** @param {number} place @param {number} run */
  const choose = (place, run) => {
    chosenRepetitions.set(runKey(task, place), run);
    redraw();
  };
  const cards = sides.map((side, number) => card(task, side, sides[1 - number]?.answer, choose));
  const parts = [
    crumbs(task, near),
    text("h2", id, { class: "id" }),
    text("p", `${label} · ${where}`, { class: "where" }),
    momentLink(id),
    view.element,
    node("div", { class: "filters" }, ...modelFields(task, sides, query, redraw)),
    node("div", { class: "cards" }, ...cards),
    node(
      "div",
      { class: "below" },
      foldedText("Truth", sampleData.reference, true),
      foldedText("Prompt", sampleData.prompt),
      ...pairList("Metadata", sampleData.metadata),
      ...pairList("Evidence in the scene graph", sampleData.evidence),
    ),
    ...(task.labels.length > 2 ? [text("h3", "All models"), allModels(task, sampleData, outcomes)] : []),
    ...relatedSamples(sampleData),
  ];
  return { parts, keys: keysOf(task, sides, view, near, redraw) };
}

/**
 * @param {TaskEntry} task
 * @param {Side[]} sides
 * @param {ReturnType<typeof stage>} view
 * @param {ReturnType<typeof neighbours>} near
 * @param {() => void} redraw
 */
function keysOf(task, sides, view, { link, all }, redraw) {
  const nextRun = () => {
    for (const { place, answers, answer } of sides) {
      if (!answer) continue;
      chosenRepetitions.set(runKey(task, place), answers[(answers.indexOf(answer) + 1) % answers.length].repetition);
    }
    redraw();
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
