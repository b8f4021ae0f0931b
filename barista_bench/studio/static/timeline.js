// Rows of ranges below a video: what holds when. A click goes there.
import { button, follow, node } from "./elements.js";
import { colour } from "./masks.js";

/** @import { FrameRange, LayerName, Row } from "./shapes.d.ts" */
/** @import { Player } from "./player.js" */

/**
 * `edit(row, range, changed)`: a bar of an `editable` row was dragged by an end or as a whole, or is to go (null).
 * `take(row, range)`: a bar of an `offered` row was clicked. `make(range)`: a range was dragged in a row that `grows`.
 * @typedef {object} Editing
 * @property {(row: Row, range: FrameRange, changed: FrameRange | null) => unknown} edit
 * @property {(row: Row, range: FrameRange) => unknown} take
 * @property {(range: FrameRange) => unknown} make
 */

/** @type {Record<LayerName, string>} */
const LAYERS = {
  touch: "When hands touch things",
  keyframe: "Keyframes",
  activity: "Activities",
  step: "Process steps",
  contact: "Hands",
  relation: "Relations",
  attribute: "Attributes",
  object: "Objects in view",
};
const LAYER_NAMES = /** @type {LayerName[]} */ (Object.keys(LAYERS));
const OPEN = ["touch", "keyframe", "activity", "step", "contact"];
const EDGE = 8; // pixels of a bar by which its end is dragged

/**
 * Rows of one layer on one line where none overlaps the other: activities, steps.
 * @param {Row[]} rows
 */
function lanesOf(rows) {
  const bars = rows.flatMap((row) => row.ranges.map((range) => ({ row, range })));
  /** @type {(typeof bars)[]} */
  const lanes = [];
  for (const bar of bars.sort((a, b) => a.range[0] - b.range[0])) {
    const lane = lanes.find((placed) => placed[placed.length - 1].range[1] <= bar.range[0]);
    if (lane) lane.push(bar);
    else lanes.push([bar]);
  }
  return lanes;
}

export class Timeline {
  /**
   * @param {Player} player
   * @param {Row[]} rows
   * @param {Editing} [editing]
   */
  constructor(player, rows, editing) {
    this.player = player;
    this.editing = editing;
    this.rows = rows;
    this.closed = new Set(LAYER_NAMES.filter((layer) => !OPEN.includes(layer)));
    /** A drag is in progress; the next content waits for its end. */
    this.isHeld = false;
    this.isLate = false;
    this.element = node("div", { class: "timeline" });
    this.cursor = node("div", { class: "cursor" });
    player.onFrame(() => this.move());
    player.onPick(() => this.fill());
    this.fill();
  }

  /** @param {Row[]} rows */
  set(rows) {
    this.rows = rows;
    this.fill();
  }

  /** All layers; with objects chosen in the picture only statements about them. */
  fill() {
    if (this.isHeld) {
      this.isLate = true;
      return;
    }
    const { selected } = this.player;
    /** @param {Row} row */
    const isShown = ({ objects }) => !selected.size || !objects.length || objects.some((id) => selected.has(id));
    const rows = this.rows.filter(isShown);
    const parts = LAYER_NAMES.flatMap((layer) =>
      this.layer(
        layer,
        rows.filter((row) => row.layer === layer),
      ),
    );
    this.element.replaceChildren(node("div", { class: "lanes" }, ...parts, this.cursor));
    this.move();
  }

  /**
   * @param {LayerName} layer
   * @param {Row[]} rows
   */
  layer(layer, rows) {
    if (!rows.length) return [];
    const isOpen = !this.closed.has(layer) || this.player.selected.size > 0;
    const fold = () => {
      if (!this.closed.delete(layer)) this.closed.add(layer);
      this.fill();
    };
    const title = `${LAYERS[layer]} (${rows.length})`;
    const head = button(title, fold, {
      class: "fold",
      "aria-expanded": String(isOpen),
      "data-icon": isOpen ? "chevron-down" : "chevron-right",
    });
    return [head, ...(isOpen ? this.lines(layer, rows) : [])];
  }

  /**
   * @param {LayerName} layer
   * @param {Row[]} rows
   */
  lines(layer, rows) {
    if (layer === "activity" || layer === "step") {
      return lanesOf(rows).map((bars) =>
        this.line(
          bars[0].row,
          "",
          bars.map(({ row, range }) => this.bar(row, range, row.text)),
        ),
      );
    }
    return rows.map((row) =>
      this.line(
        row,
        row.text,
        row.ranges.map((range) => this.bar(row, range, "")),
      ),
    );
  }

  /**
   * @param {Row} row
   * @param {string} label
   * @param {HTMLElement[]} bars
   */
  line(row, label, bars) {
    const { count } = this.player;
    /** @param {MouseEvent} event */
    const frameAt = ({ clientX }) => {
      const share = (clientX - lane.getBoundingClientRect().left) / lane.clientWidth;
      return Math.max(0, Math.min(count, Math.floor(share * count)));
    };
    /** @param {MouseEvent} event */
    const click = (event) => {
      if (event.target === lane) this.player.go(frameAt(event));
    };
    /** @param {PointerEvent} press */
    const grow = (press) => {
      if (press.target !== lane) return;
      const ignore = () => {};
      this.drag(press, ignore, (event) => {
        const [start, end] = [frameAt(press), frameAt(event)].sort((a, b) => a - b);
        if (end > start) this.editing?.make([start, end]);
      });
    };
    /** @type {HTMLElement} */
    const lane = node("div", { class: "lane", click }, ...bars);
    if (row.grows) lane.addEventListener("pointerdown", grow);
    return node("div", { class: "line" }, node("span", { class: "label", title: label }, label), lane);
  }

  /**
   * @param {Row} row
   * @param {FrameRange} range
   * @param {string} text
   */
  bar(row, range, text) {
    const [start] = range;
    const click = () => {
      if (bar.dataset.dragged !== undefined) delete bar.dataset.dragged;
      else if (row.offered) this.editing?.take(row, range);
      else {
        this.player.go(start);
        if (row.objects.length) this.player.pick(row.objects);
      }
    };
    const title = this.titleOf(row, range);
    /** @param {KeyboardEvent} event */
    const keydown = (event) => this.editByKey(event, row, range);
    const look = { class: row.offered ? "bar offered" : "bar", title, "aria-label": title, keydown };
    /** @type {HTMLElement} */
    const bar = button(text, click, look);
    this.layOut(bar, range);
    const last = row.objects.at(-1);
    if (last) bar.style.background = colour(last, 0.55);
    if (row.editable) bar.addEventListener("pointerdown", (press) => this.dragBar(press, bar, row, range));
    return bar;
  }

  /**
   * @param {Row} row
   * @param {FrameRange} range
   */
  titleOf({ text, editable, offered }, [start, end]) {
    const { times, count } = this.player;
    /** @param {number} frame */
    const seconds = (frame) => times[Math.min(frame, count - 1)].toFixed(1);
    const when = `${seconds(start)} to ${seconds(end)} s, frames ${start} to ${end - 1}`;
    const editing = "; drag, or [ and ] for this frame as its start or end, Delete";
    const hint = editable ? editing : offered ? "; click to accept" : "";
    return `${text}: ${when}${hint}`;
  }

  /**
   * @param {KeyboardEvent} event
   * @param {Row} row
   * @param {FrameRange} range
   */
  editByKey(event, row, range) {
    const { frame } = this.player;
    /** @type {Record<string, FrameRange | null>} */
    const changes = { "[": [frame, range[1]], "]": [range[0], frame + 1], Delete: null };
    const changed = changes[event.key];
    if (!row.editable || changed === undefined) return;
    event.stopPropagation();
    if (!changed || changed[0] < changed[1]) this.editing?.edit(row, range, changed);
  }

  /**
   * @param {HTMLElement} bar
   * @param {FrameRange} range
   */
  layOut(bar, [start, end]) {
    const { count } = this.player;
    bar.style.left = `${(100 * start) / count}%`;
    bar.style.width = `${(100 * (end - start)) / count}%`;
  }

  /**
   * By an end, or as a whole.
   * @param {PointerEvent} press
   * @param {HTMLElement} bar
   * @param {Row} row
   * @param {FrameRange} range
   */
  dragBar(press, bar, row, range) {
    const { count } = this.player;
    const { left, width } = bar.getBoundingClientRect();
    const edge = Math.min(EDGE, width / 3);
    const movesStart = press.clientX - left < edge || left + width - press.clientX >= edge;
    const movesEnd = press.clientX - left >= edge;
    const across = bar.parentElement?.clientWidth ?? 1;
    let changed = range;
    /** @param {PointerEvent} event */
    const move = (event) => {
      const by = Math.round(((event.clientX - press.clientX) / across) * count);
      const start = Math.max(0, range[0] + (movesStart ? by : 0));
      const end = Math.min(count, range[1] + (movesEnd ? by : 0));
      if (start < end) {
        changed = [start, end];
        this.layOut(bar, changed);
      }
      if (by) bar.dataset.dragged = "";
    };
    this.drag(press, move, () => {
      if (changed[0] !== range[0] || changed[1] !== range[1]) this.editing?.edit(row, range, changed);
    });
  }

  /**
   * @param {PointerEvent} press
   * @param {(event: PointerEvent) => void} move
   * @param {(event: PointerEvent) => void} end
   */
  drag(press, move, end) {
    this.isHeld = true;
    follow(press, move, (event) => {
      this.isHeld = false;
      if (this.isLate) setTimeout(() => this.fill());
      this.isLate = false;
      end(event);
    });
  }

  move() {
    const { frame, count } = this.player;
    this.cursor.style.setProperty("--at", String(Math.max(0, frame + 0.5) / count));
  }
}
