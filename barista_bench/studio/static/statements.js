// Statements about objects and frames beside masks: rows of the timeline, proposals, and changes of layers.
import { button, countedList, node } from "./elements.js";

/** @import { FrameRange, Layers, Project, Row, Statement } from "./shapes.d.ts" */
/** @import { Player } from "./player.js" */

/** @typedef {Row & { statement: Statement }} StatementRow */

/**
 * An entry of any of the four lists: segments have one range, the others several.
 * @typedef {object} Entry
 * @property {string} [name]
 * @property {string} [object]
 * @property {string} [source]
 * @property {string} [target]
 * @property {string} [type]
 * @property {string} [value]
 * @property {FrameRange} [range]
 * @property {FrameRange[]} [ranges]
 */

/** @type {["activity" | "step" | "attribute" | "relation", Statement["list"]][]} */
const LISTS = [
  ["activity", "activities"],
  ["step", "process_steps"],
  ["attribute", "attributes"],
  ["relation", "relations"],
];

/** @param {Entry} entry */
const objectsOf = ({ object, source, target }) => (object ? [object] : source && target ? [source, target] : []);

/** @param {Statement["list"]} list @param {Entry} said */
const keyOf = (list, said) => JSON.stringify([list, objectsOf(said), said.type, said.value, said.name]);

/** @param {Entry} entry @returns {FrameRange[]} */
const rangesOf = ({ range, ranges }) => ranges ?? (range ? [range] : []);

/**
 * Ranges without overlaps, in order.
 * @param {FrameRange[]} ranges
 */
function unite(ranges) {
  /** @type {FrameRange[]} */
  const all = [];
  for (const [start, end] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const last = all.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else all.push([start, end]);
  }
  return all;
}

/**
 * Timeline rows of layers.
 * @param {Layers} layers
 * @param {Map<string, string>} names of objects by id
 * @param {Partial<Row>} [more]
 * @returns {StatementRow[]}
 */
export function rowsOf(layers, names, more) {
  return LISTS.flatMap(([layer, list]) =>
    layers[list].map((/** @type {Entry} */ entry) => {
      const { range, ranges, ...said } = entry;
      const objects = objectsOf(entry);
      const [first, second] = objects.map((id) => names.get(id) ?? id);
      const related = second ? `${first} ${entry.value} ${second}` : `${first} ${entry.type}: ${entry.value}`;
      const statement = /** @type {Statement} */ ({ list, said });
      return { layer, statement, objects, text: entry.name ?? related, ranges: rangesOf(entry), ...more };
    }),
  );
}

/**
 * Layers in which `range` of a statement is `changed`; added if absent, removed if `changed` is null.
 * @param {Layers} layers
 * @param {Statement} statement
 * @param {FrameRange | null} range
 * @param {FrameRange | null} changed
 * @returns {Layers}
 */
export function changedLayers(layers, { list, said }, range, changed) {
  /** @type {Entry[]} */
  const entries = layers[list];
  /** @param {Entry} other */
  const isSame = (other) => keyOf(list, other) === keyOf(list, said);
  const otherRanges = entries
    .filter(isSame)
    .flatMap(rangesOf)
    .filter(([start, end]) => !range || start !== range[0] || end !== range[1]);
  const ranges = changed ? [...otherRanges, changed] : otherRanges;
  const others = entries.filter((other) => !isSame(other));
  if (list === "activities" || list === "process_steps") {
    const segments = [
      ...layers[list].filter((other) => !isSame(other)),
      ...ranges.map((span) => ({ ...said, range: span })),
    ];
    return { ...layers, [list]: segments.sort((a, b) => a.range[0] - b.range[0]) };
  }
  const at = entries.findIndex(isSame);
  const entry = ranges.length ? [{ ...said, ranges: unite(ranges) }] : [];
  return { ...layers, [list]: others.toSpliced(at < 0 ? others.length : at, 0, ...entry) };
}

/**
 * Proposals that are not accepted yet.
 * @param {Project} project
 * @param {Map<string, string>} names
 * @returns {StatementRow[]}
 */
export function offeredRows({ layers, offered_layers: offered }, names) {
  /** @param {StatementRow} row */
  const key = ({ statement: { list, said } }) => keyOf(list, said);
  const accepted = rowsOf(layers, names).map((row) => ({ key: key(row), ranges: row.ranges }));
  /**
   * @param {string} wanted
   * @param {FrameRange} range
   */
  const isAccepted = (wanted, [start, end]) =>
    accepted.some((row) => row.key === wanted && row.ranges.some(([from, to]) => from <= start && end <= to));
  return offered
    .flatMap(({ origin, layers: proposed }) =>
      rowsOf(proposed, names, { offered: true }).map((row) => ({
        ...row,
        text: `${row.text} (${origin})`,
        ranges: row.ranges.filter((range) => !isAccepted(key(row), range)),
      })),
    )
    .filter(({ ranges }) => ranges.length);
}

/**
 * Proposals of others; `write(layers)` accepts.
 * @param {Project} project
 * @param {Map<string, string>} names
 * @param {Player} player
 * @param {(layers: Layers) => unknown} write
 */
export function proposedStatements(project, names, player, write) {
  const items = offeredRows(project, names).map(({ statement, text, ranges }) => {
    const accept = () => {
      const layers = ranges.reduce((all, range) => changedLayers(all, statement, null, range), project.layers);
      return write(layers);
    };
    const [start] = ranges[0];
    const others = ranges.length > 1 ? ` and ${ranges.length - 1} more` : "";
    return [
      button("accept", accept, { "aria-label": `accept ${text}`, "data-icon": "check" }),
      ` ${text} `,
      button(`frame ${start}`, () => player.go(start)),
      node("small", {}, others),
    ];
  });
  return countedList("Proposed", items);
}
