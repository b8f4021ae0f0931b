// A player of an annotated video, and what its graph says of a frame.
import { Player } from "./player.js";
import { ask, caching } from "./server.js";
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
