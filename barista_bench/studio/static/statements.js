// What is said of objects and frames beside masks: rows of the timeline, what others propose, and how a person changes it.
import { button, explained, node, say } from "./page.js";

const LISTS = { activity: "activities", step: "process_steps", attribute: "attributes", relation: "relations" };
const objectsOf = ({ object, source, target }) => (object ? [object] : source ? [source, target] : []);
const keyOf = (list, { range, ranges, ...said }) => JSON.stringify([list, objectsOf(said), said.type, said.value, said.name]);

/** Ranges without overlaps, in order. */
function united(ranges) {
  const sorted = ranges.map((range) => [...range]).sort((a, b) => a[0] - b[0]);
  return sorted.reduce((all, range) => {
    if (all.length && range[0] <= all.at(-1)[1]) all.at(-1)[1] = Math.max(all.at(-1)[1], range[1]);
    else all.push(range);
    return all;
  }, []);
}

/** Timeline rows of layers. `names`: of objects by id. */
export function rowsOf(layers, names, more) {
  const rows = [];
  for (const [layer, list] of Object.entries(LISTS)) {
    for (const entry of layers[list]) {
      const objects = objectsOf(entry);
      const [first, second] = objects.map((id) => names.get(id) ?? id);
      const text = entry.name ?? (second ? `${first} ${entry.value} ${second}` : `${first} ${entry.type}: ${entry.value}`);
      rows.push({ layer, list, entry, objects, text, ranges: entry.ranges ?? [entry.range], ...more });
    }
  }
  return rows;
}

/** Layers in which `range` of an entry is `changed`; added where it is not there, gone where `changed` is null. */
export function changedLayers(layers, list, entry, range, changed) {
  const isSame = (other) => keyOf(list, other) === keyOf(list, entry);
  const isRange = ([start, end]) => range && start === range[0] && end === range[1];
  const entries = structuredClone(layers[list]);
  if (list === LISTS.activity || list === LISTS.step) {
    const kept = entries.filter((other) => !(isSame(other) && isRange(other.range)));
    if (changed) kept.push({ name: entry.name, range: changed });
    return { ...layers, [list]: kept.sort((a, b) => a.range[0] - b.range[0]) };
  }
  const known = entries.find(isSame);
  if (!known) return { ...layers, [list]: [...entries, { ...entry, ranges: [changed] }] };
  known.ranges = united([...known.ranges.filter((other) => !isRange(other)), ...(changed ? [changed] : [])]);
  return { ...layers, [list]: entries.filter(({ ranges }) => ranges.length) };
}

/** What is offered and not accepted yet. */
export function offeredRows({ layers, offered_layers: offered }, names) {
  const accepted = new Map(Object.values(LISTS).flatMap((list) => layers[list].map((entry) => [keyOf(list, entry), entry])));
  const isWithin = ([start, end], entry) => (entry?.ranges ?? (entry ? [entry.range] : [])).some(([from, to]) => from <= start && end <= to);
  return offered.flatMap(({ origin, layers: said }) => rowsOf(said, names, { offered: true, origin })).map((row) =>
    ({ ...row, text: `${row.text} (${row.origin})`, ranges: row.ranges.filter((range) => !isWithin(range, accepted.get(keyOf(row.list, row.entry)))) }))
    .filter(({ ranges }) => ranges.length);
}

/** All ranges of a row, accepted. */
export const acceptedRow = (layers, { list, entry, ranges }) => ranges.reduce((all, range) => changedLayers(all, list, entry, null, range), layers);

/** What others propose; `write(layers)` accepts. */
export function statementsPanel(project, names, player, write) {
  const rows = offeredRows(project, names);
  const list = node("ul", { class: "facts-list" }, ...rows.map((row) => node("li", {},
    button("accept", () => write(acceptedRow(project.layers, row)), { "aria-label": `accept ${row.text}` }), ` ${row.text} `,
    button(`frame ${row.ranges[0][0]}`, () => player.go(row.ranges[0][0])), node("small", {}, row.ranges.length > 1 ? ` and ${row.ranges.length - 1} more` : ""))));
  return [node("h4", {}, `Proposed (${rows.length})`), list];
}

/** A form for a statement of one's own on the frame that is shown. It is made once: `fill()` takes the objects there are. */
export function statementForm(work, player, write) {
  const { attributes, relations } = work.project.vocabulary;
  const options = (pairs) => pairs.map(([value, text]) => node("option", { value }, text));
  const kind = node("select", { "aria-label": "kind", change: () => shape() }, ...options(Object.keys(LISTS).map((name) => [name, name])));
  const name = node("input", { "aria-label": "name", required: true, maxlength: 200 });
  const [source, target] = ["object", "other object"].map((label) => node("select", { "aria-label": label }));
  const said = node("select", { "aria-label": "what" });
  const shape = () => {
    const isNamed = kind.value === "activity" || kind.value === "step";
    const values = Object.entries(kind.value === "relation" ? relations : attributes).flatMap(([type, all]) => all.map((value) => [JSON.stringify([type, value]), kind.value === "relation" ? value : `${type}: ${value}`]));
    said.replaceChildren(...options(values));
    name.required = isNamed;
    for (const [field, isShown] of [[name, isNamed], [source, !isNamed], [said, !isNamed], [target, kind.value === "relation"]]) field.hidden = !isShown;
  };
  shape();
  const fill = () => {
    const [chosen] = player.selected;
    for (const [field, preferred] of [[source, chosen], [target, null]]) {
      const value = preferred ?? field.value;
      field.replaceChildren(...options([...work.names]));
      if (work.names.has(value)) field.value = value;
    }
  };
  const element = node("form", { class: "inline wrap", submit: explained(async (event) => {
    event.preventDefault();
    const [type, value] = JSON.parse(said.value || "[]");
    const start = player.frame;
    const range = [start, Math.min(player.count, start + Math.round(2 * player.facts.fps) || 1)];
    const entry = { activity: { name: name.value.trim() }, step: { name: name.value.trim() }, attribute: { object: source.value, type, value },
      relation: { source: source.value, target: target.value, type, value } }[kind.value];
    await write(changedLayers(work.project.layers, LISTS[kind.value], entry, null, range));
    say(`from frame ${range[0]} to ${range[1] - 1}: drag its ends on the timeline`);
  }) }, kind, name, source, said, target, node("button", {}, "add here"));
  return { element, fill };
}
