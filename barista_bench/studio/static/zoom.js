// Where a frame lies on the canvas: zoomed by wheel, pinch or keys, moved by space or middle button and drag.
import { follow } from "./elements.js";

/** @import { Point } from "./shapes.d.ts" */

const NEAREST = 8; // pixels of the page for one of the frame, at least
const STEP = 1.4;

export class Zoom {
  /**
   * @param {HTMLElement} holder of the canvas
   * @param {{ width: number, height: number }} frame in pixels
   * @param {() => void} changed
   */
  constructor(holder, frame, changed) {
    this.holder = holder;
    this.frame = frame;
    this.changed = changed;
    /** Pixels of the page for one of the frame; and with the whole frame in sight. */
    this.scale = 1;
    this.least = 1;
    /** Of the frame's corner, in pixels of the canvas. */
    this.x = 0;
    this.y = 0;
    /** Space is held down: a drag moves the frame. */
    this.isHeld = false;
    /** The last press moved or pinched the frame, and is no click. */
    this.hasMoved = false;
    /** Where fingers are. @type {Map<number, Point>} */
    this.fingers = new Map();
    /** A second finger ends the first one's stroke. */
    this.interrupted = () => {};
    holder.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    holder.addEventListener("pointerdown", (event) => this.press(event), { capture: true });
    for (const end of ["pointerup", "pointercancel"]) {
      addEventListener(end, (event) => this.fingers.delete(/** @type {PointerEvent} */ (event).pointerId));
    }
  }

  /** The size of the canvas follows the page and keeps the zoom. @param {number} scale that shows all */
  fit(scale) {
    const isWhole = this.scale <= this.least;
    this.least = scale;
    this.scale = isWhole ? scale : Math.max(scale, this.scale);
    this.move(0, 0);
  }

  /** @param {Point} at in pixels of the canvas @returns {Point} in pixels of the frame */
  toFrame({ x, y }) {
    return { x: (x - this.x) / this.scale, y: (y - this.y) / this.scale };
  }

  /**
   * The pixel under a point stays there.
   * @param {number} factor
   * @param {Point} [at] in pixels of the canvas, the middle by default
   */
  by(factor, at = this.middle()) {
    const scale = Math.min(Math.max(this.scale * factor, this.least), Math.max(NEAREST, 4 * this.least));
    const change = scale / this.scale;
    this.scale = scale;
    this.move((at.x - this.x) * (1 - change), (at.y - this.y) * (1 - change));
  }

  middle() {
    const { width, height } = this.frame;
    return { x: (width * this.least) / 2, y: (height * this.least) / 2 };
  }

  /** Moves within the picture. @param {number} dx @param {number} dy */
  move(dx, dy) {
    const { width, height } = this.frame;
    this.x = Math.min(0, Math.max(width * (this.least - this.scale), this.x + dx));
    this.y = Math.min(0, Math.max(height * (this.least - this.scale), this.y + dy));
    this.changed();
  }

  /** @param {MouseEvent} event */
  pointOf({ clientX, clientY }) {
    const { left, top } = this.holder.getBoundingClientRect();
    return { x: clientX - left, y: clientY - top };
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (event.deltaY >= 0 && this.scale <= this.least) return; // the page scrolls
    event.preventDefault();
    this.by(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), this.pointOf(event)); // a pinch has ctrl
  }

  /** @param {PointerEvent} event */
  press(event) {
    this.hasMoved = false;
    if (event.pointerType === "touch") this.fingers.set(event.pointerId, this.pointOf(event));
    const isPinch = this.fingers.size > 1;
    if (!isPinch && !this.isHeld && event.button !== 1) return;
    event.preventDefault();
    event.stopPropagation();
    this.hasMoved = true;
    if (isPinch) this.pinch(event);
    else {
      let last = this.pointOf(event);
      const drag = (/** @type {PointerEvent} */ moved) => {
        const now = this.pointOf(moved);
        this.move(now.x - last.x, now.y - last.y);
        last = now;
      };
      follow(event, drag, () => {});
    }
  }

  /** @param {PointerEvent} press of the second finger */
  pinch(press) {
    this.interrupted();
    const spread = () => {
      const [first, second] = [...this.fingers.values()];
      if (!second) return null;
      const at = { x: (first.x + second.x) / 2, y: (first.y + second.y) / 2 };
      return { at, apart: Math.hypot(first.x - second.x, first.y - second.y) };
    };
    let last = spread();
    /** @param {PointerEvent} event */
    const move = (event) => {
      if (!this.fingers.has(event.pointerId)) return;
      this.fingers.set(event.pointerId, this.pointOf(event));
      const now = spread();
      if (now && last) {
        this.move(now.at.x - last.at.x, now.at.y - last.at.y);
        this.by(now.apart / (last.apart || 1), now.at);
      }
      last = now;
    };
    const { holder } = this;
    const end = () => {
      holder.removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
    };
    holder.addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    holder.setPointerCapture(press.pointerId);
  }

  /** Space goes down; `short` is called where it comes up again and nothing was moved. @param {() => unknown} short */
  hold(short) {
    if (this.isHeld) return;
    this.isHeld = true;
    this.hasMoved = false;
    this.holder.classList.add("moving");
    /** @param {KeyboardEvent} event */
    const lift = (event) => {
      if (event.key !== " ") return;
      removeEventListener("keyup", lift);
      this.isHeld = false;
      this.holder.classList.remove("moving");
      if (!this.hasMoved) short();
    };
    addEventListener("keyup", lift);
  }

  /** @returns {import("./page.d.ts").Keys} */
  keys() {
    return {
      "+": ["zoom in (or wheel, pinch)", () => this.by(STEP)],
      "-": ["zoom out", () => this.by(1 / STEP)],
      0: ["the whole frame", () => this.by(0)],
    };
  }
}
