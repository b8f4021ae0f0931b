// The next step of an annotator.
import { button, node } from "./elements.js";

/** @import { AnnotateView } from "./annotate.js" */

const FIRST =
  "First mark when hands touch things: drag over each stretch on the timeline (or add it under Statements).";

/**
 * @param {string} text
 * @param {() => unknown} action
 */
const primary = (text, action) => button(text, action, { class: "primary", "data-icon": "arrow-right" });

/**
 * @param {AnnotateView} view
 * @returns {Node[]}
 */
export function nextStep(view) {
  const { work, player } = view;
  const { project, running } = work;
  const keyframe = view.nextKeyframe();
  const doubts = view.doubts();
  if (running) return [node("progress", { "aria-label": "work in the background" }), node("span", {}, running)];
  if (project.can_run) return [primary("Run due stages", () => work.run())];
  if (!project.contacts && !project.asked.length && !project.accepted.length) return [node("span", {}, FIRST)];
  if (keyframe !== null) {
    const missing = node("span", {}, `missing: ${project.missing}`);
    return [primary(`Next keyframe: ${keyframe}`, () => player.go(keyframe)), missing];
  }
  if (doubts.length) {
    const left = doubts.length === 1 ? "1 doubtful frame is left" : `${doubts.length} doubtful frames are left`;
    return [primary(`Check frame ${doubts[0].frame}`, () => view.doubtful()), node("span", {}, left)];
  }
  return [node("span", {}, "Ready to export: "), node("code", {}, project.export)];
}
