// Asking the segmenter while one draws, and the edges of a polygon.
import { newestOf, send } from "./server.js";

/** @import { Mask, MaskPrompt, Point } from "./shapes.d.ts" */

/** @typedef {{ frame: number, prompt: MaskPrompt }} Asked */

export class Segmenting {
  /**
   * `told(mask)` is shown each answer as it comes.
   * @param {string} video
   * @param {(mask: Mask) => void} told
   */
  constructor(video, told) {
    this.video = video;
    /** What each mask was the answer to, so that a further click adds to it, also after undo. @type {WeakMap<Mask, MaskPrompt>} */
    this.prompts = new WeakMap();
    /** The newest question is answered; those that it overtook are not. */
    this.ask = newestOf(async (/** @type {Asked} */ { frame, prompt }) => {
      const { mask } = await send("/api/project/segment", { video, frame, ...prompt });
      this.prompts.set(mask, prompt);
      told(mask);
      return mask;
    });
  }

  /**
   * From a corner to the next along what is seen.
   * @param {number} frame
   * @param {Point} from
   * @param {Point} to
   */
  async edge(frame, { x, y }, to) {
    const points = [
      { x, y },
      { x: to.x, y: to.y },
    ];
    const answer = await send("/api/project/edge", { video: this.video, frame, points });
    return answer.points.map(([left, top]) => ({ x: left + 0.5, y: top + 0.5 }));
  }
}
