// The pictures of a video's frames, exact to the frame: from a copy that the browser decodes and plays, or one by one.
import { blankCanvas, node } from "./elements.js";
import { FrameDecoder, lastUpTo } from "./frame_decoder.js";
import { ask, below, caching, waitUntilDone } from "./server.js";

/** @import { Footage, VideoKind } from "./shapes.d.ts" */

const SAME_TIME = 1e-4; // seconds
const GROUPS = { proxy: 4, small: 12 }; // of 12 frames, of 3 MB each in 1080p, 350 KB in the small copy

/**
 * The number of the last frame that begins by `seconds`.
 * @param {number[]} times
 * @param {number} seconds
 */
export const frameAt = (times, seconds) => lastUpTo(times, seconds + SAME_TIME);

/**
 * @param {VideoKind} kind
 * @param {string} video
 */
const baseOf = (kind, video) => below(`/media/${encodeURIComponent(kind)}/${encodeURIComponent(video)}`);

/**
 * Single frames from the server.
 * @param {VideoKind} kind
 * @param {string} video
 */
export const stillsOf = (kind, video) =>
  caching(async (frame) => {
    const response = await fetch(`${baseOf(kind, video)}/${frame}.jpg`);
    if (!response.ok) throw new Error((await response.json()).error);
    return createImageBitmap(await response.blob());
  });

export class FrameSource {
  /**
   * @param {VideoKind} kind
   * @param {string} video
   * @param {Footage} facts
   * @param {(frame: number) => Promise<ImageBitmap>} still
   */
  constructor(kind, video, facts, still) {
    this.address = { kind, video };
    this.facts = facts;
    this.base = baseOf(kind, video);
    this.still = still;
    /** The copy, once it can be played. @type {HTMLVideoElement | null} */
    this.copy = null;
    /** Of the copy; null before it is there, and in a browser that decodes no frames. @type {FrameDecoder | null} */
    this.decoder = null;
    /** Of the small copy, likewise; null as well where the video is small. @type {FrameDecoder | null} */
    this.small = null;
  }

  /**
   * The frame's picture: from the copy, and from the server where the browser cannot decode it.
   * @param {number} frame
   */
  async pictureOf(frame) {
    return (await this.decodedPictureOf(frame)) ?? this.still(frame);
  }

  /**
   * The frame's picture from the copy; null where the browser cannot decode it, and where others were asked for since.
   * @param {number} frame
   */
  async decodedPictureOf(frame) {
    return (await this.decoder?.frame(frame)) ?? null;
  }

  /** Whether the sharp picture is decoded. @param {number} frame */
  isAtHand(frame) {
    return this.decoder?.has(frame) ?? false;
  }

  /**
   * The frame's picture at once: a small one.
   * @param {number} frame
   */
  async quickPictureOf(frame) {
    return (await this.small?.frame(frame)) ?? this.pictureOf(frame);
  }

  /**
   * @param {keyof typeof GROUPS} name
   * @param {string} url
   */
  async decoderOf(name, url) {
    return FrameDecoder.open(url, await ask("/api/footage/samples", { ...this.address, name }), GROUPS[name]);
  }

  /** @param {HTMLVideoElement} copy */
  snapshot(copy) {
    const { canvas, context } = blankCanvas({ width: copy.videoWidth, height: copy.videoHeight });
    context.drawImage(copy, 0, 0);
    return canvas;
  }

  /**
   * Waits for the copy as long as `element` is shown; `onStep(step)` hears how far it is.
   * @param {(step: string) => void} onStep
   * @param {Element} element
   */
  async prepare(onStep, element) {
    const progress = async () => (await ask("/api/footage", this.address)).copy;
    await waitUntilDone(progress, ({ step }) => onStep(step), element);
    const [url, smallUrl] = ["proxy", "small"].map((name) => `${this.base}/${name}.mp4?${this.facts.version}`);
    const copy = node("video", { src: url, preload: "auto" });
    copy.muted = true;
    const [decoder, small] = await Promise.all([
      this.decoderOf("proxy", url),
      this.facts.has_small ? this.decoderOf("small", smallUrl) : null,
      new Promise((done, failed) => {
        copy.addEventListener("loadeddata", done, { once: true });
        copy.addEventListener("error", () => failed(new Error("this browser cannot play the copy")), { once: true });
      }),
    ]);
    this.decoder = decoder;
    this.small = small;
    this.copy = copy;
  }
}
