// A frame and the layers over it: masks, boxes, outlines of other frames, and a person's drawing.
import { node } from "./elements.js";
import { colour, instanceAt, Painter, turned } from "./masks.js";
import { Zoom } from "./zoom.js";

/** @import { Box, Footage, Instance } from "./shapes.d.ts" */

const AROUND = 330; // pixels of the page above and below the picture
const LEAST = 260;
const LABEL = 13; // pixels of the page
const QUICK_LINES = 270; // of masks that are painted while one moves on
const SHARP = 3; // pixels of the page for one of the frame, from which on pixels are shown as squares

/** The layers over every video, as the person last chose them. */
export const shows = { masks: true, boxes: false };

/**
 * Replaces the shapes of a layer. An empty layer is not drawn again: that takes as long as a full one.
 * @param {import("konva/lib/Layer").Layer} layer
 * @param {import("konva/lib/Shape").Shape[]} shapes
 */
export function replaceShapes(layer, shapes) {
  if (!shapes.length && !layer.hasChildren()) return;
  layer.destroyChildren();
  if (shapes.length) layer.add(...shapes);
  layer.batchDraw();
}

export class FrameCanvas {
  /**
   * @param {Footage} facts
   * @param {(object: string) => boolean} isChosen
   */
  constructor({ width, height }, isChosen) {
    this.size = { width, height };
    this.isChosen = isChosen;
    this.isDrawing = false;
    /** Masks are painted coarsely, as the frame is about to change. */
    this.isQuick = false;
    /** @type {Instance[]} */
    this.instances = [];
    /** Of other frames: their outlines are shown. @type {Instance[]} */
    this.ghosts = [];
    this.painter = new Painter(isChosen);
    this.holder = node("div", { class: "picture", role: "img", "aria-label": "video frame" });
    this.stage = new Konva.Stage({ container: this.holder, width, height });
    const layer = () => new Konva.Layer({ listening: false });
    this.pictureLayer = layer();
    this.maskLayer = layer();
    this.boxLayer = layer();
    this.drawLayer = layer();
    this.stage.add(this.pictureLayer, this.maskLayer, this.boxLayer, this.drawLayer);
    this.picture = new Konva.Image({ width, height, image: undefined });
    this.paint = new Konva.Image(turned(undefined));
    this.outlines = new Konva.Image(turned(undefined));
    this.pictureLayer.add(this.picture);
    this.maskLayer.add(this.paint, this.outlines);
    this.zoom = new Zoom(this.holder, this.size, () => this.lay());
  }

  /** Pixels of the page for one of the frame. */
  get scale() {
    return this.zoom.scale;
  }

  /** As large as the page leaves room for. @param {number} room in pixels, from left to right */
  fit(room) {
    const { width, height } = this.size;
    const scale = Math.min(room / width, Math.max(LEAST, innerHeight - AROUND) / height);
    if (!scale) return;
    this.stage.size({ width: width * scale, height: height * scale });
    this.zoom.fit(scale);
  }

  /** Lays the frame where the zoom has it. */
  lay() {
    const { x, y, scale, least } = this.zoom;
    for (const layer of this.stage.getLayers()) layer.setAttrs({ x, y, scaleX: scale, scaleY: scale });
    for (const layer of [this.pictureLayer, this.maskLayer]) layer.imageSmoothingEnabled(scale < SHARP);
    this.holder.dataset.zoom = String(Math.round((100 * scale) / least) / 100);
    this.drawBoxes();
    this.stage.batchDraw();
  }

  /** The pointer in pixels of the frame. */
  pointer() {
    return this.zoom.toFrame(this.stage.getPointerPosition() ?? { x: 0, y: 0 });
  }

  /**
   * Calls `clicked` with the object below a click, null for none, unless something is being drawn.
   * @param {(object: string | null) => void} clicked
   */
  onClick(clicked) {
    this.stage.on("click tap", (event) => {
      if (this.isDrawing || this.zoom.hasMoved || event.target !== this.stage) return;
      const { x, y } = this.pointer();
      clicked((shows.masks ? this.instances[instanceAt(this.instances, x, y)]?.object : null) ?? null);
    });
  }

  /** Pixels of the frame for one of the masks that are painted. @param {boolean} isQuick */
  shrink(isQuick) {
    return isQuick ? Math.max(1, Math.round(this.size.height / QUICK_LINES)) : 1;
  }

  /**
   * Paints masks before they are shown.
   * @param {Instance[]} instances
   * @param {boolean} isQuick
   */
  async prepaint(instances, isQuick) {
    if (shows.masks) await this.painter.paint(instances, { shrink: this.shrink(isQuick) });
    return instances;
  }

  /**
   * @param {number} frame
   * @param {CanvasImageSource} picture
   * @param {Instance[]} instances
   */
  show(frame, picture, instances, isQuick = false) {
    this.instances = instances;
    this.isQuick = isQuick;
    this.picture.image(picture);
    this.pictureLayer.batchDraw();
    this.redraw();
    const names = instances.map(({ name }) => name).join(", ") || "no objects";
    this.holder.setAttribute("aria-label", `frame ${frame}: ${names}`);
  }

  /** Draws masks, outlines and boxes again. */
  async redraw() {
    const { instances, ghosts, isQuick } = this;
    const shrink = this.shrink(isQuick);
    this.drawBoxes();
    const [paint, outlines] = await Promise.all([
      shows.masks ? this.painter.paint(instances, { shrink }) : undefined,
      this.painter.paint(ghosts, { isOutline: true }),
    ]);
    if (instances !== this.instances || ghosts !== this.ghosts || isQuick !== this.isQuick) return;
    this.paint.setAttrs(turned(paint, shrink));
    this.outlines.setAttrs(turned(outlines));
    this.maskLayer.batchDraw();
  }

  drawBoxes() {
    const boxes = this.instances.flatMap((instance) => {
      const isShown = shows.boxes || instance.offered || this.isChosen(instance.object);
      return instance.box && isShown ? this.labelledBox(instance, instance.box) : [];
    });
    replaceShapes(this.boxLayer, boxes);
  }

  /**
   * @param {Instance} instance
   * @param {Box} box
   */
  labelledBox({ object, name, offered }, [x, y, width, height]) {
    const { scale } = this;
    const size = LABEL / scale;
    const line = {
      stroke: colour(object),
      strokeWidth: (this.isChosen(object) ? 3 : 1.5) / scale,
      dash: offered ? [5 / scale, 4 / scale] : undefined,
    };
    const text = { text: name, fontSize: size, fill: "#fff", stroke: "#000", strokeWidth: 3 / scale };
    const place = { x: x + size / 4, y: Math.max(0, y - size * 1.2) };
    return [
      new Konva.Rect({ x, y, width, height, ...line }),
      new Konva.Text({ ...place, ...text, fillAfterStrokeEnabled: true }),
    ];
  }
}
