// Names, numbers and statuses as people read them.
/** @import { Status } from "./shapes.d.ts" */

/** @type {Record<Status, string>} */
export const STATUS = {
  ok: "●",
  parse_error: "▲",
  refused: "■",
  truncated: "◆",
  truncated_thinking: "◇",
  infra_error: "✕",
  task_error: "⬢",
  not_run: "○",
};

/** @param {string} name */
export const words = (name) => name.replaceAll("_", " ");

/** @param {number | null | undefined} value */
export const short = (value, digits = 3) =>
  value === null || value === undefined ? "–" : value.toFixed(digits).replace("-", "−");

/**
 * @param {number} count
 * @param {string} noun
 */
export const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
