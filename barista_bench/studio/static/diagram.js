// The related objects of a frame on a circle, and the relations between them.
import { node, svgNode } from "./elements.js";
import { colour } from "./masks.js";

/** @import { FrameGraph, Relation } from "./shapes.d.ts" */

/** @typedef {[x: number, y: number]} Spot */

const [WIDTH, HEIGHT] = [460, 430];
const [BESIDE, ABOVE] = [60, 26];

/**
 * @param {string[]} ids
 * @returns {Map<string, Spot>}
 */
function spotsOf(ids) {
  const [x, y] = [WIDTH / 2, HEIGHT / 2];
  return new Map(
    ids.map((id, at) => {
      const turn = (2 * Math.PI * at) / ids.length - Math.PI / 2;
      return [id, [x + Math.cos(turn) * (x - BESIDE), y + Math.sin(turn) * (y - ABOVE)]];
    }),
  );
}

/**
 * @param {Relation} relation
 * @param {Spot} from
 * @param {Spot} to
 */
function edgeOf({ type, value }, [x1, y1], [x2, y2]) {
  /** @param {number} share */
  const along = (share) => [x1 + (x2 - x1) * share, y1 + (y2 - y1) * share];
  const points = [0.06, 0.6, 0.94].map((share) => along(share).join(",")).join(" ");
  const [x, y] = along(0.36);
  return svgNode(
    "g",
    { class: type === "human_actions" ? "by-hand" : "edge" },
    svgNode("polyline", { points, "marker-mid": "url(#tip)", class: "edge-line" }),
    svgNode("text", { x, y, class: "edge-name" }, value),
  );
}

/**
 * @param {FrameGraph} graph
 * @param {Map<string, string>} names of objects
 * @param {Set<string>} chosen
 */
export function diagram({ instances, relations }, names, chosen) {
  const seen = new Set(instances.map(({ object }) => object));
  const related = [...new Set(relations.flatMap(({ source, target }) => [source, target]))].filter((id) =>
    seen.has(id),
  );
  const alone = [...seen].filter((id) => !related.includes(id)).map((id) => names.get(id));
  const spots = spotsOf(related);
  const edges = relations.flatMap((relation) => {
    const [from, to] = [spots.get(relation.source), spots.get(relation.target)];
    return from && to ? [edgeOf(relation, from, to)] : [];
  });
  const dots = [...spots].map(([id, [x, y]]) => {
    const dot = svgNode("circle", { cx: x, cy: y, r: chosen.has(id) ? 9 : 6, fill: colour(id) });
    return svgNode("g", {}, dot, svgNode("text", { x, y: y - 11, class: "node-name" }, names.get(id)));
  });
  const sentences = relations.map(({ source, target, value }) => `${names.get(source)} ${value} ${names.get(target)}`);
  const box = { viewBox: "0 0 8 8", refX: 4, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" };
  const shape = svgNode("path", { d: "M0 0 8 4 0 8z", class: "tip-shape" });
  const arrowTip = svgNode("defs", {}, svgNode("marker", { id: "tip", ...box }, shape));
  const look = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "diagram", role: "img" };
  return [
    svgNode("svg", { ...look, "aria-label": sentences.join("; ") || "no relations" }, arrowTip, ...edges, ...dots),
    alone.length ? node("p", { class: "note" }, `In view, without relations: ${alone.join(", ")}.`) : "",
  ];
}
