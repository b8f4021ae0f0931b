// Frames of a video's copy, decoded ahead of where one looks: from each of its keyframes to the next, off the page's
// thread. What a frame is called by its place in the file goes through the decoder with it.
/** @import { Samples } from "./shapes.d.ts" */

const MOST_GROUPS = 4; // of decoded frames: 12 each, 3 MB a frame in 1080p

/**
 * Frames between two keyframes; each promises its picture, null where it cannot be decoded.
 * @typedef {object} Group
 * @property {number} start
 * @property {PromiseWithResolvers<VideoFrame | null>[]} frames
 * @property {boolean} isDecoded or is about to be
 */

export class FrameDecoder {
  /**
   * Null where the browser decodes no such video.
   * @param {string} url
   * @param {Samples} samples
   */
  static async open(url, samples) {
    const description = Uint8Array.from(atob(samples.description), (character) => character.charCodeAt(0));
    /** @type {VideoDecoderConfig} */
    const config = { codec: samples.codec, description, hardwareAcceleration: "prefer-software" }; // lends many frames
    if (!("VideoDecoder" in self) || !(await VideoDecoder.isConfigSupported(config)).supported) return null;
    return new FrameDecoder(url, samples, config);
  }

  /**
   * @param {string} url
   * @param {Samples} samples
   * @param {VideoDecoderConfig} config
   */
  constructor(url, samples, config) {
    this.url = url;
    this.samples = samples;
    this.config = config;
    this.last = 0;
    /** By the number of their keyframe, the one used last at the end. @type {Map<number, Group>} */
    this.groups = new Map();
    this.isDecoding = false;
    /** What is being decoded, and by what. @type {{ start: number, decoder: VideoDecoder } | null} */
    this.current = null;
  }

  /**
   * Its group, and the next one in the direction of travel, are decoded and kept.
   * @param {number} number
   */
  async frame(number) {
    const { keyframes } = this.samples;
    const at = keyframes.findLastIndex((keyframe) => keyframe <= number);
    const ahead = at + (number < this.last ? -1 : 1);
    this.last = number;
    if (ahead >= 0 && ahead < keyframes.length) this.group(ahead);
    const { start, frames } = this.group(at);
    const { current } = this;
    // Another group's pictures are not waited for.
    if (current && current.start !== start && current.decoder.state !== "closed") current.decoder.close();
    this.run();
    const picture = await frames[number - start].promise;
    return picture?.format ? createImageBitmap(picture) : null; // of one that was closed meanwhile it is null
  }

  /** @param {number} at which of the keyframes it begins with @returns {Group} */
  group(at) {
    const { keyframes, offsets } = this.samples;
    const start = keyframes[at];
    const end = keyframes[at + 1] ?? offsets.length;
    /** @type {Group} */
    const group = this.groups.get(start) ?? {
      start,
      frames: Array.from({ length: end - start }, () => Promise.withResolvers()),
      isDecoded: false,
    };
    this.groups.delete(start);
    this.groups.set(start, group);
    const [oldest] = this.groups.values();
    if (this.groups.size > MOST_GROUPS) this.drop(oldest);
    return group;
  }

  /** @param {Group} group */
  drop({ start, frames }) {
    this.groups.delete(start);
    for (const { promise, resolve } of frames) {
      resolve(null);
      promise.then((picture) => picture?.close());
    }
  }

  /** One group after the other, the one asked for last first. */
  async run() {
    if (this.isDecoding) return;
    this.isDecoding = true;
    for (;;) {
      const next = [...this.groups.values()].findLast(({ isDecoded }) => !isDecoded);
      if (!next) break;
      next.isDecoded = true;
      await this.decode(next).catch(() => this.drop(next)); // the server's picture is shown then
    }
    this.isDecoding = false;
  }

  /** @param {Group} group */
  async decode(group) {
    const { start, frames } = group;
    /** @param {VideoFrame} picture */
    const output = (picture) => {
      if (this.groups.get(start) === group) frames[picture.timestamp - start].resolve(picture);
      else picture.close();
    };
    const decoder = new VideoDecoder({ output, error: () => {} });
    this.current = { start, decoder };
    try {
      const data = await this.read(start, start + frames.length);
      decoder.configure(this.config);
      const [first] = this.samples.offsets.slice(start);
      for (let number = start; number < start + frames.length; number += 1) {
        const from = this.samples.offsets[number] - first;
        const type = number === start ? "key" : "delta";
        const part = data.subarray(from, from + this.samples.sizes[number]);
        decoder.decode(new EncodedVideoChunk({ type, timestamp: number, data: part }));
      }
      await decoder.flush();
    } finally {
      this.current = null;
      for (const { resolve } of frames) resolve(null); // those that were decoded keep their pictures
      if (decoder.state !== "closed") decoder.close();
    }
  }

  /**
   * The bytes of frames, which lie one after the other.
   * @param {number} start
   * @param {number} end
   */
  async read(start, end) {
    const { offsets, sizes } = this.samples;
    const range = `bytes=${offsets[start]}-${offsets[end - 1] + sizes[end - 1] - 1}`;
    const response = await fetch(this.url, { headers: { range } });
    if (response.status !== 206) throw new Error("the copy is gone");
    return new Uint8Array(await response.arrayBuffer());
  }
}
