// Two annotators: how far they agree on each video, and the keyframes on which they differ most, for a lead to decide.
import { ask, node, say } from "./page.js";

const FIGURES = { keyframes: "keyframes", mask_iou: "mask IoU", boundary_f: "boundary F", attribute_kappa: "attributes, kappa", relation_kappa: "relations, kappa", segment_iou: "contacts, IoU" };
const SHOWN = 8;

export function agreementView(videos) {
  const rows = node("tbody");
  const link = (video, { frame, iou }) => node("a", { href: `#/project/${encodeURIComponent(video)}?${new URLSearchParams({ frame })}` }, `frame ${frame} (${iou.toFixed(2)})`);
  const heading = node("p", { class: "note" });
  const cells = async (video) => {
    const { annotators, figures, keyframes } = await ask("/api/agreement", { video });
    heading.textContent = `${annotators.join(" and ")}. A frame leads to the lead's project, where masks and statements of both are suggestions.`;
    return [...Object.keys(FIGURES).map((key) => node("td", { class: "number" }, figures[key] === null ? "–" : String(Number(figures[key].toFixed(3))))),
      node("td", { class: "text" }, ...keyframes.filter(({ iou }) => iou < 1).slice(0, SHOWN).flatMap((keyframe) => [link(video, keyframe), " "]))];
  };
  return { made: [node("h2", {}, "Agreement"), heading, node("div", { class: "scroll" }, node("table", {}, node("thead", {}, node("tr", {}, node("th", {}, "video"),
    ...Object.values(FIGURES).map((title) => node("th", { class: "number" }, title)), node("th", {}, "they differ most on (mask IoU)"))), rows))],
  started: async () => {
    for (const video of videos) {
      const problem = (error) => [node("td", { colspan: Object.keys(FIGURES).length + 1, class: "warn" }, error.message)];
      rows.append(node("tr", {}, node("th", {}, video), ...await cells(video).catch(problem)));
    }
    say(`${videos.length} videos compared`);
  } };
}
