// Drawing masks over a frame: box, points, polygon and brush, by mouse or pen.
import { blankCanvas, button, node } from "./elements.js";
import { drawMask, maskOf } from "./run_lengths.js";

/** @import { Keys } from "./page.d.ts" */
/** @import { Mask, MaskPrompt, Point, PromptPoint } from "./shapes.d.ts" */
/** @import { Player } from "./player.js" */

/** @type {Record<string, string>} */
const TOOL_KEYS = { select: "v", box: "b", points: "c", polygon: "g", brush: "r", eraser: "e" };
const CLOSING = 8; // pixels of the page from the first corner at which a polygon is closed
const NO_SEGMENTER = "No segmenter is set in project.json: a box is a plain rectangle, to be refined with the brush.";

/**
 * `current()` promises the object that is drawn at, whose mask may be null; `drawn(id, mask)` takes its new mask;
 * `prompted(prompt)` asks the segmenter, and is null where there is none: a box then is a mask itself.
 * @typedef {object} Drafting
 * @property {() => Promise<Drawn>} current
 * @property {(id: string | null, mask: Mask) => unknown} drawn
 * @property {((prompt: MaskPrompt) => unknown) | null} prompted
 */

/** @typedef {{ id: string | null, mask: Mask | null }} Drawn */

export class Drawing {
  /**
   * @param {Player} player
   * @param {Drafting} drafting
   */
  constructor(player, { current, drawn, prompted }) {
    this.player = player;
    this.view = player.canvas;
    this.current = current;
    this.drawn = drawn;
    this.prompted = prompted;
    this.tool = "select";
    this.frame = player.frame;
    /** Corners of a polygon, or clicks for the segmenter. @type {PromptPoint[]} */
    this.points = [];
    /** Where the pointer is, was pressed, and was last while pressed. @type {Point | null} */
    this.at = null;
    /** @type {Point | null} */
    this.start = null;
    /** @type {Point | null} */
    this.end = null;
    /** The object whose mask is on the canvas. @type {Drawn | null} */
    this.target = null;
    /** The canvas is being filled. @type {Promise<void>} */
    this.begun = Promise.resolve();
    /** What was drawn is being taken. @type {Promise<void>} */
    this.busy = Promise.resolve();
    const { width, height } = player.facts;
    this.context = blankCanvas({ width, height }, { willReadFrequently: true }).context;
    this.context.fillStyle = "#fff";
    this.context.strokeStyle = "#fff";
    const longest = Math.max(width, height);
    const sizes = { min: 1, max: Math.ceil(longest / 12), value: Math.ceil(longest / 60) };
    this.size = node("input", { type: "range", ...sizes, "aria-label": "brush size in pixels" });
    const names = Object.keys(TOOL_KEYS).filter((name) => prompted || name !== "points");
    this.tools = new Map(
      names.map((name) => [name, button(name, () => this.choose(name), { title: `${name} (${TOOL_KEYS[name]})` })]),
    );
    this.element = node(
      "div",
      { class: "controls tools-row", role: "group", "aria-label": "tools" },
      ...this.tools.values(),
      node("label", { class: "inline" }, "size ", this.size),
      node("span", { class: "note" }, prompted ? "" : NO_SEGMENTER),
    );
    this.listen();
    this.choose("select");
  }

  listen() {
    const { stage } = this.view;
    stage.on("pointerdown", ({ evt }) => this.press(this.view.pointer(), evt.button === 2 || evt.altKey));
    stage.on("pointermove", () => this.move(this.view.pointer()));
    stage.on("contextmenu", ({ evt }) => evt.preventDefault());
    const lift = () => {
      if (this.element.isConnected) this.busy = this.release();
      else removeEventListener("pointerup", lift);
    };
    addEventListener("pointerup", lift);
    this.player.onFrame((frame) => {
      if (frame !== this.frame) this.cancel();
      this.frame = frame;
    });
  }

  /** @param {string} tool */
  choose(tool) {
    this.cancel();
    this.tool = tool;
    this.view.isDrawing = tool !== "select";
    for (const [name, made] of this.tools) made.setAttribute("aria-pressed", String(name === tool));
    this.view.holder.classList.toggle("drawing", this.view.isDrawing);
  }

  /** @returns {Keys} */
  keys() {
    const ofTools = [...this.tools.keys()].map((name) => [TOOL_KEYS[name], () => this.choose(name)]);
    return { ...Object.fromEntries(ofTools), Escape: () => this.cancel() };
  }

  /**
   * @param {Point} at
   * @param {boolean} isBeside a click outside of what the segmenter is to find
   */
  async press(at, isBeside) {
    if (!this.view.isDrawing || this.start) return;
    if (this.tool === "points" || this.tool === "polygon") {
      if (this.isClosing(at)) await this.finish();
      else this.points.push({ ...at, inside: !isBeside });
    } else {
      this.start = at;
      this.end = at;
      if (this.tool !== "box") {
        this.begun = this.begin();
        await this.begun;
        this.stroke(at, this.end);
      }
    }
    this.show();
  }

  /** Whether a click closes the polygon. @param {Point} at */
  isClosing(at) {
    const [first] = this.points;
    if (this.tool !== "polygon" || this.points.length < 3) return false;
    return Math.hypot(at.x - first.x, at.y - first.y) * this.view.scale < CLOSING;
  }

  /** @param {Point} at */
  move(at) {
    if (!this.view.isDrawing) return;
    this.at = at;
    if (this.start && this.end && this.tool !== "box") this.stroke(this.end, at);
    if (this.start) this.end = at;
    this.show();
  }

  async release() {
    const { start, end, tool } = this;
    if (!start || !end) return;
    if (tool === "box") {
      await this.releaseBox(start, end);
      return;
    }
    await this.begun;
    this.start = null;
    if (this.target) await this.drawn(this.target.id, maskOf(this.context));
    this.cancel();
  }

  /**
   * @param {Point} start
   * @param {Point} end
   */
  async releaseBox(start, end) {
    const [left, right] = [start.x, end.x].sort((a, b) => a - b);
    const [top, bottom] = [start.y, end.y].sort((a, b) => a - b);
    this.cancel();
    if (right - left < 1 || bottom - top < 1) return;
    if (this.prompted) this.prompted({ box: [left, top, right, bottom] });
    else await this.filled((context) => context.rect(left, top, right - left, bottom - top));
  }

  /** Closes the polygon, or asks for the points. */
  async finish() {
    const { points, tool } = this;
    if (points.length < (tool === "points" ? 1 : 3)) return false;
    this.cancel();
    if (tool === "points") this.prompted?.({ points });
    else {
      await this.filled((context) => {
        for (const { x, y } of points) context.lineTo(x, y);
      });
    }
    return true;
  }

  cancel() {
    this.points = [];
    this.start = null;
    this.target = null;
    this.view.drawLayer.destroyChildren();
    this.view.drawLayer.batchDraw();
  }

  /** The object's mask onto the canvas, and out of the picture below while it is changed. */
  async begin() {
    const { context, view } = this;
    context.clearRect(0, 0, context.canvas.width, context.canvas.height);
    const target = await this.current();
    this.target = target;
    if (target.mask) drawMask(context, target.mask);
    view.instances = view.instances.filter((instance) => instance.id !== target.id);
    view.redraw();
  }

  /**
   * @param {Point} from
   * @param {Point} to
   */
  stroke(from, to) {
    const { context } = this;
    context.globalCompositeOperation = this.tool === "eraser" ? "destination-out" : "source-over";
    context.lineWidth = 2 * Number(this.size.value);
    context.lineCap = "round";
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x + 0.01, to.y);
    context.stroke();
    context.globalCompositeOperation = "source-over";
  }

  /** A shape added to the object's mask. @param {(context: CanvasRenderingContext2D) => void} path */
  async filled(path) {
    await this.begin();
    this.context.beginPath();
    path(this.context);
    this.context.fill();
    const id = this.target?.id ?? null;
    this.target = null;
    await this.drawn(id, maskOf(this.context));
  }

  /** What is being drawn. */
  show() {
    const { start, end, points, at, tool } = this;
    const { drawLayer: layer, scale } = this.view;
    const line = { stroke: "#ff0", strokeWidth: 2 / scale, listening: false };
    layer.destroyChildren();
    if (start && end && tool === "box") {
      const size = { width: end.x - start.x, height: end.y - start.y };
      layer.add(new Konva.Rect({ ...line, ...start, ...size }));
    } else if (this.target) {
      layer.add(new Konva.Image({ image: this.context.canvas, opacity: 0.55, listening: false }));
    }
    if (tool === "polygon" && points.length && at) {
      layer.add(new Konva.Line({ ...line, points: [...points, at].flatMap(({ x, y }) => [x, y]) }));
    }
    for (const { x, y, inside } of points) {
      layer.add(new Konva.Circle({ ...line, x, y, radius: 4 / scale, fill: inside ? "#0c0" : "#e00" }));
    }
    if (at && (tool === "brush" || tool === "eraser")) {
      layer.add(new Konva.Circle({ ...line, x: at.x, y: at.y, radius: Number(this.size.value) }));
    }
    layer.batchDraw();
  }
}
