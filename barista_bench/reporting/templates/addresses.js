// An address is #task, #task?filters or #task/sample?filters. It holds all choices of the reader.
/** @import { Place } from "./shapes.d.ts" */

/** Make a part of an address. Lone surrogates from broken models are replaced. @param {string} part */
const encodePart = (part) => encodeURIComponent(part.toWellFormed());

/**
 * @param {string} task
 * @param {URLSearchParams | string} query
 */
export const address = (task, sample = "", query = "") =>
  `#${encodePart(task)}${sample === "" ? "" : `/${encodePart(sample)}`}${String(query) ? `?${query}` : ""}`;

/** @param {string} part */
function decodePart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * @param {string} hash
 * @returns {Place}
 */
export function parseAddress(hash) {
  const [path, ...rest] = hash.replace(/^#/, "").split("?");
  const [task, ...sample] = path.split("/").map(decodePart);
  return { task, sample: sample.join("/"), query: new URLSearchParams(rest.join("?")) };
}
