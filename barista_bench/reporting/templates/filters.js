// Select and sort the samples of an address. Filters have the same names as in the address.
import { details, index } from "./blocks.js";

/** @import { Outcome, TaskBlock, TaskEntry } from "./shapes.d.ts" */

/** Matches any kind of failure. */
export const ANY_FAILURE = "any";

// The searchable text of each sample, by the task's address. It is available after the task has been read.
/** @type {Map<string, string[]>} */
const searchTexts = new Map();

/**
 * All texts in a JSON value.
 * @param {unknown} value
 * @returns {string[]}
 */
function textsIn(value) {
  if (typeof value === "string") return [value];
  return value && typeof value === "object" ? Object.values(value).flatMap(textsIn) : [];
}

/**
 * @param {TaskEntry} task
 * @param {TaskBlock} taskData
 */
async function textsOfSamples(task, taskData) {
  const cachedTexts = searchTexts.get(task.address);
  if (cachedTexts) return cachedTexts;
  const texts = [];
  for (const [at, row] of taskData.samples.entries()) {
    const { pictures: _pictures, related: _related, ...rest } = await details(task.first + at);
    texts.push([...row.slice(0, 3), ...textsIn(rest)].join("\n").toLowerCase());
  }
  searchTexts.set(task.address, texts);
  return texts;
}

/**
 * The positions of the selected models: one model, or all models.
 * @param {TaskEntry} task
 * @param {URLSearchParams} query
 */
export function shownPlaces(task, query) {
  const modelPlace = task.labels.indexOf(query.get("model") ?? "");
  return modelPlace < 0 ? [...task.labels.keys()] : [modelPlace];
}

/**
 * Test whether a model's outcome has the selected status, failure and score.
 * @param {URLSearchParams} query
 * @returns {(outcome: Outcome) => boolean}
 */
function outcomeFilter(query) {
  const [least, most] = ["least", "most"].map((name) => (query.get(name) ? Number(query.get(name)) : null));
  const failure = index.kinds.indexOf(query.get("failure") ?? "");
  const failsAnyhow = query.get("failure") === ANY_FAILURE;
  const status = query.get("status");
  return ([mean, codes, failures]) =>
    (!status || codes.some((code) => index.statuses[code] === status)) &&
    (failure < 0 || failures.includes(failure)) &&
    (!failsAnyhow || failures.length > 0) &&
    (least === null || (mean !== null && mean >= least)) &&
    (most === null || (mean !== null && mean <= most));
}

/**
 * Test whether one model scores better than another. Without a second model, compare with all ranked models.
 * @param {TaskEntry} task
 * @param {URLSearchParams} query
 * @returns {(outcomes: Outcome[]) => boolean}
 */
function orderFilter(task, query) {
  const [better, worse] = ["better", "worse"].map((name) => task.labels.indexOf(query.get(name) ?? ""));
  /**
   * @param {Outcome[]} outcomes
   * @param {number} place
   */
  const others = (outcomes, place) =>
    outcomes
      .filter((_, at) => at !== place && !task.unranked[at])
      .map(([mean]) => mean)
      .filter((mean) => mean !== null);
  return (outcomes) => {
    if (better < 0 && worse < 0) return true;
    const high = better >= 0 ? outcomes[better][0] : Math.max(...others(outcomes, worse));
    const low = worse >= 0 ? outcomes[worse][0] : Math.min(...others(outcomes, better));
    return high !== null && low !== null && high > low;
  };
}

/**
 * The numbers of the samples that pass all filters except the search.
 * @param {TaskEntry} task
 * @param {TaskBlock} taskData
 * @param {URLSearchParams} query
 */
function passingSamples(task, taskData, query) {
  const filter = taskData.filters.find(({ key }) => key === query.get("key"));
  const value = query.get("value");
  const code = value === null ? -1 : (filter?.values.indexOf(value) ?? -1);
  const places = shownPlaces(task, query);
  const [fits, isOrdered] = [outcomeFilter(query), orderFilter(task, query)];
  return [...taskData.samples.keys()].filter((at) => {
    const outcomes = taskData.samples[at][5];
    const hasValue = code < 0 || filter?.codes[at].includes(code);
    return hasValue && isOrdered(outcomes) && places.some((place) => fits(outcomes[place]));
  });
}

/**
 * The sort key of a sample, lowest first: its scores, or the distance between models.
 * @param {(number | null)[]} means
 * @param {string} order
 */
function rankOf(means, order) {
  const scores = means.filter((mean) => mean !== null);
  if (!scores.length) return Infinity;
  if (order === "apart") return Math.min(...scores) - Math.max(...scores);
  const mean = scores.reduce((sum, value) => sum + value, 0) / scores.length;
  return order === "up" ? mean : -mean;
}

/**
 * The numbers of the samples that an address selects, in the order of the address.
 * @param {TaskEntry} task
 * @param {TaskBlock} taskData
 * @param {URLSearchParams} query
 */
export async function selectedSamples(task, taskData, query) {
  const searchText = (query.get("text") ?? "").trim().toLowerCase();
  const texts = searchText ? await textsOfSamples(task, taskData) : null;
  const numbers = passingSamples(task, taskData, query).filter((at) => !texts || texts[at].includes(searchText));
  const order = query.get("order");
  if (!order) return numbers;
  const places = shownPlaces(task, query);
  const ranked = numbers.map((at) => {
    const means = places.map((place) => taskData.samples[at][5][place][0]);
    return { at, rank: rankOf(means, order) };
  });
  return ranked.sort((a, b) => (a.rank === b.rank ? a.at - b.at : a.rank - b.rank)).map(({ at }) => at);
}
