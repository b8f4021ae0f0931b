// Line and bar charts of papers, as SVG in the colours of the page.
import { node, svgNode, text } from "./elements.js";
import { short } from "./words.js";

/** @import { Chart, Series } from "./shapes.d.ts" */

const SHAPES = ["circle", "square", "diamond", "triangle"];
const COLOURS = 8;
const CHART = { width: 680, height: 260, left: 46, below: 46 };
const GRID = [0, 0.25, 0.5, 0.75, 1];
const MOST_TICKS = 12;

/**
 * @param {string} shape
 * @param {number} x
 * @param {number} y
 * @param {string} look
 */
function marker(shape, x, y, look) {
  /** @type {Record<string, string>} */
  const paths = {
    square: `M${x - 4} ${y - 4}h8v8h-8z`,
    diamond: `M${x} ${y - 5}l5 5l-5 5l-5 -5z`,
    triangle: `M${x} ${y - 5}l5 9h-10z`,
  };
  return shape === "circle"
    ? svgNode("circle", { class: look, cx: x, cy: y, r: 4 })
    : svgNode("path", { class: look, d: paths[shape] });
}

/**
 * The positions of values: `across` and `up` in pixels, and `step` between named neighbours.
 * @param {Series[]} series
 * @param {boolean} isBar
 */
function scales(series, isBar) {
  const { width, height, left, below } = CHART;
  const xs = [...new Set(series.flatMap(({ points }) => points.map(([x]) => x)))];
  const isNamed = isBar || xs.some((x) => typeof x === "string");
  if (!isNamed) xs.sort((a, b) => Number(a) - Number(b));
  const heights = series.flatMap(({ points }) => points.flatMap(([, y, , high]) => [Number(y), Number(high ?? y)]));
  const top = Math.max(1, ...heights);
  const first = Number(xs[0]);
  const span = isNamed ? 1 : Number(xs.at(-1)) - first || 1;
  const step = (width - left - 12) / xs.length;
  /** @param {number | string} x */
  const across = (x) =>
    isNamed ? left + step * (xs.indexOf(x) + 0.5) : left + 14 + ((width - left - 40) * (Number(x) - first)) / span;
  /** @param {number} y */
  const up = (y) => height - below - ((height - below - 26) * Math.max(0, y)) / top; // the name of the axis is above
  return { xs, top, step, across, up };
}

/**
 * The points of a series. The points of a line are connected.
 * @param {Series} series
 * @param {number} at position of the series, of `count` series
 * @param {number} count
 * @param {boolean} isBar
 * @param {ReturnType<typeof scales>} scale
 */
function shapesOf({ name, points }, at, count, isBar, { step, across, up }) {
  const look = `series s${at % COLOURS}`;
  const thickness = Math.max(2, (step * 0.8) / count);
  const marks = points.map(([x, value, low, high]) => {
    const y = Number(value);
    const place = isBar ? across(x) + thickness * (at - (count - 1) / 2) : across(x);
    const whisker = { class: `${look} whisker`, x1: place, x2: place, y1: up(Number(low)), y2: up(Number(high)) };
    const bar = { class: look, x: place - thickness * 0.46, width: thickness * 0.92, y: up(y), height: up(0) - up(y) };
    return svgNode(
      "g",
      {},
      svgNode("title", {}, `${name} ${x}: ${short(y)}`),
      isBar ? svgNode("rect", bar) : marker(SHAPES[at % SHAPES.length], place, up(y), look),
      low === null || low === undefined ? null : svgNode("line", whisker),
    );
  });
  const path = points.map(([x, y]) => `${across(x)},${up(Number(y))}`).join(" ");
  return svgNode("g", {}, isBar ? null : svgNode("polyline", { class: look, points: path }), ...marks);
}

/**
 * @param {Series[]} series
 * @param {boolean} isBar
 */
function legendOf(series, isBar) {
  const keys = series
    .filter(({ name }) => name)
    .map(({ name }, at) => {
      const shape = marker(SHAPES[isBar ? 1 : at % SHAPES.length], 6, 6, `series s${at % COLOURS}`);
      const swatch = svgNode("svg", { viewBox: "0 0 12 12", class: "swatch", "aria-hidden": "true" }, shape);
      return node("span", { class: "key" }, swatch, name);
    });
  return node("p", { class: "legend" }, ...keys);
}

/**
 * Draw a chart. A chart without points gives no element.
 * @param {Chart} chart
 * @param {string} heading the heading that is already above the chart
 */
export function chartOf(chart, heading) {
  const { width, height, left, below } = CHART;
  const isBar = chart.kind === "bar";
  const series = chart.series.map(({ name, points }) => ({ name, points: points.filter(([, y]) => y !== null) }));
  const scale = scales(series, isBar);
  const { xs, top, across, up } = scale;
  if (!xs.length) return null;
  const grid = GRID.flatMap((share) => {
    const y = up(share * top);
    return [
      svgNode("line", { class: "grid", x1: left, x2: width - 6, y1: y, y2: y }),
      svgNode("text", { class: "tick", x: left - 6, y: y + 4, "text-anchor": "end" }, (share * top).toFixed(2)),
    ];
  });
  const every = Math.ceil(xs.length / MOST_TICKS);
  const ticks = xs
    .filter((_, at) => at % every === 0)
    .map((x) => {
      const attributes = { class: "tick", x: across(x), y: height - below + 16, "text-anchor": "middle" };
      return svgNode("text", attributes, String(x).slice(0, 18));
    });
  const description = `${chart.title}; the table with this title lists the values`;
  return node(
    "figure",
    { class: "chart block" },
    chart.title === heading ? null : text("figcaption", chart.title),
    svgNode(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description },
      ...grid,
      ...ticks,
      ...series.map((one, at) => shapesOf(one, at, series.length, isBar, scale)),
      svgNode("text", { class: "tick", x: width / 2, y: height - 8, "text-anchor": "middle" }, chart.x),
      svgNode("text", { class: "tick", x: left - 40, y: 9 }, chart.y),
    ),
    legendOf(series, isBar),
  );
}
