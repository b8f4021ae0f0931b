// Asking the segmenter while one draws.
import { newestOf, send } from "./server.js";

/** @import { Mask, MaskPrompt } from "./shapes.d.ts" */

/** @typedef {{ frame: number, prompt: MaskPrompt }} SegmentQuestion */

export class Segmenting {
  /**
   * `preview(mask)` is shown each answer as it comes.
   * @param {string} video
   * @param {(mask: Mask) => void} preview
   */
  constructor(video, preview) {
    /**
     * The prompt behind each mask, so that a further click adds to it, also after undo.
     * @type {WeakMap<Mask, MaskPrompt>}
     */
    this.prompts = new WeakMap();
    /** The newest question is answered; those that it overtook are not. */
    this.ask = newestOf(async (/** @type {SegmentQuestion} */ { frame, prompt }) => {
      const { mask } = await send("/api/project/segment", { video, frame, ...prompt });
      this.prompts.set(mask, prompt);
      preview(mask);
      return mask;
    });
  }
}
