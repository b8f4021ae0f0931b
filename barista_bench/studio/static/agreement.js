// Two annotators: how far they agree on each video, and the keyframes on which they differ most, for a lead to decide.
import { node } from "./elements.js";
import { ask } from "./server.js";
import { reasonOf, say } from "./status.js";
import { counted } from "./words.js";

/** @import { View } from "./page.d.ts" */

/** @type {Record<string, string>} */
const METRICS = {
  keyframes: "keyframes",
  mask_iou: "mask IoU",
  boundary_f: "boundary F",
  attribute_kappa: "attributes, kappa",
  relation_kappa: "relations, kappa",
  segment_iou: "contacts, IoU",
};
const MOST_SHOWN = 8;

/** @param {number | null} value */
const figure = (value) => (value === null ? "–" : String(Number(value.toFixed(3))));

/**
 * @param {string[]} videos
 * @returns {View}
 */
export function agreementView(videos) {
  const rows = node("tbody");
  const heading = node("p", { class: "note" });
  /** @param {string} video */
  const cells = async (video) => {
    const { annotators, metrics, keyframes } = await ask("/api/agreement", { video });
    const both = annotators.join(" and ");
    const hint = "A frame opens in the lead's project, which shows the masks and statements of both as suggestions.";
    heading.textContent = `${both}. ${hint}`;
    const worst = keyframes.filter(({ iou }) => iou < 1).slice(0, MOST_SHOWN);
    const links = worst.flatMap(({ frame, iou }) => {
      const href = `#/project/${encodeURIComponent(video)}?frame=${frame}`;
      return [node("a", { href }, `frame ${frame} (${iou.toFixed(2)})`), " "];
    });
    return [
      ...Object.keys(METRICS).map((key) => node("td", { class: "number" }, figure(metrics[key]))),
      node("td", { class: "text" }, ...links),
    ];
  };
  /** @param {unknown} error */
  const problem = (error) => [node("td", { colspan: Object.keys(METRICS).length + 1, class: "warn" }, reasonOf(error))];
  const head = node(
    "tr",
    {},
    node("th", {}, "video"),
    ...Object.values(METRICS).map((title) => node("th", { class: "number" }, title)),
    node("th", {}, "largest differences (mask IoU)"),
  );
  const table = node("table", {}, node("thead", {}, head), rows);
  return {
    elements: [node("h2", {}, "Agreement"), heading, node("div", { class: "scroll" }, table)],
    onShown: async () => {
      for (const video of videos) {
        rows.append(node("tr", {}, node("th", {}, video), ...(await cells(video).catch(problem))));
      }
      say(`${counted(videos.length, "video")} compared`);
    },
  };
}
