// Rows of ranges below a video: what holds when. A click goes there.
import { button, follow, node } from "./page.js";
import { colour } from "./masks.js";

const LAYERS = { touch: "When hands touch things", keyframe: "Keyframes", activity: "Activities", step: "Process steps", contact: "Hands", relation: "Relations", attribute: "Attributes", object: "Objects in view" };
const OPEN = ["touch", "keyframe", "activity", "step", "contact"];

/** Rows of one layer on one line where none overlaps the other: activities, steps. */
function joined(rows) {
  const lanes = [];
  for (const row of rows.flatMap(({ ranges, ...rest }) => ranges.map((range) => ({ ...rest, range }))).sort((a, b) => a.range[0] - b.range[0])) {
    const lane = lanes.find((bars) => bars.at(-1).range[1] <= row.range[0]);
    if (lane) lane.push(row);
    else lanes.push([row]);
  }
  return lanes;
}

/**
 * `edit(row, range, changed)`: a bar of an `editable` row was dragged by an end or as a whole, or is to go (null).
 * `take(row, range)`: a bar of an `offered` row was clicked. `make(range)`: a range was dragged in a row that `grows`.
 */
export class Timeline {
  constructor(player, rows, { edit, take, make } = {}) {
    Object.assign(this, { player, edit, take, make });
    this.closed = new Set(Object.keys(LAYERS).filter((layer) => !OPEN.includes(layer)));
    this.element = node("div", { class: "timeline" });
    this.cursor = node("div", { class: "cursor" });
    player.on("frame", () => this.move());
    player.on("pick", () => this.fill());
    this.set(rows);
  }

  set(rows) {
    this.rows = rows;
    this.fill();
  }

  /** All layers; with objects chosen in the picture only what is said of them. */
  fill() {
    if (this.held) {
      this.isLate = true; // what is being dragged stays
      return;
    }
    const { selected } = this.player;
    const shown = selected.size ? this.rows.filter(({ objects }) => !objects.length || objects.some((id) => selected.has(id))) : this.rows;
    const parts = Object.keys(LAYERS).flatMap((layer) => {
      const rows = shown.filter((row) => row.layer === layer);
      if (!rows.length) return [];
      const isOpen = !this.closed.has(layer) || selected.size > 0;
      const head = button(`${LAYERS[layer]} (${rows.length})`, () => {
        if (!this.closed.delete(layer)) this.closed.add(layer);
        this.fill();
      }, { class: "fold", "aria-expanded": String(isOpen) });
      return [head, ...(isOpen ? this.lines(layer, rows) : [])];
    });
    this.element.replaceChildren(node("div", { class: "lanes" }, ...parts, this.cursor));
    this.move();
  }

  lines(layer, rows) {
    if (layer === "activity" || layer === "step") {
      return joined(rows).map((bars) => this.line(bars[0], "", bars.map((row) => this.bar(row, row.range, row.text))));
    }
    return rows.map((row) => this.line(row, row.text, row.ranges.map((range) => this.bar(row, range, ""))));
  }

  line(row, label, bars) {
    const frameAt = (event) => Math.max(0, Math.min(this.player.count, Math.floor(((event.clientX - lane.getBoundingClientRect().left) / lane.clientWidth) * this.player.count)));
    const lane = node("div", { class: "lane", click: (event) => {
      if (event.target === lane) this.player.go(frameAt(event));
    } }, ...bars);
    if (row.grows) lane.addEventListener("pointerdown", (press) => {
      if (press.target === lane) this.drag(press, () => {}, (event) => {
        const [start, end] = [frameAt(press), frameAt(event)].sort((a, b) => a - b);
        if (end > start) this.make([start, end]);
      });
    });
    return node("div", { class: "line" }, node("span", { class: "label", title: label }, label), lane);
  }

  bar(row, range, text) {
    const [start, end] = range;
    const { count } = this.player;
    const seconds = (frame) => this.player.times[Math.min(frame, count - 1)].toFixed(1);
    const hint = row.editable ? "; drag, or [ and ] for this frame as its start or end, Delete" : row.offered ? "; click to accept" : "";
    const title = `${row.text}: ${seconds(start)} to ${seconds(end)} s, frames ${start} to ${end - 1}${hint}`;
    const made = button(text, () => {
      if (made.dataset.dragged) delete made.dataset.dragged;
      else if (row.offered) this.take(row, range);
      else {
        this.player.go(start);
        if (row.objects.length) this.player.pick(row.objects);
      }
    }, { class: row.offered ? "bar offered" : "bar", title, "aria-label": title, keydown: (event) => {
      const changed = { "[": [this.player.frame, end], "]": [start, this.player.frame + 1], Delete: null }[event.key];
      if (!row.editable || changed === undefined) return;
      event.stopPropagation();
      if (!changed || changed[0] < changed[1]) this.edit(row, range, changed);
    } });
    const layOut = ([from, to]) => {
      made.style.left = `${(100 * from) / count}%`;
      made.style.width = `${(100 * (to - from)) / count}%`;
    };
    layOut(range);
    if (row.objects[0]) made.style.background = colour(row.objects.at(-1), 0.55);
    if (row.editable) this.draggable(made, row, range, layOut);
    return made;
  }

  draggable(made, row, range, layOut) {
    made.addEventListener("pointerdown", (press) => {
      const { left, width } = made.getBoundingClientRect();
      const edge = Math.min(8, width / 3);
      const held = press.clientX - left < edge ? [1, 0] : left + width - press.clientX < edge ? [0, 1] : [1, 1];
      const across = made.parentElement.clientWidth;
      let changed = range;
      this.drag(press, (event) => {
        const by = Math.round(((event.clientX - press.clientX) / across) * this.player.count);
        const start = Math.max(0, range[0] + by * held[0]);
        const end = Math.min(this.player.count, range[1] + by * held[1]);
        if (start < end) layOut(changed = [start, end]);
        if (by) made.dataset.dragged = "";
      }, () => {
        if (changed[0] !== range[0] || changed[1] !== range[1]) this.edit(row, range, changed);
      });
    });
  }

  /** Follow a drag; what is to be shown meanwhile waits for its end. */
  drag(press, move, end) {
    this.held = true;
    follow(press, move, (event) => {
      this.held = false;
      if (this.isLate) setTimeout(() => this.fill());
      this.isLate = false;
      end(event);
    });
  }

  move() {
    const { frame, count } = this.player;
    this.cursor.style.setProperty("--at", Math.max(0, frame + 0.5) / count);
  }
}
