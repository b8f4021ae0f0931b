// Which annotations of a video would let the most questions be asked, as `generate` counted.
import { button, countedList, node } from "./elements.js";
import { ask } from "./server.js";
import { counted } from "./words.js";

/** @import { Child } from "./page.d.ts" */
/** @import { Player } from "./player.js" */

const MOST_FRAMES = 8;

/**
 * @param {Player} player
 * @returns {Promise<Child[]>}
 */
export async function missingAnnotations(player) {
  const { is_known: isKnown, annotations } = await ask("/api/missing", { video: player.video });
  if (!isKnown) {
    const how =
      "Generate questions and open their folder: this page then lists annotations that would give more questions.";
    return [node("p", { class: "note" }, how)];
  }
  const rows = annotations.map(({ work, frames, items, subtasks }) => {
    const jumps = frames.slice(0, MOST_FRAMES).map((frame) => button(`frame ${frame}`, () => player.go(frame)));
    const more = frames.length > MOST_FRAMES ? `and ${frames.length - MOST_FRAMES} more` : "";
    const of = Object.entries(subtasks).map(([name, count]) => `${count}\u00a0×\u00a0${name}`);
    return [
      node("strong", {}, work),
      `: up to ${counted(items, "more question")}`,
      node("p", { class: "controls" }, ...jumps, node("span", {}, more)),
      node("p", { class: "note" }, of.join(", ")),
    ];
  });
  return countedList("Annotations that would give the most questions", rows);
}
