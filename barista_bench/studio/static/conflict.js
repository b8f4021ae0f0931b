// Two different decisions side by side: a person takes one of them.
import { askPerson } from "./dialog.js";
import { blankCanvas, node } from "./elements.js";
import { rowsOf } from "./statements.js";

/** @import { Annotation } from "./annotation.js" */
/** @import { Player } from "./player.js" */
/** @import { Decisions, FrameDraft, FrameRange, Layers, Project } from "./shapes.d.ts" */

/** @typedef {{ what: string, mine: Node, theirs: Node }} Difference */
/** @typedef {{ frame: number, mine: FrameDraft | undefined, theirs: FrameDraft | undefined }} FrameDifference */
/**
 * Two people's decisions: drafts of frames; or the sent decision, and the project before it.
 * @typedef {{ frames: FrameDifference[] } | { decisions: Decisions, before: Project }} Conflict
 */
/** @typedef {{ mine: string, theirs: string }} Sides */
/** @typedef {(text: string, conflict: Conflict, names: Sides) => Promise<"mine" | "theirs" | null>} Conflicting */

const ACROSS = 420; // pixels of a picture

/**
 * Shows what differs, and asks.
 * @param {Annotation} work
 * @param {Player} player
 * @returns {Conflicting}
 */
export const conflictDialog = (work, player) => async (text, conflict, names) => {
  const frames = "frames" in conflict ? conflict.frames : await framesOf(work, conflict.decisions);
  const pictures = frames.map(async ({ frame, mine, theirs }) => ({
    what: `frame ${frame}`,
    mine: await pictureOf(work, player, frame, mine),
    theirs: await pictureOf(work, player, frame, theirs),
  }));
  const statements = "frames" in conflict ? [] : statedDifferences(work, conflict.decisions, conflict.before);
  return sideBySide(text, [...(await Promise.all(pictures)), ...statements], names);
};

/**
 * @param {Annotation} work
 * @param {Decisions} decisions
 */
const framesOf = (work, { keyframes = [], withdrawn = [] }) => {
  const mine = new Map(keyframes.map(({ frame, masks }) => [frame, new Map(Object.entries(masks))]));
  return Promise.all(
    [...new Set([...mine.keys(), ...withdrawn])].map(async (frame) => {
      const stands = [...(await work.marks(frame, null)).values()];
      return { frame, mine: mine.get(frame), theirs: new Map(stands.map(({ id, mask }) => [id, mask])) };
    }),
  );
};

/**
 * @param {Annotation} work
 * @param {Player} player
 * @param {number} frame
 * @param {FrameDraft | undefined} draft
 */
async function pictureOf(work, player, frame, draft) {
  if (!draft) return node("p", {}, "nothing");
  const instances = [...draft].map(([id, mask]) => ({ object: id, name: work.nameOf(id), mask, box: null }));
  const [picture, paint] = await Promise.all([player.source.pictureOf(frame), player.canvas.painter.paint(instances)]);
  const scale = ACROSS / player.facts.width;
  const { canvas, context } = blankCanvas({ width: ACROSS, height: Math.round(player.facts.height * scale) });
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  context.setTransform(0, scale, scale, 0, 0, 0); // columns of the frame are rows of the painted mask
  if (paint) context.drawImage(paint, 0, 0);
  const names = instances.map(({ name }) => name).join(", ") || "no objects";
  return node("figure", {}, canvas, node("figcaption", {}, names));
}

/**
 * @param {Annotation} work
 * @param {Decisions} decisions
 * @param {Project} before
 * @returns {Difference[]}
 */
function statedDifferences(work, { contacts, layers, edits }, before) {
  const { project, names } = work;
  const rows = [];
  if (contacts) rows.push({ what: "contacts", mine: rangeList(contacts), theirs: rangeList(project.contacts ?? []) });
  if (layers) {
    rows.push({ what: "statements", mine: layerList(layers, names), theirs: layerList(project.layers, names) });
  }
  if (edits) {
    const since = project.edits.slice(before.edits.length).map(({ by, edit }) => `${JSON.stringify(edit)} (${by})`);
    rows.push({ what: "edits", mine: lines(edits.map((edit) => JSON.stringify(edit))), theirs: lines(since) });
  }
  return rows;
}

/** @param {string[]} texts */
const lines = (texts) => node("ul", {}, ...texts.map((text) => node("li", {}, text)));

/** @param {FrameRange[]} ranges */
const rangeList = (ranges) => lines(ranges.map(([start, end]) => `frames ${start} to ${end - 1}`));

/** @param {Layers} layers @param {Map<string, string>} names */
const layerList = (layers, names) =>
  lines(
    rowsOf(layers, names).map(({ text, ranges }) => `${text}: ${ranges.map((range) => range.join(" to ")).join(", ")}`),
  );

/**
 * Promises the decision that a person takes; null if the person takes none.
 * @param {string} text
 * @param {Difference[]} differences
 * @param {Sides} names
 * @returns {Promise<"mine" | "theirs" | null>}
 */
function sideBySide(text, differences, names) {
  const heads = [names.mine, names.theirs].map((name) => node("th", {}, name));
  const rows = differences.map(({ what, mine, theirs }) =>
    node("tr", {}, node("th", {}, what), node("td", {}, mine), node("td", {}, theirs)),
  );
  return askPerson(
    { class: "conflict", "aria-label": "what differs" },
    [node("p", {}, text), node("table", {}, node("tr", {}, node("th", {}), ...heads), ...rows)],
    [
      ["mine", `take ${names.mine}`, { class: "primary", "data-icon": "check" }],
      ["theirs", `take ${names.theirs}`, { "data-icon": "check" }],
      [null, "later", { "data-icon": "clock" }],
    ],
  );
}
