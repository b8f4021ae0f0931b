// A domain file proposed from the graphs' words: each proposal with its count and pictures, to be finished by a person.
import { sectionsOf, titleOf } from "./draft_sections.js";
import { button, form, node } from "./elements.js";
import { address, thumbnail } from "./graph_player.js";
import { ask, send, waitUntilDone } from "./server.js";
import { reasonOf, say } from "./status.js";
import { counted } from "./words.js";

/** @import { View } from "./page.d.ts" */
/** @import { DraftLine } from "./draft_shapes.d.ts" */
/** @import { Section } from "./draft_sections.js" */

/** @returns {View} */
export function draftView() {
  const state = node("p", {}, "reading the words of all videos ... ", node("progress", { "aria-label": "reading" }));
  const content = node("div", {}, state);
  const onShown = async () => {
    await waitUntilDone(
      () => ask("/api/draft"),
      () => {},
      state,
    );
    const { path, lines } = await ask("/api/draft");
    content.replaceChildren(editorOf(path, lines));
    say(counted(lines.filter(({ note }) => note).length, "proposal"));
  };
  return { elements: [node("h2", {}, "Words of the domain"), content], onShown };
}

/**
 * @param {string} path
 * @param {DraftLine[]} lines
 */
function editorOf(path, lines) {
  const rows = node("div", { class: "draft" }, ...sectionsOf(lines).map(sectionElement));
  const problem = node("p", { class: "alert", role: "alert", hidden: true });
  const keep = async () => {
    problem.hidden = true;
    const fields = /** @type {NodeListOf<HTMLInputElement>} */ (
      rows.querySelectorAll("li:not(.left-out) input.draft-line")
    );
    const kept = [...fields].map(({ value, dataset }) => (dataset.note ? `${value}  # ${dataset.note}` : value));
    try {
      await send("/api/draft/keep", { lines: kept });
      say(`kept in ${path}`);
    } catch (error) {
      problem.textContent = reasonOf(error);
      problem.hidden = false;
    }
  };
  const how =
    "Each proposal shows how often it was found. Correct it, leave it out, or add a line below it; " +
    "other meanings of a word need a person.";
  const use = `barista-bench generate --domain ${path}`;
  return form(
    {},
    keep,
    node("p", {}, how),
    node(
      "div",
      { class: "inline draft-keep" },
      node("button", {}, "keep"),
      node("span", {}, "writes the file for ", node("code", {}, use)),
    ),
    problem,
    rows,
  );
}

/** @param {Section} section */
function sectionElement(section) {
  const { title, about } = titleOf(section);
  const proposals = section.lines.filter(({ note }) => note).length;
  const count = proposals ? node("small", {}, ` ${counted(proposals, "proposal")}`) : null;
  return node(
    "section",
    { "aria-label": title },
    node("h3", {}, title, count),
    about ? node("p", { class: "note" }, about) : null,
    node("ol", {}, ...section.lines.map(rowOf)),
  );
}

const COMMENT = /^\s*#/;
const ONLY_KEY = /:\s*$/;

/**
 * A line with a field to correct; a line that only opens a list is plain text, and a comment is above the section.
 * @param {DraftLine} line
 */
function rowOf({ text, note, count, places }) {
  const isFixed = !note && (COMMENT.test(text) || ONLY_KEY.test(text));
  const look = isFixed ? { type: "hidden" } : { "aria-label": "line", spellcheck: false };
  const field = node("input", { class: "draft-line", value: text, ...look });
  if (note) field.dataset.note = note;
  const key = isFixed ? node("code", {}, text) : null;
  const row = node("li", { class: note ? "proposed" : "", hidden: COMMENT.test(text) }, field, key);
  row.append(
    button("add below", () => row.after(rowOf({ text: `${indentOf(field.value)}`, note: "", count: 0, places: [] }))),
  );
  if (!note) return row;
  const leaveOut = button(
    "leave out",
    () => {
      const isLeft = row.classList.toggle("left-out");
      leaveOut.setAttribute("aria-pressed", String(isLeft));
    },
    { "aria-pressed": "false" },
  );
  row.append(leaveOut, node("span", { class: "count" }, `${count} ×`), ...places.map(pictureOf));
  return row;
}

/** The indentation of a line below `text`. @param {string} text */
function indentOf(text) {
  const [blanks] = /^ */.exec(text) ?? [""];
  return text.trimEnd().endsWith(":") ? `${blanks}  ` : blanks;
}

/** @param {DraftLine["places"][number]} place */
function pictureOf({ video_id: video, frame, text, objects, boxes }) {
  return node(
    "a",
    { href: address(video, frame, { objects: objects.join(",") }), class: "place" },
    thumbnail(video, frame, text),
    ...boxes.map(markOf),
  );
}

/** @param {DraftLine["places"][number]["boxes"][number]} box */
function markOf([x, y, width, height]) {
  const mark = node("span", { class: "mark" });
  const percent = (/** @type {number} */ part) => `${100 * part}%`;
  Object.assign(mark.style, { left: percent(x), top: percent(y), width: percent(width), height: percent(height) });
  return mark;
}
