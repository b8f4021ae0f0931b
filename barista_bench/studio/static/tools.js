// The tools to draw with: a button and a key each.
import { button } from "./elements.js";

/** @type {Record<string, [key: string, icon: string]>} */
export const TOOLS = {
  select: ["v", "mouse-pointer"],
  box: ["b", "square-dashed"],
  points: ["c", "mouse-pointer-click"],
  polygon: ["g", "pentagon"],
  brush: ["r", "brush"],
  eraser: ["e", "eraser"],
};

/**
 * The button of each tool, by its name.
 * @param {boolean} hasSegmenter
 * @param {(name: string) => void} choose
 */
export function toolButtons(hasSegmenter, choose) {
  const names = Object.keys(TOOLS).filter((name) => hasSegmenter || name !== "points");
  return new Map(
    names.map((name) => {
      const [key, icon] = TOOLS[name];
      return [name, button(name, () => choose(name), { title: `${name} (${key})`, "data-icon": icon })];
    }),
  );
}
