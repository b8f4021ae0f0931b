// The samples of a task as a gallery with filters. Only visible tiles are in the page, so thousands of samples fit.
import { address } from "./addresses.js";
import { details, hasPicture, index, pictureUrl } from "./blocks.js";
import { node, text } from "./elements.js";
import { FILTERS, filterBar } from "./filter_bar.js";
import { selectedSamples, shownPlaces } from "./filters.js";
import { chip, statusLegend } from "./status_marks.js";
import { counted, short, words } from "./words.js";

/** @import { Answer, Details, RowKind, TaskBlock, TaskEntry } from "./shapes.d.ts" */

const TILE = { width: 300, height: 338 };
const MOST_CHIPS = 8;
const MOST_LETTERS = 160;

/** The mark of a model beside its scores. The legend above the tiles has the names. @param {number} place */
const letterOf = (place) => (place < 26 ? String.fromCharCode(65 + place) : String(place + 1));

/**
 * The position of the model whose answers the tiles show: the model in the address, or the best model.
 * @param {TaskEntry} task
 * @param {URLSearchParams} query
 */
const answerPlace = (task, query) =>
  Math.max(0, task.labels.indexOf(query.get("worse") ?? query.get("model") ?? query.get("better") ?? ""));

/** @param {string} content */
const excerpt = (content) => (content.length > MOST_LETTERS ? `${content.slice(0, MOST_LETTERS)}…` : content);

/**
 * The errors of an answer, beside the truth.
 * @param {Answer | undefined} answer
 * @returns {[name: string, content: string][]}
 */
function verdictLines(answer) {
  if (!answer) return [["answer", "not run"]];
  /** @param {RowKind} kind */
  const texts = (kind) => answer.rows.filter((row) => row.kind === kind).map((row) => row.text);
  const [wrong, missed, right] = [texts("wrong"), texts("miss"), texts("hit")].map((list) => list.join("; "));
  const said = answer.text && !/^\s*[[{]/.test(answer.text) ? answer.text.trim() : "";
  /** @type {[name: string, content: string][]} */
  const lines = [];
  if (answer.status !== "ok") lines.push([words(answer.status), said]);
  else if (wrong || (said && missed)) lines.push(["wrong", wrong || said]);
  if (missed) lines.push(["true", missed]);
  return lines.length ? lines : [["right", right || said]];
}

/**
 * The question and the answer of a tile, from the sample's details.
 * @param {TaskEntry} task
 * @param {Details} sampleData
 * @param {number} place
 */
function questionAndAnswer(task, sampleData, place) {
  const lines = verdictLines(sampleData.models[place][0]);
  return [
    text("span", sampleData.question, { class: "question" }),
    ...lines.map(([name, content], at) =>
      node(
        "span",
        { class: `line ${name}` },
        text("b", at || name === "true" ? name : `${task.labels[place]}: ${name}`),
        ` ${excerpt(content)}`,
      ),
    ),
  ];
}

/**
 * @param {TaskEntry} task
 * @param {TaskBlock} taskData
 * @param {number[]} numbers the samples' numbers
 * @param {number} row the tile's position among these numbers
 * @param {URLSearchParams} query
 */
function tileOf(task, taskData, numbers, row, query) {
  const [id, label, where, picture, , outcomes] = taskData.samples[numbers[row]];
  const places = shownPlaces(task, query);
  const scores = places.map((place) => `${task.labels[place]} ${short(outcomes[place][0], 2)}`).join(", ");
  const title = `${label}\n${where}\n${scores}`;
  const asked = node("span", { class: "asked" });
  const link = node(
    "a",
    { href: address(task.address, id, query), "data-row": row, title },
    picture === null || !hasPicture(picture)
      ? text("span", label || "no picture", { class: "blank" })
      : node("img", { src: pictureUrl(picture), alt: "", loading: "lazy" }),
    asked,
    node(
      "span",
      { class: "chips" },
      ...places
        .slice(0, MOST_CHIPS)
        .map((place) => chip(task, outcomes, place, places.length > 1 ? letterOf(place) : task.labels[place])),
    ),
    text("span", where, { class: "name" }),
  );
  details(task.first + numbers[row]).then((sampleData) => {
    asked.append(...questionAndAnswer(task, sampleData, answerPlace(task, query)));
  });
  const attributes = { class: "tile", role: "listitem", "aria-setsize": numbers.length, "aria-posinset": row + 1 };
  return node("div", attributes, link);
}

/** The position of the tile with the focus, or -1. @param {EventTarget | null} focused */
const rowOfFocus = (focused) => Number((focused instanceof HTMLElement && focused.dataset.row) || -1);

/**
 * @param {number} count
 * @param {(row: number) => HTMLElement} makeTile
 */
function grid(count, makeTile) {
  const list = node("div", { class: "tiles", role: "list", "aria-label": "samples" });
  const scroller = node("div", { class: "scroller", tabindex: count ? null : 0 }, list);
  let across = 1;
  /** @param {number} row */
  const focus = (row) => {
    const tile = list.querySelector(`[data-row="${row}"]`);
    if (tile instanceof HTMLElement) tile.focus({ preventScroll: true });
  };
  function paint() {
    across = Math.max(1, Math.floor(scroller.clientWidth / TILE.width));
    list.style.height = `${Math.ceil(count / across) * TILE.height}px`;
    const { scrollTop, clientHeight } = scroller;
    const first = Math.max(0, Math.floor(scrollTop / TILE.height) - 1) * across;
    const last = Math.min(count, (Math.ceil((scrollTop + clientHeight) / TILE.height) + 1) * across);
    const focused = rowOfFocus(document.activeElement);
    const rows = Array.from({ length: Math.max(0, last - first) }, (_, at) => first + at);
    list.replaceChildren(
      ...rows.map((row) => {
        const tile = makeTile(row);
        tile.style.left = `${(row % across) * TILE.width}px`;
        tile.style.top = `${Math.floor(row / across) * TILE.height}px`;
        return tile;
      }),
    );
    if (focused >= 0) focus(focused);
  }
  /** @param {KeyboardEvent} event */
  function move(event) {
    const row = rowOfFocus(event.target);
    /** @type {Record<string, number>} */
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across };
    const next = row + (steps[event.key] ?? 0);
    if (row < 0 || next === row || next < 0 || next >= count) return;
    event.preventDefault();
    const top = Math.floor(next / across) * TILE.height;
    const bottom = top + TILE.height;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    if (bottom > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = bottom - scroller.clientHeight;
    paint();
    focus(next);
  }
  scroller.addEventListener("scroll", paint, { passive: true });
  scroller.addEventListener("keydown", move);
  new ResizeObserver(paint).observe(scroller);
  return scroller;
}

/**
 * The new address after a change of a filter.
 * @param {TaskEntry} task
 * @param {URLSearchParams} query
 * @param {string} name
 * @param {string} value
 */
function addressWith(task, query, name, value) {
  const next = new URLSearchParams();
  for (const filter of FILTERS) {
    const currentValue = query.get(filter);
    if (currentValue) next.set(filter, currentValue);
  }
  if (value) next.set(name, value);
  else next.delete(name);
  if (name === "key") next.delete("value");
  return address(task.address, "", next.size ? next : "all=1");
}

/**
 * @param {TaskEntry} task
 * @param {TaskBlock} taskData
 * @param {URLSearchParams} query
 */
export async function gallery(task, taskData, query) {
  const numbers = await selectedSamples(task, taskData, query);
  const places = shownPlaces(task, query);
  const scores = task.scores[0] ? `${words(task.scores[0])}, mean over repetitions: ` : "";
  const models = places.map((place) =>
    node("span", { class: "model-key" }, text("b", places.length > 1 ? `${letterOf(place)} ` : ""), task.labels[place]),
  );
  const reason = "without pictures, because the report has reached its size limit";
  const bare = `${counted(index.bare, "sample")} of this report are ${reason}.`;
  const count = text("output", `${numbers.length} of ${taskData.samples.length}`, { id: "count", role: "status" });
  return node(
    "section",
    { id: "samples", class: "part" },
    text("h3", "Samples"),
    index.bare ? text("p", bare, { class: "note" }) : null,
    filterBar(task, taskData, query, (name, value) => {
      location.hash = addressWith(task, query, name, value);
    }),
    node("p", { class: "note" }, count, ` · ${scores}`, ...models, " · ", ...statusLegend()),
    numbers.length
      ? grid(numbers.length, (row) => tileOf(task, taskData, numbers, row, query))
      : text("p", "No sample matches these filters.", { class: "alert" }),
  );
}
