// Format names, numbers and statuses for readers.
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

/** As in `tables.py`.
 * @type {Record<string, string>} */
const WRITTEN = { f1: "F1", map: "mAP", iou: "IoU", miou: "mIoU", viou: "vIoU", vqa: "VQA", scr: "SCR" };

/** @param {string} name */
export const words = (name) =>
  name
    .split("_")
    .map((word) => WRITTEN[word] ?? word)
    .join(" ");

/** @param {number | null | undefined} value */
export const short = (value, digits = 3) =>
  value === null || value === undefined ? "–" : value.toFixed(digits).replace("-", "−");

/**
 * @param {number} count
 * @param {string} noun
 */
export const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
