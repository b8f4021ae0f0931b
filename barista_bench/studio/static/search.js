// Search in statements about videos: the field, the moments found, and the search of a whole release.
import { form, node } from "./elements.js";
import { address, spanText, thumbnail } from "./graph_player.js";
import { ask } from "./server.js";
import { reasonOf, say } from "./status.js";
import { counted } from "./words.js";

/** @import { Child, View } from "./page.d.ts" */
/** @import { Row, SearchResult } from "./shapes.d.ts" */

const MOST_NEAREST = 10;
export const NEAREST = "No moment has all these words. Closest matches:";

/**
 * @param {string} text
 * @param {(text: string) => unknown} look
 */
export function searchField(text, look) {
  const field = node("input", { type: "search", value: text, placeholder: "left hand holds" });
  const label = node("label", {}, "find ", field);
  const hand = () => look(field.value);
  const element = form(
    { class: "inline", role: "search" },
    hand,
    label,
    node("button", { "data-icon": "search" }, "search"),
  );
  return { element, focus: () => field.focus() };
}

/**
 * An item for each range of each row; `link` makes what leads there.
 * @param {Row[]} rows
 * @param {(start: number, end: number, objects: string[]) => Child} link
 */
export const moments = (rows, link) =>
  rows.flatMap(({ text, objects, ranges }) =>
    ranges.map(([start, end]) => node("li", {}, link(start, end, objects), ` ${text}`)),
  );

/**
 * @param {string} video
 * @param {string} text
 * @returns {Promise<SearchResult>} with the error in place of the result
 */
async function resultOf(video, text) {
  try {
    return await ask("/api/search", { video, text });
  } catch (error) {
    return {
      rows: [{ layer: "object", text: reasonOf(error), objects: [], ranges: [[0, 1]] }],
      more: 0,
      nearest: [],
      seconds: {},
    };
  }
}

/**
 * Search in every video of the release, one after the other; the address holds the words.
 * @param {string[]} videos
 * @param {URLSearchParams} query
 * @returns {View}
 */
export function searchView(videos, query) {
  const text = query.get("text") ?? "";
  const list = node("ul", { class: "moments pictured" });
  const bar = node("progress", { max: videos.length, value: 0, "aria-label": "videos searched", hidden: true });
  const heading = node("h3", {});
  const hunt = searchField(text, (wanted) => {
    if (wanted !== text) location.hash = `#/search?${new URLSearchParams({ text: wanted })}`;
  });
  /** @param {string} video @param {SearchResult} result */
  const linkInto =
    (video, { seconds }) =>
    /**
     * @param {number} start
     * @param {number} end
     * @param {string[]} objects
     */
    (start, end, objects) => {
      const href = address(video, start, { objects: objects.join(",") });
      const when = spanText(seconds[start], seconds[end], start, end);
      return node("a", { href }, thumbnail(video, start, ""), node("span", {}, `${video}, ${when}`));
    };
  const look = async () => {
    bar.hidden = false;
    /** @type {HTMLElement[]} */
    let nearest = [];
    for (const [number, video] of videos.entries()) {
      const result = await resultOf(video, text);
      if (!list.isConnected) return;
      list.append(...moments(result.rows, linkInto(video, result)));
      nearest = [...nearest, ...moments(result.nearest, linkInto(video, result))].slice(0, MOST_NEAREST);
      bar.value = number + 1;
      say(`${counted(list.children.length, "moment")} in ${number + 1} of ${counted(videos.length, "video")}`);
    }
    bar.hidden = true;
    const found = list.children.length;
    heading.textContent = found ? counted(found, "moment") : NEAREST;
    if (!found) list.append(...nearest);
  };
  return {
    elements: [node("h2", {}, "Search all videos"), hunt.element, bar, heading, list],
    onShown: () => (text ? look() : hunt.focus()),
  };
}
