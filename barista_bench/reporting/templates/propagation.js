// How errors occur together: tasks on a circle, with bent arrows from source to target, so that both directions show.
import { node, svgNode, text } from "./elements.js";
import { words } from "./words.js";

/** @import { PropagationEdge, PropagationGraph } from "./shapes.d.ts" */

const CIRCLE = { width: 640, height: 400, radius: 140 };
const NOTE =
  "An arrow leads from one task to another task about the same object. Solid: errors occur together (odds ratio " +
  "above 1). Dashed: errors occur apart. Thin: unclear. None: " +
  "one of the tasks always or never failed, so the odds ratio is undefined.";

/** @param {PropagationEdge} edge */
function kindOf({ low, high }) {
  if (low !== null && low > 1) return "together";
  return high !== null && high < 1 ? "apart" : "unclear";
}

/**
 * @param {PropagationEdge} edge
 * @param {number[]} from
 * @param {number[]} to
 */
function arrowOf(edge, [x0, y0], [x1, y1]) {
  const far = Math.hypot(x1 - x0, y1 - y0) || 1;
  const [ax, ay] = [(x1 - x0) / far, (y1 - y0) / far];
  const bent = [(x0 + x1) / 2 + ay * far * 0.16, (y0 + y1) / 2 - ax * far * 0.16];
  const start = [x0 + ax * 17 + ay * 6, y0 + ay * 17 - ax * 6];
  const end = [x1 - ax * 17 + ay * 6, y1 - ay * 17 - ax * 6];
  const kind = kindOf(edge);
  const ratio = Number(edge.odds_ratio).toPrecision(3);
  const title = `${words(edge.source)} to ${words(edge.target)}: odds ratio ${ratio}, n ${edge.n}`;
  const thickness = kind === "unclear" ? 1 : 1.4 + Math.min(4, Math.abs(Math.log2(Number(edge.odds_ratio)))) * 0.8;
  const path = `M${start.join(" ")}Q${bent.join(" ")} ${end.join(" ")}`;
  const [x, y] = [0, 1].map((axis) => (start[axis] + 2 * bent[axis] + end[axis]) / 4);
  return svgNode(
    "g",
    { class: kind },
    svgNode("title", {}, title),
    svgNode("path", { class: "arrow", d: path, "stroke-width": thickness }),
    svgNode("circle", { class: "tip", cx: end[0], cy: end[1], r: 4 }),
    kind === "unclear" ? null : svgNode("text", { class: "ratio", x, y }, ratio),
  );
}

/** @param {PropagationGraph} graph */
export function graphOf(graph) {
  const { width, height, radius } = CIRCLE;
  const places = new Map(
    graph.tasks.map((task, at) => {
      const angle = (2 * Math.PI * at) / graph.tasks.length - Math.PI / 2;
      return [task, [width / 2 + radius * Math.cos(angle), height / 2 + radius * Math.sin(angle)]];
    }),
  );
  const arrows = graph.edges.flatMap((edge) => {
    const [from, to] = [places.get(edge.source), places.get(edge.target)];
    return from && to && edge.odds_ratio !== null ? [arrowOf(edge, from, to)] : [];
  });
  const names = [...places].map(([task, [x, y]]) => {
    const attributes = { class: "name", x, y: y < height / 2 ? y - 16 : y + 26, "text-anchor": "middle" };
    const dot = svgNode("circle", { class: "task", cx: x, cy: y, r: 9 });
    return svgNode("g", {}, dot, svgNode("text", attributes, words(task)));
  });
  const title = `Error propagation: ${graph.model}`;
  const description = `${title}; the table with this title lists the values`;
  const look = { class: "graph", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description };
  const picture = svgNode("svg", look, ...arrows, ...names);
  return node(
    "figure",
    { class: "chart block" },
    text("figcaption", title),
    picture,
    text("p", NOTE, { class: "note" }),
  );
}
