// Decodes frames of a copy of a video ahead of the shown one: from each keyframe to the next, off the page's thread.
// Each frame goes through the decoder with its name: its place in the file.
/** @import { Samples } from "./shapes.d.ts" */

/**
 * Frames between two keyframes; each promises its picture, null where it cannot be decoded.
 * @typedef {object} Group
 * @property {number} start
 * @property {PromiseWithResolvers<VideoFrame | null>[]} frames
 * @property {(VideoFrame | undefined)[]} pictures those that are decoded
 * @property {boolean} isDone
 */

/**
 * The place of the last of rising values that is at most `value`; 0 if all are larger.
 * @param {number[]} values
 * @param {number} value
 */
export function lastUpTo(values, value) {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (values[middle] <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

export class FrameDecoder {
  /**
   * Null where the browser decodes no such video.
   * @param {string} url
   * @param {Samples} samples
   * @param {number} mostGroups that are kept: the shown group, its neighbours, and the last seen ones
   */
  static async open(url, samples, mostGroups) {
    const description = Uint8Array.from(atob(samples.description), (character) => character.charCodeAt(0));
    /** @type {VideoDecoderConfig} */
    const config = { codec: samples.codec, description, hardwareAcceleration: "prefer-software" }; // lends many frames
    if (!("VideoDecoder" in self) || !(await VideoDecoder.isConfigSupported(config)).supported) return null;
    return new FrameDecoder(url, samples, config, mostGroups);
  }

  /**
   * @param {string} url
   * @param {Samples} samples
   * @param {VideoDecoderConfig} config
   * @param {number} mostGroups
   */
  constructor(url, samples, config, mostGroups) {
    this.url = url;
    this.samples = samples;
    this.config = config;
    this.mostGroups = mostGroups;
    this.last = 0;
    /** By the number of their keyframe, the last used at the end. @type {Map<number, Group>} */
    this.groups = new Map();
    /** Groups to decode, in this order. @type {Group[]} */
    this.wanted = [];
    /** The group being decoded. @type {Group | null} */
    this.current = null;
    this.isRunning = false;
    this.decoder = this.makeDecoder();
  }

  makeDecoder() {
    /** @param {VideoFrame} picture */
    const output = (picture) => {
      const group = this.groups.get(this.samples.keyframes[lastUpTo(this.samples.keyframes, picture.timestamp)]);
      const at = picture.timestamp - (group?.start ?? 0);
      if (!group || group.pictures[at]) {
        picture.close();
        return;
      }
      group.pictures[at] = picture;
      group.frames[at].resolve(picture);
    };
    return new VideoDecoder({ output, error: () => {} }); // flush() fails then
  }

  /** Whether a frame is decoded. @param {number} number */
  has(number) {
    const group = this.groups.get(this.samples.keyframes[lastUpTo(this.samples.keyframes, number)]);
    return group?.pictures[number - group.start] !== undefined;
  }

  /**
   * A frame's picture, null where it cannot be decoded. Its group is decoded and kept; unless one jumps, so is the next
   * one in the direction of travel.
   * @param {number} number
   */
  async frame(number) {
    const { keyframes } = this.samples;
    const at = lastUpTo(keyframes, number);
    const ahead = at + (number < this.last ? -1 : 1);
    const isNear = Math.abs(at - lastUpTo(keyframes, this.last)) <= 1;
    this.last = number;
    const next = isNear && ahead >= 0 && ahead < keyframes.length ? [this.group(ahead)] : [];
    const group = this.group(at);
    this.wanted = [group, ...next];
    const isAwaited = group.pictures[number - group.start] === undefined;
    if (isAwaited && this.current && this.current !== group) this.interrupt();
    this.run();
    const picture = await group.frames[number - group.start].promise;
    return picture?.format ? createImageBitmap(picture) : null; // null for a group that was closed in the meantime
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
      pictures: [],
      isDone: false,
    };
    this.groups.delete(start);
    this.groups.set(start, group);
    const [oldest] = this.groups.values();
    if (this.groups.size > this.mostGroups) this.drop(oldest);
    return group;
  }

  /** @param {Group} group */
  drop({ start, frames, pictures }) {
    this.groups.delete(start);
    for (const picture of pictures) picture?.close();
    for (const { resolve } of frames) resolve(null);
  }

  /** Another group is more urgent: this one is decoded again later. */
  interrupt() {
    this.current = null;
    if (this.decoder.state === "configured") this.decoder.reset();
  }

  async run() {
    if (this.isRunning) return;
    this.isRunning = true;
    for (;;) {
      const next = this.wanted.find(({ isDone }) => !isDone);
      if (!next) break;
      this.current = next;
      const isDecoded = await this.decode(next).catch(() => false);
      if (this.current !== next) continue; // it was interrupted
      next.isDone = true;
      for (const { resolve } of next.frames) resolve(null); // those that were decoded keep their pictures
      if (!isDecoded) this.drop(next); // the server's picture is shown
    }
    this.current = null;
    this.isRunning = false;
  }

  /** @param {Group} group */
  async decode(group) {
    const { start, frames } = group;
    const { offsets, sizes } = this.samples;
    const data = await this.read(start, start + frames.length);
    if (this.current !== group) return false;
    if (this.decoder.state === "closed") this.decoder = this.makeDecoder();
    if (this.decoder.state === "unconfigured") this.decoder.configure(this.config);
    for (let number = start; number < start + frames.length; number += 1) {
      const from = offsets[number] - offsets[start];
      const type = number === start ? "key" : "delta";
      const part = data.subarray(from, from + sizes[number]);
      this.decoder.decode(new EncodedVideoChunk({ type, timestamp: number, data: part }));
    }
    await this.decoder.flush();
    return true;
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
