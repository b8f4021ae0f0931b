// Draw tables. A cell with a bar is a chart. A cell with a query links to the samples behind its score.
import { address } from "./addresses.js";
import { chartOf } from "./charts.js";
import { foldedBlock, node, svgNode, text } from "./elements.js";
import { counted, short } from "./words.js";

/** @import { Bar, Cell, Column, GapToNext, Mark, Table } from "./shapes.d.ts" */

/**
 * `task` is the task to whose samples cells link. `marks` holds lines in the bars of each column.
 * @typedef {{ task?: string, marks?: Mark[][] }} Drawing
 */

const WIDE = 92;
const LONG = 15;

/**
 * @param {Bar} bar
 * @param {Mark[]} marks
 */
function barOf({ value, low, high }, marks) {
  /** @param {number} share */
  const at = (share) => (WIDE * Math.min(1, Math.max(0, share))).toFixed(1);
  /** @type {SVGElement[]} */
  const parts = [
    svgNode("rect", { class: "track", width: WIDE, height: 10, rx: 2 }),
    svgNode("rect", { class: "value", width: at(value), height: 10, rx: 2 }),
    ...marks.map((mark) =>
      svgNode(
        "line",
        { class: "mark", x1: at(mark.value), x2: at(mark.value), y1: -2, y2: 12 },
        svgNode("title", {}, `${mark.name} ${short(mark.value)}`),
      ),
    ),
  ];
  if (typeof low === "number" && typeof high === "number") {
    parts.push(svgNode("path", { class: "range", d: `M${at(low)} 5H${at(high)}M${at(low)} 2V8M${at(high)} 2V8` }));
  }
  return svgNode("svg", { class: "bar", viewBox: `0 -2 ${WIDE} 14`, "aria-hidden": "true" }, ...parts);
}

/** @param {GapToNext} gap */
function gapOf({ below, difference, p, certainty, better, worse }) {
  const chance = p < 0.001 ? "p < 0.001" : `p ${short(p)}`;
  const counts = `better on ${better} examples, worse on ${worse}`;
  const title = `${short(difference)} ahead of ${below}, ${chance} (Holm): ${counts}`;
  const gapWord = {
    sure: `▲ ahead, ${chance}`,
    likely: "△ likely ahead",
    unclear: "≈ like next",
    "too few": "too few videos",
    none: "= next",
  }[certainty];
  return node("span", { class: `gap ${certainty}`, title }, gapWord);
}

/**
 * @param {Cell} cell
 * @param {string | undefined} task
 * @param {Mark[]} marks
 */
function cellOf(cell, task, marks) {
  const figure = [cell.text, cell.extra ? text("small", ` ${cell.extra}`) : null];
  const href = cell.href ?? (cell.query && task ? address(task, "", new URLSearchParams(cell.query)) : null);
  return [
    node(
      "span",
      { class: "figure" },
      href ? node("a", { href, title: cell.title ?? null }, ...figure) : node("span", {}, ...figure),
    ),
    cell.bar ? barOf(cell.bar, marks) : null,
    ...(cell.notes ?? []).map((note) =>
      text("span", note, { class: cell.bar && note.startsWith("[") ? "under interval" : "under" }),
    ),
    cell.gap ? gapOf(cell.gap) : null,
  ];
}

/**
 * @param {Column[]} columns
 * @param {Cell[]} row
 * @param {Drawing} [drawing]
 */
export function rowOf(columns, row, { task, marks } = {}) {
  const cells = row.map((cell, at) => {
    const inside = cellOf(cell, task, marks?.[at] ?? []);
    const kind = columns[at].numeric === false ? "text" : "number";
    const look = [kind, cell.warn ? "warn" : "", cell.bar ? "charted" : ""].join(" ").trim();
    return at ? node("td", { class: look }, inside) : node("th", { scope: "row", class: look }, inside);
  });
  return node("tr", {}, ...cells);
}

/** The header row with the groups of columns. @param {Column[]} columns */
function groupsOf(columns) {
  if (!columns.some((column) => column.group)) return null;
  /** @type {{ group: string, span: number }[]} */
  const spans = [];
  for (const { group = "" } of columns) {
    const last = spans.at(-1);
    if (last?.group === group) last.span += 1;
    else spans.push({ group, span: 1 });
  }
  return node(
    "tr",
    { class: "groups" },
    ...spans.map(({ group, span }) =>
      group ? node("th", { colspan: span, scope: "colgroup" }, group) : node("td", { colspan: span }),
    ),
  );
}

/** @param {Column} column */
function headOf({ name, numeric }) {
  return name ? node("th", { scope: "col", class: numeric === false ? "text" : "number" }, name) : node("td");
}

/**
 * A table that scrolls in its own frame. A hint shows while columns are hidden on the right.
 * @param {string} title
 * @param {HTMLTableElement} table
 */
export function scrollArea(title, table) {
  const area = node("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title }, table);
  const hint = text("span", "more columns →", { class: "hint", "aria-hidden": "true", hidden: true });
  const update = () => {
    const rest = area.scrollWidth - area.clientWidth - area.scrollLeft;
    hint.hidden = rest < 8;
    area.classList.toggle("cut", rest >= 8);
  };
  area.addEventListener("scroll", update, { passive: true });
  new ResizeObserver(update).observe(area);
  return node("div", { class: "scroll-frame" }, hint, area);
}

/**
 * @param {Table} table
 * @param {Drawing} [drawing]
 */
export function tableOf(table, drawing = {}) {
  const head = node("thead", {}, groupsOf(table.columns), node("tr", {}, ...table.columns.map(headOf)));
  const body = node("tbody", {}, ...table.rows.map((row) => rowOf(table.columns, row, drawing)));
  const caption = text("caption", table.title, { class: "hidden" });
  return [
    table.chart ? chartOf(table.chart, table.title) : null,
    scrollArea(table.title, node("table", {}, caption, head, body)),
    table.note ? text("p", table.note, { class: "note" }) : null,
  ];
}

/**
 * @param {Table} table
 * @param {Drawing} [drawing]
 */
export const shownTable = (table, drawing) =>
  node("section", { class: "block" }, text("h3", table.title), ...tableOf(table, drawing));

/**
 * @param {Table} table
 * @param {Drawing} [drawing]
 */
const foldedTable = (table, drawing) =>
  foldedBlock(`${table.title} (${counted(table.rows.length, "row")})`, () => tableOf(table, drawing));

/**
 * Draw a table. A long table is folded.
 * @param {Table} table
 * @param {Drawing} [drawing]
 */
export const shownIfShort = (table, drawing) =>
  table.rows.length > LONG ? foldedTable(table, drawing) : shownTable(table, drawing);
