// A polygon in progress, whose edges follow visible contours.
import { send } from "./server.js";
import { reasonOf, say } from "./status.js";

/** @import { Point } from "./shapes.d.ts" */

/**
 * A corner, and the way to it from the one before: promised, and as it is known.
 * @typedef {Point & { way: Promise<Point[]>, seen: Point[] }} Corner
 */

const CLOSING = 8; // pixels of the page from the first corner at which a polygon is closed

export class Polygon {
  /**
   * `onEdge()` when an edge is known.
   * @param {string} video
   * @param {() => void} onEdge
   */
  constructor(video, onEdge) {
    this.video = video;
    this.onEdge = onEdge;
    this.snaps = true;
    /** @type {Corner[]} */
    this.corners = [];
  }

  /**
   * @param {number} frame
   * @param {Point} at
   */
  add(frame, at) {
    const way = this.way(frame, this.corners.at(-1), at);
    /** @type {Corner} */
    const corner = { ...at, way, seen: [at] };
    this.corners.push(corner);
    way.then((seen) => {
      corner.seen = seen;
      this.onEdge();
    });
  }

  /** Whether a click closes it. @param {Point} at @param {number} scale */
  isClosing(at, scale) {
    const [first] = this.corners;
    return this.corners.length > 2 && Math.hypot(at.x - first.x, at.y - first.y) * scale < CLOSING;
  }

  /** All of the outline, which is closed; null of less than three corners. @param {number} frame */
  async outline(frame) {
    const { corners } = this;
    if (corners.length < 3) return null;
    const closing = this.way(frame, corners.at(-1), corners[0]);
    return (await Promise.all([...corners.map(({ way }) => way), closing])).flat();
  }

  /**
   * From a corner to the next along contours, or straight.
   * @param {number} frame
   * @param {Point | undefined} from
   * @param {Point} to
   */
  async way(frame, from, to) {
    if (!from || !this.snaps) return [to];
    const points = [from, to].map(({ x, y }) => ({ x, y }));
    try {
      const answer = await send("/api/project/edge", { video: this.video, frame, points });
      return answer.points.map(([left, top]) => ({ x: left + 0.5, y: top + 0.5 }));
    } catch (error) {
      say(`This edge is straight: ${reasonOf(error)}`);
      return [to];
    }
  }
}
