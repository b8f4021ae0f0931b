// The edits of identities; each can be undone.
import { button, countedList, node } from "./elements.js";
import { say } from "./status.js";

/** @import { Annotation } from "./annotation.js" */
/** @import { Edit } from "./shapes.d.ts" */

/** @param {Annotation} work */
export function editPanel(work) {
  const { edits } = work.project;
  const undone = new Set(edits.map(({ edit }) => (edit.edit === "undo" ? edit.line : null)));
  /** @param {Edit} edit */
  const textOf = ({ edit, ...rest }) => {
    const values = Object.values(rest).flat();
    return `${edit}: ${values.map((value) => work.names.get(String(value)) ?? value).join(", ")}`;
  };
  const items = edits.map(({ by, edit }, at) => {
    const line = at + 1;
    const undo = async () => {
      await work.handIn({ edits: [{ edit: "undo", line }] }, `undo of edit ${line}`);
      say(`undone: edit ${line}`);
    };
    return [
      `${line}. ${textOf(edit)} (${by}) `,
      undone.has(line)
        ? node("small", {}, "undone")
        : button("undo", undo, { "aria-label": `undo edit ${line}`, "data-icon": "undo-2" }),
    ];
  });
  const undoLast = button("undo the last change on this page (u)", () => work.undo(), { "data-icon": "undo-2" });
  const again = button("redo (U)", () => work.redo(), { "data-icon": "redo-2" });
  return [
    node("p", {}, undoLast, " ", again),
    ...countedList("Edits of identities", items, "No edits yet. Choose an object to merge, split or rename it."),
  ];
}
