// A frame and what is drawn over it: masks, boxes, and whatever a person is drawing.
import { node } from "./elements.js";
import { colour, painted } from "./masks.js";

/** @import { Box, Footage, Instance } from "./shapes.d.ts" */

const MOST_ACROSS = 960; // pixels; the page scales the frame down
const MOST_OF_WINDOW = 0.62;
const LABEL = 13; // pixels of the page

/** What is drawn over every video, as the person last chose it. */
export const shows = { masks: true, boxes: false };

export const withoutMasks = () => {
  shows.masks = false;
};

export class FrameCanvas {
  /**
   * @param {Footage} facts
   * @param {(object: string) => boolean} isChosen
   */
  constructor({ width, height }, isChosen) {
    this.size = { width, height };
    this.isChosen = isChosen;
    this.scale = 1;
    this.isDrawing = false;
    /** @type {Instance[]} */
    this.instances = [];
    /** @type {(x: number, y: number) => number} */
    this.instanceAt = () => -1;
    this.holder = node("div", { class: "picture", role: "img", "aria-label": "video frame" });
    this.stage = new Konva.Stage({ container: this.holder, width, height });
    const layer = () => new Konva.Layer({ listening: false });
    this.pictureLayer = layer();
    this.maskLayer = layer();
    this.boxLayer = layer();
    this.drawLayer = layer();
    this.stage.add(this.pictureLayer, this.maskLayer, this.boxLayer, this.drawLayer);
    this.picture = new Konva.Image({ width, height, image: undefined });
    this.paint = new Konva.Image({ width, height, image: undefined });
    this.pictureLayer.add(this.picture);
    this.maskLayer.add(this.paint);
  }

  /** As wide as the page leaves room for. @param {number} room in pixels */
  fit(room) {
    const { width, height } = this.size;
    const scale = Math.min(Math.min(room, MOST_ACROSS) / width, (innerHeight * MOST_OF_WINDOW) / height);
    if (!scale) return;
    this.scale = scale;
    this.stage.size({ width: width * scale, height: height * scale });
    for (const layer of this.stage.getLayers()) layer.scale({ x: scale, y: scale });
  }

  /** The pointer in pixels of the frame. */
  pointer() {
    const { x, y } = this.stage.getPointerPosition() ?? { x: 0, y: 0 };
    return { x: x / this.scale, y: y / this.scale };
  }

  /**
   * Calls `clicked` with the object below a click, null for none, unless something is being drawn.
   * @param {(object: string | null) => void} clicked
   */
  onClick(clicked) {
    this.stage.on("click tap", (event) => {
      if (this.isDrawing || event.target !== this.stage) return;
      const { x, y } = this.pointer();
      clicked(this.instances[this.instanceAt(x, y)]?.object ?? null);
    });
  }

  /**
   * @param {number} frame
   * @param {CanvasImageSource} picture
   * @param {Instance[]} instances
   */
  show(frame, picture, instances) {
    this.instances = instances;
    this.picture.image(picture);
    this.pictureLayer.draw();
    this.redraw();
    const names = instances.map(({ name }) => name).join(", ") || "no objects";
    this.holder.setAttribute("aria-label", `frame ${frame}: ${names}`);
  }

  /** Draws masks and boxes again. */
  redraw() {
    const { canvas, at } = painted(shows.masks ? this.instances : [], this.isChosen);
    this.instanceAt = at;
    this.paint.image(canvas);
    this.maskLayer.batchDraw();
    this.boxLayer.destroyChildren();
    for (const instance of this.instances) {
      const isShown = shows.boxes || instance.offered || this.isChosen(instance.object);
      if (instance.box && isShown) this.boxLayer.add(...this.labelledBox(instance, instance.box));
    }
    this.boxLayer.batchDraw();
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
