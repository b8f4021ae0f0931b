// A video, exact to the frame, with what is drawn over it.
import { ask, button, clock, explained, finished, node, say } from "./page.js";
import { colour, painted } from "./masks.js";

const SIZE = 960; // the most pixels across; the page scales it down
const KEPT = 60;

/** Keeps the answers last asked for. */
export function remembering(fetch) {
  const kept = new Map();
  const recall = (key) => {
    if (!kept.has(key)) {
      kept.set(key, fetch(key));
      kept.get(key).catch(() => kept.delete(key));
      if (kept.size > KEPT) kept.delete(kept.keys().next().value);
    }
    return kept.get(key);
  };
  recall.forget = () => kept.clear();
  return recall;
}

/** The number of the last frame that begins by `seconds`. */
export function frameAt(times, seconds) {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (times[middle] <= seconds + 1e-4) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** What is drawn over every video, as the person last chose it. */
const shows = { masks: true, boxes: false };
export const withoutMasks = () => { shows.masks = false; };

export class Player {
  /** `kind` and `video` are the video's address, `overlay(frame)` promises the instances to draw on a frame. */
  static async open(kind, video, overlay) {
    return new Player(kind, video, await ask("/api/footage", { kind, video }), overlay);
  }

  constructor(kind, video, facts, overlay) {
    Object.assign(this, { kind, video, facts, times: facts.seconds, count: facts.frames, frame: -1, selected: new Set() });
    this.overlay = remembering(overlay);
    this.listeners = { frame: [], pick: [] };
    this.shows = shows;
    this.turn = 0;
    this.base = `/media/${encodeURIComponent(kind)}/${encodeURIComponent(video)}`;
    this.still = remembering(async (frame) => {
      const response = await fetch(`${this.base}/${frame}.jpg`);
      if (!response.ok) throw new Error((await response.json()).error);
      return createImageBitmap(await response.blob());
    });
    this.build();
  }

  build() {
    this.holder = node("div", { class: "picture", role: "img", "aria-label": "video frame" });
    this.slider = node("input", { type: "range", min: 0, max: this.count - 1, value: 0, "aria-label": "frame",
      input: () => this.go(Number(this.slider.value)) });
    this.where = node("output", { class: "clock" });
    this.note = node("span", { class: "note" });
    this.playing = button("play", () => this.toggle(), { disabled: true });
    const layer = (name) => button(name, (event) => {
      this.shows[name] = !this.shows[name];
      event.target.setAttribute("aria-pressed", this.shows[name]);
      this.redraw();
    }, { "aria-pressed": String(this.shows[name]) });
    this.element = node("div", { class: "player" }, this.holder, this.slider,
      node("div", { class: "controls" }, button("◀", () => this.go(this.frame - 1), { title: "frame back (←)", "aria-label": "frame back" }),
        this.playing, button("▶", () => this.go(this.frame + 1), { title: "frame forward (→)", "aria-label": "frame forward" }),
        this.where, layer("masks"), layer("boxes"), this.note));
    const { width, height } = this.facts;
    this.stage = new Konva.Stage({ container: this.holder, width, height });
    [this.pictureLayer, this.maskLayer, this.boxLayer, this.drawLayer] = Array.from({ length: 4 }, () => new Konva.Layer({ listening: false }));
    this.stage.add(this.pictureLayer, this.maskLayer, this.boxLayer, this.drawLayer);
    this.picture = new Konva.Image({ width, height });
    this.paint = new Konva.Image({ width, height });
    this.pictureLayer.add(this.picture);
    this.maskLayer.add(this.paint);
    new ResizeObserver(() => this.fit()).observe(this.element);
    this.stage.on("click tap", (event) => {
      if (this.drawing || event.target !== this.stage) return;
      const { x, y } = this.pointer();
      const number = this.hit?.(x, y) ?? -1;
      this.pick(number < 0 ? [] : [this.instances[number].object]);
    });
  }

  /** The canvas as wide as the page leaves room for. */
  fit() {
    const { width, height } = this.facts;
    const scale = Math.min(Math.min(this.element.clientWidth, SIZE) / width, (innerHeight * 0.62) / height);
    if (!scale) return;
    this.scale = scale;
    this.stage.size({ width: width * scale, height: height * scale });
    for (const layer of this.stage.getLayers()) layer.scale({ x: scale, y: scale });
  }

  /** The pointer in pixels of the frame. */
  pointer() {
    const { x, y } = this.stage.getPointerPosition();
    return { x: x / this.scale, y: y / this.scale };
  }

  on(event, listener) {
    this.listeners[event].push(listener);
  }

  /** Objects that are stressed, by a click into the picture or elsewhere. */
  pick(objects) {
    this.selected = new Set(objects);
    this.redraw();
    for (const listener of this.listeners.pick) listener(objects);
  }

  /** Show a frame: its picture and what is drawn over it arrive together. A later call overtakes. */
  async go(frame) {
    const wanted = this.wanted = Math.max(0, Math.min(this.count - 1, frame));
    const turn = this.turn += 1;
    this.pause();
    try {
      const [picture, instances] = await Promise.all([this.pictureOf(wanted), this.instancesOf(wanted)]);
      if (turn === this.turn) this.show(wanted, picture, instances);
    } catch (error) {
      if (turn === this.turn) say(error.message);
    }
  }

  /** What is drawn over a frame; a graph that has no such frame says so and draws nothing. */
  async instancesOf(frame) {
    try {
      return await this.overlay(frame);
    } catch (error) {
      say(error.message);
      return [];
    }
  }

  /** Ask for what is drawn over the frame again. */
  async refresh() {
    this.overlay.forget();
    if (this.wanted !== undefined) await this.go(this.wanted);
  }

  show(frame, picture, instances) {
    Object.assign(this, { frame, instances, wanted: frame });
    this.picture.image(picture);
    this.pictureLayer.draw();
    this.redraw();
    this.slider.value = frame;
    this.where.textContent = `frame ${frame} of 0 to ${this.count - 1} · ${clock(this.times[frame])}`;
    this.holder.setAttribute("aria-label", `frame ${frame}: ${instances.map(({ name }) => name).join(", ") || "no objects"}`);
    this.element.dataset.frame = frame;
    for (const listener of this.listeners.frame) listener(frame);
  }

  /** Draw the overlay again. */
  redraw() {
    if (!this.instances) return;
    const stressed = (object) => this.selected.has(object);
    const { canvas, at } = painted(this.shows.masks ? this.instances : [], stressed);
    this.hit = at;
    this.paint.image(canvas ?? undefined);
    this.maskLayer.batchDraw();
    this.boxLayer.destroyChildren();
    for (const { object, name, box, offered } of this.instances) {
      if (!box || !(this.shows.boxes || offered || stressed(object))) continue;
      const [x, y, width, height] = box;
      const size = 13 / this.scale;
      this.boxLayer.add(
        new Konva.Rect({ x, y, width, height, stroke: colour(object), strokeWidth: (stressed(object) ? 3 : 1.5) / this.scale, dash: offered ? [5 / this.scale, 4 / this.scale] : null }),
        new Konva.Text({ x: x + size / 4, y: Math.max(0, y - size * 1.2), text: name, fontSize: size, fill: "#fff", stroke: "#000", strokeWidth: 3 / this.scale, fillAfterStrokeEnabled: true }),
      );
    }
    this.boxLayer.batchDraw();
  }

  /** The frame's picture: from the copy where the browser shows that frame, else from the server. */
  async pictureOf(frame) {
    return (this.copy && await this.sought(frame)) ?? this.still(frame);
  }

  /** Seek the copy to the middle of a frame; null where it then shows another one. */
  sought(frame) {
    const next = this.times[frame + 1] ?? this.times[frame] + (this.count > 1 ? this.times[this.count - 1] / (this.count - 1) : 1);
    return new Promise((done) => {
      const timer = setTimeout(() => done(null), 3000);
      this.copy.requestVideoFrameCallback((_, { mediaTime }) => {
        clearTimeout(timer);
        done(frameAt(this.times, mediaTime) === frame ? this.snapshot() : null);
      });
      this.copy.currentTime = (this.times[frame] + next) / 2 + (this.nudge = this.nudge ? 0 : 1e-5); // the same time again shows no frame
    });
  }

  snapshot() {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: this.copy.videoWidth, height: this.copy.videoHeight });
    canvas.getContext("2d").drawImage(this.copy, 0, 0);
    return canvas;
  }

  /** Once the page shows the player: a first frame, and then all that it takes to play. */
  async start(frame) {
    this.fit();
    await this.go(frame);
    this.prepare().catch((error) => { this.note.textContent = `single frames only: ${error.message}`; });
  }

  /** Wait for the copy, saying how far it is. */
  async prepare() {
    await finished(async () => (await ask("/api/footage", { kind: this.kind, video: this.video })).copy,
      ({ step }) => { this.note.textContent = `preparing to play: ${step}`; }, this.element);
    this.note.textContent = "";
    const video = node("video", { src: `${this.base}/proxy.mp4`, preload: "auto" });
    video.muted = true;
    await new Promise((done, failed) => {
      video.addEventListener("loadeddata", done, { once: true });
      video.addEventListener("error", () => failed(new Error("this browser cannot play the copy")), { once: true });
    });
    this.copy = video;
    this.playing.disabled = false;
    this.element.dataset.ready = "";
  }

  pause() {
    this.copy?.pause();
    this.playing.textContent = "play";
  }

  async toggle() {
    if (!this.copy) return;
    if (!this.copy.paused) {
      await this.go(this.frame);
      return;
    }
    const turn = this.turn += 1;
    this.copy.currentTime = this.times[this.frame === this.count - 1 ? 0 : this.frame];
    await this.copy.play();
    this.playing.textContent = "pause";
    const step = async (_, { mediaTime }) => {
      if (turn !== this.turn) return;
      const frame = frameAt(this.times, mediaTime);
      const picture = this.snapshot();
      const instances = await this.instancesOf(frame);
      if (turn !== this.turn) return;
      this.show(frame, picture, instances);
      if (this.copy.ended) this.pause();
      else this.copy.requestVideoFrameCallback(step);
    };
    this.copy.requestVideoFrameCallback(step);
    this.copy.onended = () => this.pause();
  }

  /** Keys that every view with a player has. */
  keys() {
    const step = (by) => () => this.go(this.frame + by);
    return { ArrowRight: step(1), ArrowLeft: step(-1), "shift+ArrowRight": step(Math.round(this.facts.fps) || 1),
      "shift+ArrowLeft": step(-(Math.round(this.facts.fps) || 1)), " ": explained(() => this.toggle()) };
  }
}
