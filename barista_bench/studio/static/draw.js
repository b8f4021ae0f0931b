// Drawing masks over a frame: box, points, polygon and brush, by mouse or pen.
import { button, node } from "./page.js";
import { drawMask, maskOf } from "./masks.js";

const KEYS = { select: "v", box: "b", points: "c", polygon: "g", brush: "r", eraser: "e" };

export class Drawing {
  /**
   * `current()` promises {id, mask} of the object that is drawn at, whose mask may be null; `drawn(id, mask)` takes its new
   * mask; `prompted({box} | {points})` asks the segmenter, and is null where there is none: a box then is a mask itself.
   */
  constructor(player, { current, drawn, prompted }) {
    Object.assign(this, { player, current, drawn, prompted });
    const { width, height } = player.facts;
    this.canvas = Object.assign(document.createElement("canvas"), { width, height });
    this.context = this.canvas.getContext("2d", { willReadFrequently: true });
    this.context.fillStyle = this.context.strokeStyle = "#fff";
    this.size = node("input", { type: "range", min: 1, max: Math.ceil(Math.max(width, height) / 12), value: Math.ceil(Math.max(width, height) / 60), "aria-label": "brush size in pixels" });
    const names = Object.keys(KEYS).filter((name) => prompted || name !== "points");
    this.tools = new Map(names.map((name) => [name, button(name, () => this.choose(name), { title: `${name} (${KEYS[name]})` })]));
    this.element = node("div", { class: "controls tools-row", role: "group", "aria-label": "tools" }, ...this.tools.values(), node("label", { class: "inline" }, "size ", this.size),
      node("span", { class: "note" }, prompted ? "" : "No segmenter is set in project.json: a box is a plain rectangle, to be refined with the brush."));
    player.stage.on("pointerdown", (event) => this.press(player.pointer(), event.evt.button === 2 || event.evt.altKey));
    player.stage.on("pointermove", () => this.move(player.pointer()));
    player.stage.on("contextmenu", (event) => event.evt.preventDefault());
    addEventListener("pointerup", this.lift = () => {
      if (this.element.isConnected) this.busy = this.release();
      else removeEventListener("pointerup", this.lift);
    });
    player.on("frame", (frame) => {
      if (frame !== this.frame) this.cancel();
      this.frame = frame;
    });
    this.choose("select");
  }

  choose(tool) {
    this.cancel();
    this.tool = tool;
    this.player.drawing = tool !== "select";
    for (const [name, made] of this.tools) made.setAttribute("aria-pressed", String(name === tool));
    this.player.holder.classList.toggle("drawing", this.player.drawing);
  }

  keys() {
    return { ...Object.fromEntries([...this.tools.keys()].map((name) => [KEYS[name], () => this.choose(name)])), Escape: () => this.cancel() };
  }

  async press(at, isBeside) {
    if (!this.player.drawing || this.start) return;
    if (this.tool === "points" || this.tool === "polygon") {
      const isClosed = this.tool === "polygon" && this.points.length > 2 && Math.hypot(at.x - this.points[0].x, at.y - this.points[0].y) * this.player.scale < 8;
      if (isClosed) await this.finish();
      else this.points.push({ ...at, inside: !isBeside });
    } else {
      this.start = this.end = at;
      if (this.tool !== "box") {
        this.begun = this.begin();
        await this.begun;
        this.stroke(at, this.end);
      }
    }
    this.show();
  }

  move(at) {
    if (!this.player.drawing) return;
    this.at = at;
    if (this.start && this.tool !== "box") this.stroke(this.end, at);
    if (this.start) this.end = at;
    this.show();
  }

  async release() {
    if (!this.start) return;
    const { start, end, tool } = this;
    if (tool === "box") {
      const [left, right] = [start.x, end.x].sort((a, b) => a - b);
      const [top, bottom] = [start.y, end.y].sort((a, b) => a - b);
      this.cancel();
      if (right - left < 1 || bottom - top < 1) return;
      if (this.prompted) this.prompted({ box: [left, top, right, bottom] });
      else await this.filled((context) => context.rect(left, top, right - left, bottom - top));
    } else {
      await this.begun;
      this.start = null;
      if (this.target) await this.drawn(this.target.id, maskOf(this.canvas));
      this.cancel();
    }
  }

  /** Close the polygon, or ask for the points. */
  async finish() {
    const { points, tool } = this;
    if (points.length < (tool === "points" ? 1 : 3)) return false;
    this.cancel();
    if (tool === "points") this.prompted({ points });
    else await this.filled((context) => points.forEach(({ x, y }) => context.lineTo(x, y)));
    return true;
  }

  cancel() {
    this.points = [];
    this.start = this.target = null;
    this.player.drawLayer.destroyChildren();
    this.player.drawLayer.batchDraw();
  }

  /** The object's mask onto the canvas, and out of the picture below while it is changed. */
  async begin() {
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.target = await this.current();
    const { id, mask } = this.target;
    if (mask) drawMask(this.context, mask);
    this.player.instances = this.player.instances.filter((instance) => instance.id !== id);
    this.player.redraw();
  }

  stroke(from, to) {
    const { context } = this;
    context.globalCompositeOperation = this.tool === "eraser" ? "destination-out" : "source-over";
    Object.assign(context, { lineWidth: 2 * this.size.value, lineCap: "round" });
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x + 0.01, to.y);
    context.stroke();
    context.globalCompositeOperation = "source-over";
  }

  /** A shape added to the object's mask. */
  async filled(path) {
    await this.begin();
    this.context.beginPath();
    path(this.context);
    this.context.fill();
    const { id } = this.target;
    this.target = null;
    await this.drawn(id, maskOf(this.canvas));
  }

  /** What is being drawn. */
  show() {
    const { start, end, points, at, tool, player: { drawLayer: layer, scale } } = this;
    const line = { stroke: "#ff0", strokeWidth: 2 / scale, listening: false };
    layer.destroyChildren();
    if (start && tool === "box") layer.add(new Konva.Rect({ ...line, x: start.x, y: start.y, width: end.x - start.x, height: end.y - start.y }));
    else if (this.target) layer.add(new Konva.Image({ image: this.canvas, opacity: 0.55, listening: false }));
    if (tool === "polygon" && points.length) layer.add(new Konva.Line({ ...line, points: [...points, at].flatMap(({ x, y }) => [x, y]) }));
    for (const { x, y, inside } of points) layer.add(new Konva.Circle({ ...line, x, y, radius: 4 / scale, fill: inside ? "#0c0" : "#e00" }));
    if (at && (tool === "brush" || tool === "eraser")) layer.add(new Konva.Circle({ ...line, x: at.x, y: at.y, radius: Number(this.size.value) }));
    layer.batchDraw();
  }
}
