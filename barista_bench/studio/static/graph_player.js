// A player of an annotated video, and what its graph says of a frame.
import { node } from "./elements.js";
import { Player } from "./player.js";
import { ask, below, caching } from "./server.js";
/** @import { FrameGraph } from "./shapes.d.ts" */

/** @typedef {{ player: Player, graphOf: (frame: number) => Promise<FrameGraph> }} GraphPlayer */

/**
 * @param {string} video
 * @param {number | null} [first] frame to be shown
 * @returns {Promise<GraphPlayer>}
 */
export async function graphPlayer(video, first = null) {
  const graphOf = caching((frame) => ask("/api/frame", { video, frame }));
  const player = await Player.open("graph", video, async (frame) => (await graphOf(frame)).instances, first);
  return { player, graphOf };
}

/**
 * The address of a frame.
 * @param {string} video
 * @param {number} frame
 * @param {Record<string, string>} [more]
 */
export const address = (video, frame, more = {}) =>
  `#/graph/${encodeURIComponent(video)}?${new URLSearchParams({ frame: String(frame), ...more })}`;

/**
 * A small picture of a frame, which is fetched once it comes into sight.
 * @param {string} video
 * @param {number} frame
 * @param {string} text
 */
export const thumbnail = (video, frame, text) =>
  node("img", {
    src: below(`/media/graph/${encodeURIComponent(video)}/${frame}.jpg`),
    alt: text,
    title: text,
    loading: "lazy",
    width: 128,
  });

/**
 * From when to when, and on which frames.
 * @param {number | undefined} first
 * @param {number | undefined} last in seconds; undefined where no video says so
 * @param {number} start
 * @param {number} end
 */
export function spanText(first, last, start, end) {
  const frames = `frames ${start} to ${end - 1}`;
  return first === undefined || last === undefined ? frames : `${first.toFixed(2)} to ${last.toFixed(2)} s, ${frames}`;
}
