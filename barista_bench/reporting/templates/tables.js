// Tables of any kind: a cell with a bar is a chart, a cell with a query leads to the samples behind it.
const WIDE = 92;

function bar({ value, low = null, high = null }, marks = []) {
  const at = (share) => (WIDE * Math.min(1, Math.max(0, share))).toFixed(1);
  const parts = [
    drawn("rect", { class: "track", width: WIDE, height: 10, rx: 2 }),
    drawn("rect", { class: "value", width: at(value), height: 10, rx: 2 }),
    ...marks.map((mark) => drawn("line", { class: "mark", x1: at(mark.value), x2: at(mark.value), y1: -2, y2: 12 },
      drawn("title", {}, `${mark.name} ${short(mark.value)}`))),
  ];
  if (low !== null) {
    parts.push(drawn("path", { class: "range", d: `M${at(low)} 5H${at(high)}M${at(low)} 2V8M${at(high)} 2V8` }));
  }
  return drawn("svg", { class: "bar", viewBox: `0 -2 ${WIDE} 14`, "aria-hidden": "true" }, ...parts);
}

function gapOf({ below, difference, p, better, worse }) {
  const sure = p < 0.05;
  const chance = p < 0.001 ? "p < 0.001" : `p ${short(p)}`;
  const title = `${short(difference)} ahead of ${below}, ${chance} (Holm): better on ${better} examples, worse on ${worse}`;
  return node("span", { class: sure ? "gap sure" : "gap", title },
    sure ? "▲ ahead of next, " : "≈ like next, ", chance);
}

function cellOf(cell, { task = null, marks = [] } = {}) {
  const figure = [cell.text, cell.extra ? text("small", ` ${cell.extra}`) : null];
  const linked = cell.query && task ? node("a", { href: address(task, "", new URLSearchParams(cell.query)) }, ...figure) : node("span", {}, ...figure);
  const notes = cell.notes ?? [];
  return [
    node("span", { class: "figure" }, linked),
    cell.bar ? bar(cell.bar, marks) : null,
    ...notes.map((note) => text("span", note, { class: cell.bar && note.startsWith("[") ? "under interval" : "under" })),
    cell.gap ? gapOf(cell.gap) : null,
  ];
}

function rowOf(columns, row, options = {}) {
  return node("tr", options.row ?? {}, ...row.map((cell, at) => {
    const marks = options.marks?.[at] ?? [];
    const inside = cellOf(cell, { ...options, marks });
    const names = [columns[at].numeric === false ? "text" : "number", cell.warn ? "warn" : "", cell.bar ? "charted" : ""];
    return at ? node("td", { class: names.join(" ").trim() }, inside) : node("th", { scope: "row", class: names.join(" ").trim() }, inside);
  }));
}

function heads(columns) {
  if (!columns.some((column) => column.group)) return null;
  const spans = [];
  for (const { group = "" } of columns) {
    if (spans.length && spans.at(-1).group === group) spans.at(-1).span += 1;
    else spans.push({ group, span: 1 });
  }
  return node("tr", { class: "groups" }, ...spans.map(({ group, span }) =>
    (group ? node("th", { colspan: span, scope: "colgroup" }, group) : node("td", { colspan: span }))));
}

function scrolled(title, table) {
  return node("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title }, table);
}

function tableOf(table, options = {}) {
  const columns = node("tr", {}, ...table.columns.map((column) =>
    (column.name ? node("th", { scope: "col", class: column.numeric === false ? "text" : "number" }, column.name) : node("td"))));
  return [
    scrolled(table.title, node("table", {}, text("caption", table.title, { class: "hidden" }),
      node("thead", {}, heads(table.columns), columns),
      node("tbody", {}, ...table.rows.map((row) => rowOf(table.columns, row, options))))),
    table.note ? text("p", table.note, { class: "note" }) : null,
  ].filter(Boolean);
}

const shownTable = (table, options) =>
  node("section", { class: "block" }, text("h3", table.title), ...tableOf(table, options));
const foldedTable = (table, options) =>
  folded(`${table.title} (${counted(table.rows.length, "row")})`, () => tableOf(table, options));
