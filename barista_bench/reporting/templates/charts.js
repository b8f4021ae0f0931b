// Line and bar charts of papers, and graphs of how errors go together: SVG whose colours are those of the page.
const SHAPES = ["circle", "square", "diamond", "triangle"];
const COLOURS = 8;

function marker(shape, x, y, look) {
  const paths = {
    square: `M${x - 4} ${y - 4}h8v8h-8z`, diamond: `M${x} ${y - 5}l5 5l-5 5l-5 -5z`, triangle: `M${x} ${y - 5}l5 9h-10z`,
  };
  return shape === "circle" ? drawn("circle", { class: look, cx: x, cy: y, r: 4 }) : drawn("path", { class: look, d: paths[shape] });
}

function chartOf(chart) {
  const [width, height, left, below] = [680, 260, 46, 46];
  const series = chart.series.map(({ name, points }) => ({ name, points: points.filter(([, y]) => y !== null) }));
  const xs = [...new Set(series.flatMap(({ points }) => points.map(([x]) => x)))];
  if (!xs.length) return null;
  const named = chart.kind === "bar" || xs.some((x) => typeof x === "string");
  if (!named) xs.sort((a, b) => a - b);
  const top = Math.max(1, ...series.flatMap(({ points }) => points.flatMap(([, y, , high]) => [y, high ?? y])));
  const span = named ? 1 : xs.at(-1) - xs[0] || 1;
  const step = (width - left - 12) / xs.length;
  const across = (x) => (named ? left + step * (xs.indexOf(x) + 0.5) : left + 14 + ((width - left - 40) * (x - xs[0])) / span);
  const up = (y) => height - below - ((height - below - 12) * Math.max(0, y)) / top;
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => [
    drawn("line", { class: "grid", x1: left, x2: width - 6, y1: up(share * top), y2: up(share * top) }),
    drawn("text", { class: "tick", x: left - 6, y: up(share * top) + 4, "text-anchor": "end" }, (share * top).toFixed(2)),
  ]).flat();
  const every = Math.ceil(xs.length / 12);
  const ticks = xs.filter((_, at) => at % every === 0).map((x) => drawn("text",
    { class: "tick", x: across(x), y: height - below + 16, "text-anchor": "middle" }, String(x).slice(0, 18)));
  const shapes = series.map(({ name, points }, at) => {
    const look = `series s${at % COLOURS}`;
    const thick = Math.max(2, (step * 0.8) / series.length);
    const shift = (x) => (chart.kind === "bar" ? across(x) + thick * (at - (series.length - 1) / 2) : across(x));
    const marks = points.map(([x, y, low, high]) => drawn("g", {}, drawn("title", {}, `${name} ${x}: ${short(y)}`),
      chart.kind === "bar"
        ? drawn("rect", { class: look, x: shift(x) - thick * 0.46, width: thick * 0.92, y: up(y), height: up(0) - up(y) })
        : marker(SHAPES[at % SHAPES.length], shift(x), up(y), look),
      low === null || low === undefined ? null : drawn("line", { class: `${look} whisker`, x1: shift(x), x2: shift(x), y1: up(low), y2: up(high) })));
    const path = points.map(([x, y]) => `${across(x)},${up(y)}`).join(" ");
    return drawn("g", {}, chart.kind === "bar" ? null : drawn("polyline", { class: look, points: path }), ...marks);
  });
  const legend = series.filter(({ name }) => name).map(({ name }, at) => node("span", { class: "key" },
    drawn("svg", { viewBox: "0 0 12 12", class: "swatch", "aria-hidden": "true" }, marker(SHAPES[chart.kind === "bar" ? 1 : at % SHAPES.length], 6, 6, `series s${at % COLOURS}`)), name));
  return node("figure", { class: "chart block" }, text("figcaption", chart.title),
    drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${chart.title}; its numbers stand in the table of this name` },
      ...grid, ...ticks, ...shapes,
      drawn("text", { class: "tick", x: width / 2, y: height - 8, "text-anchor": "middle" }, chart.x),
      drawn("text", { class: "tick", x: left - 40, y: 9 }, chart.y)),
    node("p", { class: "legend" }, ...legend));
}

// Tasks on a circle; bent arrows from the task that erred first, so that both directions of a pair are seen.
function graphOf(graph) {
  const [width, height, radius] = [640, 400, 140];
  const places = new Map(graph.tasks.map((task, at) => {
    const angle = (2 * Math.PI * at) / graph.tasks.length - Math.PI / 2;
    return [task, [width / 2 + radius * Math.cos(angle), height / 2 + radius * Math.sin(angle)]];
  }));
  const kindOf = ({ low, high }) => (low > 1 ? "together" : high !== null && high < 1 ? "apart" : "unclear");
  const arrows = graph.edges.map((edge) => {
    const [[x0, y0], [x1, y1]] = [places.get(edge.source), places.get(edge.target)];
    const far = Math.hypot(x1 - x0, y1 - y0) || 1;
    const [ax, ay] = [(x1 - x0) / far, (y1 - y0) / far];
    const bent = [(x0 + x1) / 2 + ay * far * 0.16, (y0 + y1) / 2 - ax * far * 0.16];
    const [start, end] = [[x0 + ax * 17 + ay * 6, y0 + ay * 17 - ax * 6], [x1 - ax * 17 + ay * 6, y1 - ay * 17 - ax * 6]];
    const kind = kindOf(edge);
    const ratio = edge.odds_ratio === null ? "–" : edge.odds_ratio.toPrecision(3);
    const title = `${words(edge.source)} to ${words(edge.target)}: odds ratio ${ratio}, n ${edge.n}`;
    const thick = kind === "unclear" ? 1 : 1.4 + Math.min(4, Math.abs(Math.log2(edge.odds_ratio))) * 0.8;
    return drawn("g", { class: kind }, drawn("title", {}, title),
      drawn("path", { class: "arrow", d: `M${start.join(" ")}Q${bent.join(" ")} ${end.join(" ")}`, "stroke-width": thick }),
      drawn("circle", { class: "tip", cx: end[0], cy: end[1], r: 4 }),
      kind === "unclear" ? null : drawn("text", { class: "ratio", x: (start[0] + 2 * bent[0] + end[0]) / 4, y: (start[1] + 2 * bent[1] + end[1]) / 4 }, ratio));
  });
  const names = [...places].map(([task, [x, y]]) => drawn("g", {}, drawn("circle", { class: "task", cx: x, cy: y, r: 9 }),
    drawn("text", { class: "name", x, y: y < height / 2 ? y - 16 : y + 26, "text-anchor": "middle" }, words(task))));
  const title = `Error propagation: ${graph.model}`;
  return node("figure", { class: "chart block" }, text("figcaption", title),
    drawn("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}; its numbers stand in the table of this name` }, ...arrows, ...names),
    text("p", "From a task that erred to one that was asked about the same object. Solid: errors come together (odds ratio above 1). Dashed: they avoid each other. Thin: unclear.", { class: "note" }));
}
