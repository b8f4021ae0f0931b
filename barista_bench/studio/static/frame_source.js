// The pictures of a video's frames, exact to the frame: from a copy that the browser plays, or one by one.
import { blankCanvas, node } from "./elements.js";
import { ask, finished, remembering } from "./server.js";

/** @import { Footage, VideoKind } from "./shapes.d.ts" */

const LONGEST_SEEK = 3000; // milliseconds
const SAME_TIME = 1e-4; // seconds

/**
 * The number of the last frame that begins by `seconds`.
 * @param {number[]} times
 * @param {number} seconds
 */
export function frameAt(times, seconds) {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (times[middle] <= seconds + SAME_TIME) low = middle;
    else high = middle - 1;
  }
  return low;
}

export class FrameSource {
  /**
   * @param {VideoKind} kind
   * @param {string} video
   * @param {Footage} facts
   */
  constructor(kind, video, facts) {
    this.kind = kind;
    this.video = video;
    this.facts = facts;
    this.times = facts.seconds;
    this.base = `/media/${encodeURIComponent(kind)}/${encodeURIComponent(video)}`;
    /** The copy, once it can be played. @type {HTMLVideoElement | null} */
    this.copy = null;
    this.nudge = 0;
    this.still = remembering(async (frame) => {
      const response = await fetch(`${this.base}/${frame}.jpg`);
      if (!response.ok) throw new Error((await response.json()).error);
      return createImageBitmap(await response.blob());
    });
  }

  /**
   * The frame's picture: from the copy where the browser shows that frame, else from the server.
   * @param {number} frame
   */
  async pictureOf(frame) {
    return (this.copy && (await this.sought(this.copy, frame))) ?? this.still(frame);
  }

  /**
   * Seeks the copy to the middle of a frame; null where it then shows another one.
   * @param {HTMLVideoElement} copy
   * @param {number} frame
   * @returns {Promise<HTMLCanvasElement | null>}
   */
  sought(copy, frame) {
    const { times } = this;
    const last = times.length - 1;
    const usual = last > 0 ? times[last] / last : 1;
    const next = times[frame + 1] ?? times[frame] + usual;
    return new Promise((done) => {
      const timer = setTimeout(() => done(null), LONGEST_SEEK);
      copy.requestVideoFrameCallback((_, { mediaTime }) => {
        clearTimeout(timer);
        done(frameAt(times, mediaTime) === frame ? this.snapshot(copy) : null);
      });
      this.nudge = this.nudge ? 0 : 1e-5; // the same time again shows no frame
      copy.currentTime = (times[frame] + next) / 2 + this.nudge;
    });
  }

  /** @param {HTMLVideoElement} copy */
  snapshot(copy) {
    const { canvas, context } = blankCanvas({ width: copy.videoWidth, height: copy.videoHeight });
    context.drawImage(copy, 0, 0);
    return canvas;
  }

  /**
   * Waits for the copy as long as `element` is shown; `told(step)` hears how far it is.
   * @param {(step: string) => void} told
   * @param {Element} element
   */
  async prepare(told, element) {
    const progress = async () => (await ask("/api/footage", { kind: this.kind, video: this.video })).copy;
    await finished(progress, ({ step }) => told(step), element);
    const copy = node("video", { src: `${this.base}/proxy.mp4?${this.facts.version}`, preload: "auto" });
    copy.muted = true;
    await new Promise((done, failed) => {
      copy.addEventListener("loadeddata", done, { once: true });
      copy.addEventListener("error", () => failed(new Error("this browser cannot play the copy")), { once: true });
    });
    this.copy = copy;
  }
}
