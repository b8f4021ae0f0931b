// A video to step through and to play, with layers over each frame.
import { button, node } from "./elements.js";
import { FrameCanvas, shows } from "./frame_canvas.js";
import { FrameSource, frameAt, stillsOf } from "./frame_source.js";
import { ask, caching, newestOf } from "./server.js";
import { explained, reasonOf, say } from "./status.js";
import { clock } from "./words.js";

/** @import { Keys } from "./page.d.ts" */
/** @import { Instance, VideoKind } from "./shapes.d.ts" */

const AHEAD = 8; // frames
const REST = 120; // milliseconds without another frame asked for, after which one stays

/** @typedef {{ frame: number, isMoving: boolean }} FrameRequest */

export class Player {
  /**
   * `kind` and `video` are the video's address, `overlay(frame)` promises the instances to draw on a frame. The picture
   * of the `first` one, where it is known, is asked for at once.
   * @param {VideoKind} kind
   * @param {string} video
   * @param {(frame: number) => Promise<Instance[]>} overlay
   * @param {number | null} first
   */
  static async open(kind, video, overlay, first) {
    const stills = stillsOf(kind, video);
    if (first !== null) stills(first).catch(() => {}); // said when it is shown
    return new Player(new FrameSource(kind, video, await ask("/api/footage", { kind, video }), stills), overlay);
  }

  /**
   * @param {FrameSource} source
   * @param {(frame: number) => Promise<Instance[]>} overlay
   */
  constructor(source, overlay) {
    const { facts } = source;
    this.video = source.address.video;
    this.facts = facts;
    this.times = facts.seconds;
    this.count = facts.frames;
    /** The frame that is shown; -1 before the first. */
    this.frame = -1;
    /** The frame that was last asked for. @type {number | undefined} */
    this.wanted = undefined;
    this.turn = 0;
    /** Objects that are stressed. @type {Set<string>} */
    this.selected = new Set();
    this.overlay = caching(overlay);
    this.load = newestOf((/** @type {FrameRequest} */ request) => this.showNewest(request));
    this.source = source;
    this.canvas = new FrameCanvas(facts, (object) => this.selected.has(object));
    /** The time of the last request for a frame, in milliseconds; and the work that follows a pause. */
    this.askedAt = -Infinity;
    this.resting = 0;
    /** @type {((frame: number) => unknown)[]} */
    this.frameListeners = [];
    /** @type {((frame: number) => unknown)[]} */
    this.restListeners = [];
    /** @type {((objects: string[]) => unknown)[]} */
    this.pickListeners = [];

    /** @type {HTMLInputElement} */
    this.slider = node("input", {
      type: "range",
      min: 0,
      max: this.count - 1,
      value: 0,
      "aria-label": "frame",
      input: () => {
        this.go(Number(this.slider.value));
      },
    });
    this.where = node("output", { class: "clock" });
    this.note = node("span", { class: "note" });
    this.layers = { masks: this.toggleOf("masks", "blend"), boxes: this.toggleOf("boxes", "scan") };
    this.playing = button("play", () => this.toggle(), { disabled: true, "data-icon": "play" });
    this.element = node("div", { class: "player" }, this.canvas.holder, this.slider, this.controls());
    new ResizeObserver(() => this.fit()).observe(this.element);
    this.canvas.onClick((object) => this.pick(object === null ? [] : [object]));
  }

  controls() {
    const back = { title: "frame back (←)", "aria-label": "frame back", "data-icon": "step-back" };
    const forward = { title: "frame forward (→)", "aria-label": "frame forward", "data-icon": "step-forward" };
    return node(
      "div",
      { class: "controls" },
      button("", () => this.go(this.frame - 1), back),
      this.playing,
      button("", () => this.go(this.frame + 1), forward),
      this.where,
      this.layers.masks,
      this.layers.boxes,
      this.note,
    );
  }

  /**
   * @param {"masks" | "boxes"} name
   * @param {string} icon
   */
  toggleOf(name, icon) {
    const toggle = () => {
      shows[name] = !shows[name];
      toggleButton.setAttribute("aria-pressed", String(shows[name]));
      this.canvas.redraw();
    };
    const toggleButton = button(name, toggle, { "aria-pressed": String(shows[name]), "data-icon": icon });
    return toggleButton;
  }

  fit() {
    this.canvas.fit(this.element.clientWidth);
  }

  /** For quick listeners: each one gets every shown frame. @param {(frame: number) => unknown} listener */
  onFrame(listener) {
    this.frameListeners.push(listener);
  }

  /** Frames are told that stay: not those that one passes on the way. @param {(frame: number) => unknown} listener */
  onRest(listener) {
    this.restListeners.push(listener);
  }

  /** @param {(objects: string[]) => unknown} listener */
  onPick(listener) {
    this.pickListeners.push(listener);
  }

  /** Stresses objects, by a click into the picture or elsewhere. @param {string[]} objects */
  pick(objects) {
    this.selected = new Set(objects);
    this.canvas.redraw();
    for (const listener of this.pickListeners) listener(objects);
  }

  /**
   * Shows a frame: its picture and its layers arrive together. Later calls wait, and only the last of them runs.
   * @param {number} frame
   */
  async go(frame) {
    const wanted = Math.max(0, Math.min(this.count - 1, frame));
    const now = performance.now();
    const isMoving = wanted !== this.wanted && now - this.askedAt < REST;
    this.askedAt = now;
    this.wanted = wanted;
    this.turn += 1;
    this.pause();
    clearTimeout(this.resting);
    await this.load({ frame: wanted, isMoving });
  }

  /** @param {FrameRequest} request */
  async showNewest({ frame, isMoving }) {
    try {
      const isQuick = this.source.small !== null && (isMoving || !this.source.isAtHand(frame));
      const picture = isQuick ? this.source.quickPictureOf(frame) : this.source.pictureOf(frame);
      const pictureAndInstances = await Promise.all([picture, this.instancesOf(frame, isQuick)]);
      const way = frame - this.frame;
      this.show(frame, ...pictureAndInstances, isQuick);
      if (!isQuick || Math.abs(way) <= AHEAD) this.lookAhead(frame, way < 0 ? -1 : 1, isQuick);
      if (!isQuick && !isMoving) this.rest(frame);
      else {
        clearTimeout(this.resting);
        const stay = isMoving ? REST : 0;
        this.resting = setTimeout(() => this.settle(frame, isQuick), stay);
      }
    } catch (error) {
      say(reasonOf(error));
    }
  }

  /**
   * The frame stays: it is shown as sharp as it is.
   * @param {number} frame
   * @param {boolean} isQuick
   */
  async settle(frame, isQuick) {
    if (this.wanted !== frame) return;
    this.rest(frame);
    if (!isQuick) return;
    const { turn } = this;
    const [decoded] = await Promise.all([this.source.decodedPictureOf(frame), this.instancesOf(frame, false)]);
    if (turn !== this.turn) return;
    const picture = decoded ?? (await this.source.still(frame));
    if (turn !== this.turn) return;
    this.show(frame, picture, this.canvas.instances); // without the drawing in progress
    this.lookAhead(frame, 1, false);
  }

  /** @param {number} frame */
  rest(frame) {
    for (const listener of this.restListeners) listener(frame);
  }

  /**
   * Requests the next frames in the direction of the last step.
   * @param {number} frame
   * @param {number} by
   * @param {boolean} isQuick
   */
  lookAhead(frame, by, isQuick) {
    for (let step = 1; step <= AHEAD; step += 1) {
      const next = frame + step * by;
      if (next >= 0 && next < this.count) this.prepaintOverlay(next, isQuick).catch(() => {}); // said when it is shown
    }
  }

  /**
   * @param {number} frame
   * @param {boolean} isQuick
   */
  async prepaintOverlay(frame, isQuick) {
    return this.canvas.prepaint(await this.overlay(frame), isQuick);
  }

  /**
   * The layers over a frame; a graph without such a frame says so and draws nothing.
   * @param {number} frame
   * @param {boolean} isQuick
   */
  async instancesOf(frame, isQuick) {
    try {
      return await this.prepaintOverlay(frame, isQuick);
    } catch (error) {
      say(reasonOf(error));
      return [];
    }
  }

  /** Requests the layers over the frame again. */
  async refresh() {
    this.overlay.forget();
    if (this.wanted !== undefined) await this.go(this.wanted);
  }

  /**
   * @param {number} frame
   * @param {CanvasImageSource} picture
   * @param {Instance[]} instances
   */
  show(frame, picture, instances, isQuick = false) {
    this.frame = frame;
    this.canvas.show(frame, picture, instances, isQuick);
    this.element.toggleAttribute("data-quick", isQuick);
    this.slider.value = String(frame);
    this.where.textContent = `frame ${frame} of 0 to ${this.count - 1} · ${clock(this.times[frame])}`;
    this.element.dataset.frame = String(frame);
    for (const listener of this.frameListeners) listener(frame);
  }

  /** Once the page shows the player: a first frame, and then all that it takes to play. @param {number} frame */
  async start(frame) {
    this.fit();
    await this.go(frame);
    this.prepare().catch((error) => {
      this.note.textContent = `single frames only: ${reasonOf(error)}`;
    });
  }

  /** Waits for the copy that can be played, saying how far it is. */
  async prepare() {
    /** @param {string} step */
    const showStep = (step) => {
      this.note.textContent = `preparing to play: ${step}`;
    };
    await this.source.prepare(showStep, this.element);
    this.note.textContent = "";
    this.playing.disabled = false;
    this.element.dataset.ready = "";
  }

  pause() {
    this.source.copy?.pause();
    this.offer("play");
  }

  /** The action of the button. @param {"play" | "pause"} action */
  offer(action) {
    this.playing.textContent = action;
    this.playing.dataset.icon = action;
  }

  async toggle() {
    const { copy } = this.source;
    if (!copy) return;
    if (!copy.paused) {
      await this.go(this.frame);
      return;
    }
    this.turn += 1;
    copy.currentTime = this.times[this.frame === this.count - 1 ? 0 : this.frame];
    await this.play(copy, this.turn);
  }

  /**
   * @param {HTMLVideoElement} copy
   * @param {number} turn it plays until a later one
   */
  async play(copy, turn) {
    await copy.play();
    this.offer("pause");
    /** @type {VideoFrameRequestCallback} */
    const step = async (_, { mediaTime }) => {
      if (turn !== this.turn) return;
      const frame = frameAt(this.times, mediaTime);
      const picture = this.source.snapshot(copy);
      const instances = await this.instancesOf(frame, false);
      if (turn !== this.turn) return;
      this.wanted = frame;
      this.show(frame, picture, instances);
      if (copy.ended) this.stop();
      else copy.requestVideoFrameCallback(step);
    };
    copy.requestVideoFrameCallback(step);
    copy.onended = () => this.stop();
  }

  /** At the end of the video. */
  stop() {
    this.pause();
    this.rest(this.frame);
  }

  /** Keys that every view with a player has. @returns {Keys} */
  keys() {
    const second = Math.round(this.facts.fps) || 1;
    /** @param {number} by */
    const step = (by) => () => this.go(this.frame + by);
    return {
      ArrowRight: ["frame forward", step(1)],
      ArrowLeft: ["frame back", step(-1)],
      "shift+ArrowRight": ["second forward", step(second)],
      "shift+ArrowLeft": ["second back", step(-second)],
      " ": [
        "play or pause; held down, a drag moves the picture",
        () => this.canvas.zoom.hold(explained(() => this.toggle())),
      ],
      m: ["masks on or off", () => this.layers.masks.click()],
      i: ["boxes on or off", () => this.layers.boxes.click()],
      ...this.canvas.zoom.keys(),
    };
  }
}
