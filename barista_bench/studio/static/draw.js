// Drawing masks over a frame: box, points, polygon and brush, by mouse, pen or keyboard.
import { button, node } from "./page.js";
import { decoded } from "./masks.js";

const KEYS = { select: "v", box: "b", points: "c", polygon: "g", brush: "r", eraser: "e" };
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Drawing {
  /**
   * `current()` promises {id, mask} of the object that is drawn at, whose mask may be null; `drawn(id, pixels)` takes its new
   * mask; `prompted({box} | {points})` asks the segmenter, and is null where there is none: a box then is a mask itself.
   */
  constructor(player, { current, drawn, prompted }) {
    Object.assign(this, { player, current, drawn, prompted, tool: "select", points: [], at: null });
    const { width, height } = player.facts;
    this.canvas = Object.assign(document.createElement("canvas"), { width, height });
    this.context = this.canvas.getContext("2d", { willReadFrequently: true });
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
    player.holder.addEventListener("keydown", (event) => this.key(event));
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
    if (this.player.drawing) {
      this.player.holder.tabIndex = 0;
      this.player.holder.role = "application";
    } else {
      this.player.holder.removeAttribute("tabindex");
      this.player.holder.role = "img";
    }
  }

  keys() {
    return { ...Object.fromEntries([...this.tools.keys()].map((name) => [KEYS[name], () => this.choose(name)])), Escape: () => this.cancel() };
  }

  /** Without a mouse: arrows move the cross (with Shift by ten), Space presses and lifts. */
  key(event) {
    if (!this.player.drawing || (!STEPS[event.key] && event.key !== " ")) return;
    event.preventDefault();
    event.stopPropagation();
    const { width, height } = this.player.facts;
    const [x, y] = STEPS[event.key] ?? [0, 0];
    const far = event.shiftKey ? 10 : 1;
    this.at ??= { x: width / 2, y: height / 2 };
    this.at = { x: Math.max(0, Math.min(width, this.at.x + x * far)), y: Math.max(0, Math.min(height, this.at.y + y * far)) };
    if (event.key !== " ") this.move(this.at);
    else if (this.start) this.release();
    else this.press(this.at, event.shiftKey);
    this.show();
  }

  async press(at, isBeside) {
    if (!this.player.drawing || this.start) return;
    if (this.tool === "points") this.points.push({ ...at, inside: !isBeside });
    else if (this.tool === "polygon") {
      const first = this.points[0];
      if (first && this.points.length > 2 && Math.hypot(at.x - first.x, at.y - first.y) * this.player.scale < 8) {
        await this.finish();
        return;
      }
      this.points.push(at);
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
    this.at = at;
    if (this.start) {
      if (this.tool !== "box") this.stroke(this.end, at);
      this.end = at;
    }
    if (this.player.drawing) this.show();
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
      const { target } = this;
      await this.begun;
      this.start = null;
      await this.drawn(target.id, this.pixels());
      this.cancel();
    }
  }

  /** Close the polygon, or ask for the points. */
  async finish() {
    const { points, tool } = this;
    if (tool === "points" && points.length) {
      this.cancel();
      this.prompted({ points });
    } else if (tool === "polygon" && points.length > 2) {
      this.cancel();
      await this.filled((context) => points.forEach(({ x, y }, number) => (number ? context.lineTo(x, y) : context.moveTo(x, y))));
    } else return false;
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
    if (mask) this.load(decoded(mask));
    this.player.instances = this.player.instances.filter((instance) => instance.id !== id);
    this.player.redraw();
  }

  load(pixels) {
    const image = this.context.createImageData(this.canvas.width, this.canvas.height);
    const words = new Uint32Array(image.data.buffer);
    for (let at = 0; at < pixels.length; at += 1) if (pixels[at]) words[at] = 0xff_ff_ff_ff;
    this.context.putImageData(image, 0, 0);
  }

  stroke(from, to) {
    const { context } = this;
    context.globalCompositeOperation = this.tool === "eraser" ? "destination-out" : "source-over";
    Object.assign(context, { lineWidth: 2 * this.size.value, lineCap: "round", strokeStyle: "#fff" });
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
    this.context.fillStyle = "#fff";
    this.context.fill();
    const { id } = this.target;
    this.target = null;
    await this.drawn(id, this.pixels());
  }

  pixels() {
    const { data } = this.context.getImageData(0, 0, this.canvas.width, this.canvas.height);
    const pixels = new Uint8Array(data.length / 4);
    for (let at = 0; at < pixels.length; at += 1) pixels[at] = data[4 * at + 3] > 127 ? 1 : 0;
    return pixels;
  }

  /** What is being drawn. */
  show() {
    const layer = this.player.drawLayer;
    const line = { stroke: "#ff0", strokeWidth: 2 / this.player.scale, listening: false };
    const dot = (x, y, radius, more = {}) => new Konva.Circle({ x, y, radius, ...line, ...more });
    layer.destroyChildren();
    if (this.start && this.tool === "box") {
      layer.add(new Konva.Rect({ ...line, x: this.start.x, y: this.start.y, width: this.end.x - this.start.x, height: this.end.y - this.start.y }));
    } else if (this.target) layer.add(new Konva.Image({ image: this.canvas, opacity: 0.55, listening: false }));
    if (this.tool === "polygon" && this.points.length) {
      layer.add(new Konva.Line({ ...line, points: [...this.points, this.at].flatMap(({ x, y }) => [x, y]) }));
      layer.add(dot(this.points[0].x, this.points[0].y, 5 / this.player.scale));
    }
    for (const { x, y, inside } of this.tool === "points" ? this.points : []) layer.add(dot(x, y, 4 / this.player.scale, { fill: inside ? "#0c0" : "#e00" }));
    if (this.at && (this.tool === "brush" || this.tool === "eraser")) layer.add(dot(this.at.x, this.at.y, Number(this.size.value)));
    else if (this.at && this.player.drawing) layer.add(dot(this.at.x, this.at.y, 3 / this.player.scale));
    layer.batchDraw();
  }
}
