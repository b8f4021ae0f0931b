// What is said of objects and frames beside masks: rows of the timeline, what others propose, and how a person changes it.
import { button, form, listed, node, say } from "./page.js";

const LISTS = { activity: "activities", step: "process_steps", attribute: "attributes", relation: "relations" };
const objectsOf = ({ object, source, target }) => (object ? [object] : source ? [source, target] : []);
const keyOf = (list, { range, ranges, ...said }) => JSON.stringify([list, objectsOf(said), said.type, said.value, said.name]);
const rangesOf = ({ range, ranges }) => ranges ?? [range];

/** Ranges without overlaps, in order. */
function united(ranges) {
  const all = [];
  for (const [start, end] of ranges.toSorted((a, b) => a[0] - b[0])) {
    if (all.length && start <= all.at(-1)[1]) all.at(-1)[1] = Math.max(all.at(-1)[1], end);
    else all.push([start, end]);
  }
  return all;
}

/** Timeline rows of layers. `names`: of objects by id. */
export function rowsOf(layers, names, more) {
  return Object.entries(LISTS).flatMap(([layer, list]) => layers[list].map((entry) => {
    const objects = objectsOf(entry);
    const [first, second] = objects.map((id) => names.get(id) ?? id);
    const text = entry.name ?? (second ? `${first} ${entry.value} ${second}` : `${first} ${entry.type}: ${entry.value}`);
    return { layer, list, entry, objects, text, ranges: rangesOf(entry), ...more };
  }));
}

/** Layers in which `range` of an entry is `changed`; added where it is not there, gone where `changed` is null. */
export function changedLayers(layers, list, entry, range, changed) {
  const isSame = (other) => keyOf(list, other) === keyOf(list, entry);
  const kept = layers[list].filter(isSame).flatMap(rangesOf).filter(([start, end]) => !range || start !== range[0] || end !== range[1]);
  const ranges = changed ? [...kept, changed] : kept;
  const others = layers[list].filter((other) => !isSame(other));
  if (entry.name) return { ...layers, [list]: [...others, ...ranges.map((span) => ({ ...entry, range: span }))].sort((a, b) => a.range[0] - b.range[0]) };
  const at = layers[list].findIndex(isSame);
  const changedEntries = ranges.length ? [{ ...entry, ranges: united(ranges) }] : [];
  return { ...layers, [list]: others.toSpliced(at < 0 ? others.length : at, 0, ...changedEntries) };
}

/** What is offered and not accepted yet. */
export function offeredRows({ layers, offered_layers: offered }, names) {
  const accepted = rowsOf(layers, names).map(({ list, entry, ranges }) => ({ key: keyOf(list, entry), ranges }));
  const isAccepted = (key, [start, end]) => accepted.some((row) => row.key === key && row.ranges.some(([from, to]) => from <= start && end <= to));
  return offered.flatMap(({ origin, layers: said }) => rowsOf(said, names, { offered: true }).map((row) =>
    ({ ...row, text: `${row.text} (${origin})`, ranges: row.ranges.filter((range) => !isAccepted(keyOf(row.list, row.entry), range)) })))
    .filter(({ ranges }) => ranges.length);
}

/** What others propose; `write(layers)` accepts. */
export function statementsPanel(project, names, player, write) {
  const accepted = ({ list, entry, ranges }) => ranges.reduce((all, range) => changedLayers(all, list, entry, null, range), project.layers);
  return listed("Proposed", offeredRows(project, names).map((row) => [button("accept", () => write(accepted(row)), { "aria-label": `accept ${row.text}` }), ` ${row.text} `,
    button(`frame ${row.ranges[0][0]}`, () => player.go(row.ranges[0][0])), node("small", {}, row.ranges.length > 1 ? ` and ${row.ranges.length - 1} more` : "")]));
}

/**
 * A form for a statement of one's own from the frame that is shown: `write(layers)` or, where hands touch things, `touch(range)`.
 * It is made once: `fill()` takes the objects there are.
 */
export function statementForm(work, player, write, touch) {
  const { attributes, relations } = work.project.vocabulary;
  const values = (layer, types, text) => Object.entries(types).flatMap(([type, all]) => all.map((value) => ({ layer, said: { type, value }, text: text(type, value) })));
  const kinds = [{ layer: "activity", text: "activity" }, { layer: "step", text: "step" }, { layer: "touch", text: "hands touch things" },
    ...values("attribute", attributes, (type, value) => `${type}: ${value}`), ...values("relation", relations, (_, value) => value)];
  const what = node("select", { "aria-label": "what", change: () => shape() }, ...kinds.map(({ text }, at) => node("option", { value: at }, text)));
  const name = node("input", { "aria-label": "name", required: true, maxlength: 200 });
  const [source, target] = ["object", "other object"].map((label) => node("select", { "aria-label": label, required: true }));
  const shape = () => {
    const { layer } = kinds[what.value];
    name.hidden = name.disabled = layer !== "activity" && layer !== "step";
    source.hidden = source.disabled = layer !== "attribute" && layer !== "relation";
    target.hidden = target.disabled = layer !== "relation";
  };
  shape();
  const fill = () => {
    for (const [field, value] of [[source, [...player.selected][0] ?? source.value], [target, target.value]]) {
      field.replaceChildren(...[...work.names].map(([id, text]) => node("option", { value: id, selected: id === value }, text)));
    }
  };
  const element = form({ class: "inline wrap" }, async () => {
    const { layer, said } = kinds[what.value];
    const range = [player.frame, Math.min(player.count, player.frame + Math.round(2 * player.facts.fps) || 1)];
    const entry = { activity: { name: name.value.trim() }, step: { name: name.value.trim() }, attribute: { object: source.value, ...said },
      relation: { source: source.value, target: target.value, ...said } }[layer];
    await (layer === "touch" ? touch(range) : write(changedLayers(work.project.layers, LISTS[layer], entry, null, range)));
    say(`from frame ${range[0]} to ${range[1] - 1}: drag its ends on the timeline`);
  }, what, name, source, target, node("button", {}, "add here"));
  return { element, fill };
}
