// Pictures to draw answers on.
import { button, follow, node, svgNode } from "./elements.js";
import { say } from "./status.js";
/** @import { Child } from "./page.d.ts" */

// A place on a picture, or its size, in its pixels.
/** @typedef {[x: number, y: number]} Spot */
/** @typedef {{ width: number, height: number }} Size */

/**
 * A field that can be drawn. `outline(points)` is the shape that a drag gives, `take` fills the field with it.
 * @typedef {object} Drawable
 * @property {() => unknown} read
 * @property {() => boolean} isEmpty
 * @property {(points: Spot[]) => Spot[]} outline
 * @property {(picture: number, outline: Spot[], size: Size) => void} take
 */

/**
 * The field on the page; `mark` is the drawing for it.
 * @typedef {Drawable & { element: HTMLElement, drawing: HTMLButtonElement, mark: SVGElement | null }} Target
 */

/** @typedef {{ image: HTMLImageElement, layer: SVGSVGElement, element: HTMLElement }} Sheet */

/**
 * A drag fills the chosen field; then the next empty one is chosen. `scale` is the length of a full side of a picture
 * in boxes.
 */
export class Sheets {
  /**
   * @param {string[]} sources
   * @param {number} scale
   */
  constructor(sources, scale) {
    this.scale = scale;
    /** @type {Target | null} */
    this.target = null;
    /** @type {Target[]} */
    this.fields = [];
    /** @type {Sheet[]} */
    this.sheets = sources.map((src, number) => {
      const image = node("img", { src, alt: `picture ${number + 1}`, draggable: "false" });
      const layer = svgNode("svg", { class: "layer", "aria-hidden": "true" });
      /** @param {PointerEvent} press */
      const pointerdown = (press) => this.drag(number, press);
      return { image, layer, element: node("div", { class: "sheet", pointerdown }, image, layer) };
    });
  }

  /** Resolves when all pictures are there to be seen. */
  async ready() {
    for (const { image, layer } of this.sheets) {
      await image.decode();
      layer.setAttribute("viewBox", `0 0 ${image.naturalWidth} ${image.naturalHeight}`);
    }
  }

  /**
   * @param {number} number of the picture
   * @param {PointerEvent} press
   */
  drag(number, press) {
    const { target } = this;
    if (!target) {
      say("first add an entry for the drawing");
      return;
    }
    press.preventDefault();
    const { element, layer, image } = this.sheets[number];
    const size = { width: image.naturalWidth, height: image.naturalHeight };
    /** @type {Spot[]} */
    const points = [];
    target.mark?.remove();
    const mark = svgNode("polygon", { class: "drawn" });
    target.mark = mark;
    layer.append(mark);
    /** @param {PointerEvent} event */
    const move = (event) => {
      points.push(spotOf(event, element, size));
      mark.setAttribute(
        "points",
        target
          .outline(points)
          .map((point) => point.join(","))
          .join(" "),
      );
    };
    move(press);
    follow(press, move, () => {
      if (points.length < 3) return;
      target.take(number, target.outline(points), size);
      this.aim();
    });
  }

  /**
   * By default at the first field that is empty; those that were taken off the page take their marks along.
   * @param {Target | null} target
   */
  aim(target = null) {
    /** @param {Target} field */
    const isShown = ({ element }) => element.isConnected;
    for (const gone of this.fields.filter((field) => !isShown(field))) gone.mark?.remove();
    this.target = target ?? this.fields.find((field) => isShown(field) && field.isEmpty()) ?? null;
    for (const field of this.fields) field.drawing.setAttribute("aria-pressed", String(field === this.target));
  }

  /**
   * A field that can be drawn with its inputs and a button to draw it.
   * @param {Drawable} drawable
   * @param {Child[]} inputs
   */
  join(drawable, ...inputs) {
    const aim = () => {
      this.aim(target);
      say("drag over the picture");
    };
    const drawing = button("draw", aim, { "data-icon": "pencil" });
    const element = node("span", { class: "inline" }, ...inputs, drawing);
    /** @type {Target} */
    const target = { ...drawable, element, drawing, mark: null };
    this.fields.push(target);
    return target;
  }
}

/**
 * Where a pointer is on a picture, at its edge if outside.
 * @param {PointerEvent} event
 * @param {HTMLElement} element
 * @param {Size} size
 * @returns {Spot}
 */
function spotOf({ clientX, clientY }, element, size) {
  const { left, top, width, height } = element.getBoundingClientRect();
  /**
   * @param {number} share
   * @param {number} most
   */
  const within = (share, most) => Math.max(0, Math.min(most, share * most));
  return [within((clientX - left) / width, size.width), within((clientY - top) / height, size.height)];
}
