// The pictures of a video's frames, exact to the frame: from a copy that the browser decodes and plays, or one by one.
import { blankCanvas, node } from "./elements.js";
import { FrameDecoder } from "./frame_decoder.js";
import { ask, finished, remembering } from "./server.js";

/** @import { Footage, VideoKind } from "./shapes.d.ts" */

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
    this.address = { kind, video };
    this.facts = facts;
    this.base = `/media/${encodeURIComponent(kind)}/${encodeURIComponent(video)}`;
    /** The copy, once it can be played. @type {HTMLVideoElement | null} */
    this.copy = null;
    /** Of the copy; null before it is there, and in a browser that decodes no frames. @type {FrameDecoder | null} */
    this.decoder = null;
    this.still = remembering(async (frame) => {
      const response = await fetch(`${this.base}/${frame}.jpg`);
      if (!response.ok) throw new Error((await response.json()).error);
      return createImageBitmap(await response.blob());
    });
  }

  /**
   * The frame's picture: from the copy, and from the server where the browser cannot decode it.
   * @param {number} frame
   */
  async pictureOf(frame) {
    return (await this.decoder?.frame(frame)) ?? this.still(frame);
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
    const progress = async () => (await ask("/api/footage", this.address)).copy;
    await finished(progress, ({ step }) => told(step), element);
    const url = `${this.base}/proxy.mp4?${this.facts.version}`;
    const copy = node("video", { src: url, preload: "auto" });
    copy.muted = true;
    const [decoder] = await Promise.all([
      ask("/api/footage/samples", this.address).then((samples) => FrameDecoder.open(url, samples)),
      new Promise((done, failed) => {
        copy.addEventListener("loadeddata", done, { once: true });
        copy.addEventListener("error", () => failed(new Error("this browser cannot play the copy")), { once: true });
      }),
    ]);
    this.decoder = decoder;
    this.copy = copy;
  }
}
