// Drawing masks over a frame: box, clicks and strokes for the segmenter, polygon and brush, by mouse, pen or finger.
import { blankCanvas, button, node } from "./elements.js";
import { replaceShapes } from "./frame_canvas.js";
import { paintAlone, turned } from "./masks.js";
import { Polygon } from "./polygon.js";
import { boxOf, drawMask, maskOf } from "./run_lengths.js";
import { Segmenting } from "./segmenting.js";
import { explained, say } from "./status.js";
import { TOOLS, toolButtons } from "./tools.js";

/** @import { Keys } from "./page.d.ts" */
/** @import { Mask, MaskPrompt, Point, PromptPoint } from "./shapes.d.ts" */
/** @import { Player } from "./player.js" */

const STROKE = 5; // pixels of the page between two points of a stroke
const PIXEL = 0.6; // the least radius of the brush, in pixels of the frame
const SIZES = { min: 2, max: 60, value: 10 }; // of the brush, in pixels of the page
const NO_SEGMENTER = "no segmenter is set: a box is a rectangle";
const BESIDE = "Alt or right button: exclude a point";

/**
 * `current()` promises the object that is drawn at, whose mask may be null; `takeMask(id, mask)` takes its new mask.
 * @typedef {object} Drafting
 * @property {string} video
 * @property {boolean} hasSegmenter without one a box is a mask itself
 * @property {() => Promise<DrawTarget>} current
 * @property {(id: string | null, mask: Mask) => unknown} takeMask
 */

/** @typedef {{ id: string | null, mask: Mask | null }} DrawTarget */
/** @typedef {MaskPrompt & { stroke: PromptPoint[] }} StrokeBegun */

export class Drawing {
  /**
   * @param {Player} player
   * @param {Drafting} drafting
   */
  constructor(player, { video, hasSegmenter, current, takeMask }) {
    this.player = player;
    this.view = player.canvas;
    this.hasSegmenter = hasSegmenter;
    this.current = current;
    this.takeMask = takeMask;
    this.segmenting = new Segmenting(video, (mask) => this.preview(mask));
    this.tool = "select";
    this.frame = player.frame;
    this.polygon = new Polygon(video, () => this.show());
    /** The request to the segmenter, while it runs. @type {MaskPrompt | null} */
    this.prompt = null;
    /** The request before this stroke. @type {StrokeBegun | null} */
    this.before = null;
    /** Points of this stroke. @type {PromptPoint[]} */
    this.stroked = [];
    /** Its last answer. @type {Promise<Mask> | undefined} */
    this.promisedMask = undefined;
    /** Where the pointer is, was pressed, and was last while pressed. @type {Point | null} */
    this.at = null;
    /** @type {Point | null} */
    this.start = null;
    /** @type {Point | null} */
    this.end = null;
    /** The object whose mask is drawn at. @type {DrawTarget | null} */
    this.target = null;
    /** The mask that is painted while it is drawn. @type {ImageBitmap | undefined} */
    this.answer = undefined;
    /** The frame to draw on is being read. @type {Promise<void>} */
    this.begun = Promise.resolve();
    /** The finished stroke is being taken. @type {Promise<void>} */
    this.busy = Promise.resolve();
    const { width, height } = player.facts;
    this.context = blankCanvas({ width, height }, { willReadFrequently: true }).context;
    this.context.fillStyle = "#fff";
    this.context.strokeStyle = "#fff";
    this.size = node("input", { type: "range", ...SIZES, "aria-label": "brush size in pixels of the screen" });
    this.tools = toolButtons(hasSegmenter, (name) => this.choose(name));
    const snapping = { title: "polygons follow edges (s)", "aria-pressed": "true", "data-icon": "magnet" };
    this.snapping = button("snap", () => this.snap(), snapping);
    this.sizing = node("label", { class: "inline" }, "brush ", this.size);
    this.hint = node("span", { class: "note" }, hasSegmenter ? "" : NO_SEGMENTER);
    this.element = node(
      "div",
      { class: "controls tools-row", role: "group", "aria-label": "tools" },
      ...this.tools.values(),
      this.snapping,
      this.sizing,
    );
    this.listen();
    this.choose("select");
  }

  listen() {
    const { stage, zoom } = this.view;
    stage.on("pointerdown", ({ evt }) => this.press(this.pointer(), evt.button === 2 || evt.altKey));
    stage.on("pointermove", () => this.move(this.pointer()));
    stage.on("contextmenu", ({ evt }) => evt.preventDefault());
    const lift = () => {
      if (this.element.isConnected) this.busy = this.release();
      else removeEventListener("pointerup", lift);
    };
    addEventListener("pointerup", lift);
    zoom.interrupted = () => this.cancel();
    this.player.onFrame((frame) => {
      if (frame !== this.frame) this.cancel();
      this.frame = frame;
    });
  }

  /** Within the frame, in its pixels. */
  pointer() {
    const { width, height } = this.view.size;
    const { x, y } = this.view.pointer();
    return { x: Math.min(Math.max(x, 0), width), y: Math.min(Math.max(y, 0), height) };
  }

  /** @param {string} tool */
  choose(tool) {
    this.cancel();
    this.tool = tool;
    this.view.isDrawing = tool !== "select";
    for (const [name, element] of this.tools) element.setAttribute("aria-pressed", String(name === tool));
    this.view.holder.classList.toggle("drawing", this.view.isDrawing);
    this.snapping.hidden = tool !== "polygon";
    this.sizing.hidden = tool !== "brush" && tool !== "eraser";
    if (this.hasSegmenter) this.hint.textContent = tool === "points" ? BESIDE : "";
  }

  snap() {
    this.polygon.snaps = !this.polygon.snaps;
    this.snapping.setAttribute("aria-pressed", String(this.polygon.snaps));
  }

  /** @param {number} factor */
  resize(factor) {
    this.size.value = String(Number(this.size.value) * factor);
    this.show();
  }

  /** The brush's radius in pixels of the frame; it covers one at least. */
  get radius() {
    return Math.max(PIXEL, Number(this.size.value) / this.view.scale);
  }

  /** @returns {Keys} */
  keys() {
    const ofTools = [...this.tools.keys()].map((name) => [TOOLS[name][0], [`tool: ${name}`, () => this.choose(name)]]);
    return {
      ...Object.fromEntries(ofTools),
      s: ["polygons follow edges, or not", () => this.snap()],
      "[": ["smaller brush", () => this.resize(0.8)],
      "]": ["larger brush", () => this.resize(1.25)],
      Escape: ["discard the current drawing", () => this.leave()],
    };
  }

  /**
   * @param {Point} at
   * @param {boolean} isBeside the object that the segmenter looks for
   */
  async press(at, isBeside) {
    if (!this.view.isDrawing || this.start) return;
    if (this.tool === "polygon") {
      if (this.polygon.isClosing(at, this.view.scale)) await this.finish();
      else this.polygon.add(this.frame, at);
    } else {
      this.start = at;
      this.end = at;
      /** @type {PromptPoint[]} */
      const stroke = [{ ...at, inside: !isBeside }];
      this.stroked = stroke;
      if (this.tool === "points") this.begun = this.busy.then(() => this.beginStroke(this.frame, stroke));
      else if (this.tool === "box") this.prompt = { box: null, points: [] };
      else {
        this.begun = this.busy.then(() => this.begin());
        await this.begun;
        this.stroke(at, this.end);
      }
    }
    this.show();
  }

  /** @param {Point} at */
  move(at) {
    if (!this.view.isDrawing) return;
    this.at = at;
    if (this.start && this.end) this.drag(this.start, this.end, at);
    this.show();
  }

  /**
   * @param {Point} start
   * @param {Point} last
   * @param {Point} at
   */
  drag(start, last, at) {
    if (this.tool === "points") {
      if (Math.hypot(at.x - last.x, at.y - last.y) * this.view.scale < STROKE) return;
      this.stroked.push({ ...at, inside: this.stroked[0].inside });
      if (this.before?.stroke === this.stroked) this.askStroke(this.before);
    } else if (this.tool === "box") {
      const box = cornersOf(start, at);
      if (this.hasSegmenter && box) this.ask({ box, points: [] });
    } else this.stroke(last, at);
    this.end = at;
  }

  /**
   * A click or stroke adds to the prompt behind the object's mask.
   * @param {number} frame
   * @param {PromptPoint[]} stroke
   */
  async beginStroke(frame, stroke) {
    const target = await this.current();
    if (frame !== this.frame) return;
    const { mask } = target;
    const box = mask && boxOf(mask);
    const prompt = (mask && this.segmenting.prompts.get(mask)) ?? {
      box: box && [box[0], box[1], box[0] + box[2], box[1] + box[3]],
      points: [],
    };
    this.before = { ...prompt, stroke };
    this.askStroke(this.before);
    this.hide(target);
  }

  /** @param {StrokeBegun} before */
  askStroke({ box, points, stroke }) {
    this.ask({ box, points: [...points, ...stroke] });
  }

  /** @param {MaskPrompt} prompt */
  ask(prompt) {
    this.prompt = prompt;
    this.promisedMask = this.segmenting.ask({ frame: this.frame, prompt });
    this.promisedMask.catch(() => {}); // said where it is taken
  }

  /** @param {Mask} mask */
  async preview(mask) {
    const { prompt } = this;
    const answer = await paintAlone(mask);
    if (this.prompt !== prompt || !prompt) return;
    this.answer = answer;
    this.show();
  }

  release = explained(async () => {
    const { start, end, tool, frame } = this;
    if (!start || !end) return;
    this.start = null;
    await this.begun;
    if (tool === "box" && !this.hasSegmenter) {
      const box = cornersOf(start, end);
      this.cancel();
      if (box) await this.fillShape((context) => context.rect(box[0], box[1], box[2] - box[0], box[3] - box[1]));
    } else if (tool === "box" || tool === "points") await this.takeAnswer(frame);
    else {
      const { target } = this;
      this.target = null;
      if (target) await this.takeMask(target.id, maskOf(this.context));
      this.show();
    }
  });

  /** The segmenter's last answer becomes the mask. After a box clicks correct it. @param {number} frame */
  async takeAnswer(frame) {
    const { promisedMask, prompt, tool } = this;
    if (!promisedMask || !prompt || (tool === "box" && !prompt.box)) {
      this.cancel();
      return;
    }
    try {
      const [{ id }, mask] = await Promise.all([this.current(), promisedMask]);
      if (frame !== this.frame) return;
      if (boxOf(mask)) await this.takeMask(id, mask);
      else say("Nothing found there.");
      if (tool === "box" && this.tool === tool) this.choose("points");
    } finally {
      if (this.prompt === prompt) this.forgetAnswer();
    }
  }

  /** Closes the polygon. */
  async finish() {
    const outline = await this.polygon.outline(this.frame);
    if (!outline) return false;
    this.cancel();
    await this.fillShape((context) => {
      for (const { x, y } of outline) context.lineTo(x, y);
    });
    return true;
  }

  leave() {
    this.cancel();
    return this.player.refresh();
  }

  cancel() {
    this.polygon.corners = [];
    this.start = null;
    this.target = null;
    this.forgetAnswer();
  }

  forgetAnswer() {
    this.prompt = null;
    this.before = null;
    this.promisedMask = undefined;
    this.answer = undefined;
    this.show();
  }

  /** The object's mask onto the canvas, and out of the picture below while it is changed. */
  async begin() {
    const { context } = this;
    context.clearRect(0, 0, context.canvas.width, context.canvas.height);
    const target = await this.current();
    this.target = target;
    if (target.mask) drawMask(context, target.mask);
    this.hide(target);
  }

  /** @param {DrawTarget} target */
  hide({ id }) {
    this.view.instances = this.view.instances.filter((instance) => instance.id !== id);
    this.view.redraw();
  }

  /**
   * @param {Point} from
   * @param {Point} to
   */
  stroke(from, to) {
    const { context } = this;
    context.globalCompositeOperation = this.tool === "eraser" ? "destination-out" : "source-over";
    context.lineWidth = 2 * this.radius;
    context.lineCap = "round";
    context.beginPath();
    const [start, end] = [from, to].map(({ x, y }) =>
      this.radius > PIXEL ? { x, y } : { x: Math.floor(x) + 0.5, y: Math.floor(y) + 0.5 },
    );
    context.moveTo(start.x, start.y);
    context.lineTo(end.x + 0.01, end.y);
    context.stroke();
    context.globalCompositeOperation = "source-over";
  }

  /** A shape added to the object's mask. @param {(context: CanvasRenderingContext2D) => void} path */
  async fillShape(path) {
    await this.begin();
    this.context.beginPath();
    path(this.context);
    this.context.fill();
    const id = this.target?.id ?? null;
    this.target = null;
    await this.takeMask(id, maskOf(this.context));
  }

  /** The tool in use. */
  show() {
    const { start, end, at, tool } = this;
    const { corners } = this.polygon;
    const { drawLayer: layer, scale } = this.view;
    const line = { stroke: "#ff0", strokeWidth: 2 / scale, listening: false };
    const shapes = [];
    if (this.answer) shapes.push(new Konva.Image({ ...turned(this.answer), listening: false }));
    else if (this.target) shapes.push(new Konva.Image({ image: this.context.canvas, opacity: 0.55, listening: false }));
    if (start && end && tool === "box") {
      shapes.push(new Konva.Rect({ ...line, ...start, width: end.x - start.x, height: end.y - start.y }));
    }
    if (corners.length && at) {
      const ways = [...corners.flatMap(({ seen }) => seen), at];
      shapes.push(new Konva.Line({ ...line, points: ways.flatMap(({ x, y }) => [x, y]) }));
    }
    const dots = tool === "points" ? (this.prompt?.points ?? []) : corners.map(({ x, y }) => ({ x, y, inside: true }));
    for (const { x, y, inside } of dots) {
      shapes.push(new Konva.Circle({ ...line, x, y, radius: 4 / scale, fill: inside ? "#0c0" : "#e00" }));
    }
    if (at && (tool === "brush" || tool === "eraser")) {
      shapes.push(new Konva.Circle({ ...line, x: at.x, y: at.y, radius: this.radius }));
    }
    replaceShapes(layer, shapes);
  }
}

/**
 * Left, top, right, bottom; null where there is nothing between.
 * @param {Point} first
 * @param {Point} second
 * @returns {MaskPrompt["box"]}
 */
function cornersOf(first, second) {
  const [left, right] = [first.x, second.x].sort((a, b) => a - b);
  const [top, bottom] = [first.y, second.y].sort((a, b) => a - b);
  return right - left < 1 || bottom - top < 1 ? null : [left, top, right, bottom];
}
