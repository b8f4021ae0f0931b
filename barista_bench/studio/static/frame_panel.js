// The masks and suggestions of a frame, and which object the chosen mask is of.
import { askPerson } from "./dialog.js";
import { button, countedList, node } from "./elements.js";
import { colour } from "./masks.js";
import { boxOf } from "./run_lengths.js";
import { explained } from "./status.js";
/** @import { AnnotateView } from "./annotate.js" */
/** @import { Annotation } from "./annotation.js" */
/** @import { Child } from "./page.d.ts" */
/** @import { StandingMask, Suggestion } from "./shapes.d.ts" */

/**
 * @param {AnnotateView} view
 * @returns {Promise<Child[]>}
 */
export async function framePanel(view) {
  const { work, frame } = view;
  if (frame < 0) return [];
  const marks = [...(await work.marks(frame)).values()];
  const { suggestions } = await work.frameOf(frame);
  const chosen = await view.chosen();
  const ids = new Set(marks.map(({ id }) => id));
  return [
    stateOf(view),
    ...(chosen ? identityOf(work, frame, chosen, ids) : []),
    ...countedList(
      "Objects",
      marks.map((mark) => objectItem(view, mark)),
      "No masks here. Press o, name a new object, press Enter, and draw a box around it.",
    ),
    ...countedList(
      "Suggestions",
      suggestions.map((suggestion) => suggestionItem(view, suggestion)),
      "None for this frame. Press p to copy the masks of the previous annotated frame.",
    ),
  ];
}

/** The kind of the frame, and its draft. @param {AnnotateView} view */
function stateOf(view) {
  const { work, frame } = view;
  const isWhole = work.whole.has(frame);
  const isDrawn = work.drafts.has(frame);
  const state = isWhole
    ? "a keyframe: draw everything visible"
    : "between keyframes: a mask drawn here is propagated from here";
  const title = isWhole ? `Accept keyframe ${frame}` : `Accept correction of frame ${frame}`;
  const accept = () => acceptFrame(view);
  const discard = () => work.discard(frame);
  return node(
    "p",
    {},
    `Frame ${frame}, ${state}. `,
    isWhole || isDrawn ? button(title, accept, { class: isDrawn ? "primary" : "", "data-icon": "check" }) : null,
    " ",
    isDrawn ? button("discard draft", discard, { "data-icon": "trash-2" }) : null,
  );
}

/** @param {AnnotateView} view */
export async function acceptFrame(view) {
  await view.drawing.busy;
  const { frame, work } = view;
  if (!(await isDrawnOrEmpty(work, frame))) return;
  const isKeyframe = work.project.asked.includes(frame);
  await work.acceptFrame(frame);
  const next = view.nextKeyframe();
  if (isKeyframe && next !== null && view.frame === frame) await view.player.go(next);
}

/**
 * A frame that is to be annotated whole has a mask, or the person says that it is empty.
 * @param {Annotation} work
 * @param {number} frame
 */
async function isDrawnOrEmpty(work, frame) {
  const marks = await work.marks(frame);
  if (!work.whole.has(frame) || [...marks.values()].some(({ mask }) => boxOf(mask))) return true;
  const question = "No masks: is the frame empty?";
  return askPerson(
    { "aria-label": question },
    [node("p", {}, question)],
    [
      [false, "keep drawing", { class: "primary", "data-icon": "pencil" }], // Enter pressed twice accepts nothing
      [true, "yes, it is empty", { "data-icon": "check" }],
    ],
  );
}

/**
 * @param {AnnotateView} view
 * @param {StandingMask} mark
 */
function objectItem({ work, player, frame }, { id, object, mask, origin }) {
  const isChosen = player.selected.has(object);
  const name = work.nameOf(object);
  const look = { class: "thing", "aria-pressed": String(isChosen), title: id };
  const thing = button(name, () => player.pick(isChosen ? [] : [object]), look);
  thing.style.borderLeftColor = colour(object);
  if (!boxOf(mask)) return [thing, node("small", {}, ` ${origin}: not visible here `), ""];
  const remove = () => work.remove(frame, id);
  const hint = {
    "aria-label": `not here: ${name}`,
    title: "not visible on this frame; press u to undo",
    "data-icon": "eye-off",
  };
  return [thing, node("small", {}, ` ${origin} `), button("not here", remove, hint)];
}

/**
 * @param {AnnotateView} view
 * @param {Suggestion} suggestion
 */
function suggestionItem(view, suggestion) {
  const { object, category, origin } = suggestion;
  const name = object ? (view.work.names.get(object) ?? category) : `${category} (new)`;
  const take = () => view.take(suggestion);
  return [
    button(name, take, { "aria-label": `accept suggestion ${name} of ${origin}`, "data-icon": "check" }),
    node("small", {}, ` ${origin}`),
  ];
}

/**
 * Which object the chosen mask is of: on this frame while it is a draft, of the whole video by an edit.
 * @param {Annotation} work
 * @param {number} frame
 * @param {StandingMask} chosen
 * @param {Set<string>} here ids that have a mask on the frame
 */
function identityOf(work, frame, { id, object, mask }, here) {
  const others = [...work.categories.keys()].filter((other) => other !== object);
  /** @param {string} other */
  const reassign = (other) =>
    work.draw(frame, (draft) => {
      if (!work.whole.has(frame)) draft.set(id, mask);
      draft.delete(id);
      draft.set(other, mask);
    });
  const free = others.filter((other) => !here.has(other));
  return [
    node("h4", {}, `Chosen: ${work.nameOf(object)}`),
    node(
      "div",
      { class: "inline wrap" },
      objectList(work, "this mask is", free, reassign),
      ...(work.categories.has(object) ? editsOf(work, frame, object, others) : []),
    ),
  ];
}

/**
 * Edits of a known object.
 * @param {Annotation} work
 * @param {number} frame
 * @param {string} object
 * @param {string[]} others
 */
function editsOf(work, frame, object, others) {
  const name = work.nameOf(object);
  const category = work.categoryOf(object) ?? "";
  const label = "category of the chosen object";
  const field = node("input", { list: "categories", value: category, "aria-label": label });
  const rename = () => work.edit({ edit: "rename", object, category: field.value }, `rename ${name}`);
  /** @param {string} into */
  const merge = (into) =>
    work.edit({ edit: "merge", into, objects: [object] }, `merge ${name} into ${work.nameOf(into)}`);
  const split = () => {
    const edit = { edit: /** @type {const} */ ("split"), object, frame, new: work.newId(category) };
    return work.edit(edit, `split ${name}`);
  };
  return [
    field,
    button("rename", rename, { "data-icon": "pencil" }),
    objectList(work, "merge with", others, merge),
    button("another object from here on", split, { "data-icon": "split" }),
  ];
}

/**
 * @param {Annotation} work
 * @param {string} label
 * @param {string[]} ids
 * @param {(id: string) => unknown} action
 */
function objectList(work, label, ids, action) {
  const options = ids.map((value) => node("option", { value }, work.nameOf(value)));
  const change = explained(() => action(select.value));
  /** @type {HTMLSelectElement} */
  const select = node("select", { change }, node("option", { value: "" }, "…"), ...options);
  return node("label", {}, `${label} `, select);
}
