// A form for a new statement, from the shown frame.
import { form, node } from "./elements.js";
import { changedLayers } from "./statements.js";
import { say } from "./status.js";

/** @import { FrameRange, Layers, Statement, Vocabulary } from "./shapes.d.ts" */
/** @import { Annotation } from "./annotation.js" */
/** @import { Player } from "./player.js" */

// Kinds of statements; `type` and `value` are those of attributes and relations.
/** @typedef {{ layer: "activity" | "step" | "touch" | "attribute" | "relation", text: string }} Kind */
/** @typedef {Kind & { type: string, value: string }} SayableKind */

const SECONDS = 2; // of a new statement

/**
 * @param {Vocabulary} vocabulary
 * @returns {SayableKind[]}
 */
function kindsOf({ attributes, relations }) {
  const none = { type: "", value: "" };
  return [
    { layer: "activity", text: "activity", ...none },
    { layer: "step", text: "step", ...none },
    { layer: "touch", text: "hands touch things", ...none },
    ...Object.entries(attributes).flatMap(([type, values]) =>
      values.map((value) => ({ layer: /** @type {const} */ ("attribute"), text: `${type}: ${value}`, type, value })),
    ),
    ...Object.entries(relations).flatMap(([type, values]) =>
      values.map((value) => ({ layer: /** @type {const} */ ("relation"), text: value, type, value })),
    ),
  ];
}

/**
 * `write(layers)` takes a statement or, where hands touch things, `touch(range)`. The form is made once: `fill()` takes
 * the objects there are.
 * @param {Annotation} work
 * @param {Player} player
 * @param {(layers: Layers) => unknown} write
 * @param {(range: FrameRange) => unknown} touch
 */
export function statementForm(work, player, write, touch) {
  const kinds = kindsOf(work.project.vocabulary);
  const options = kinds.map(({ text }, at) => node("option", { value: at }, text));
  const what = node("select", { "aria-label": "what", change: () => shape() }, ...options);
  const name = node("input", { "aria-label": "name", required: true, maxlength: 200 });
  const source = node("select", { "aria-label": "object", required: true });
  const target = node("select", { "aria-label": "other object", required: true });
  const chosenKind = () => kinds[Number(what.value)];

  /**
   * @param {HTMLInputElement | HTMLSelectElement} field
   * @param {boolean} isAsked
   */
  const show = (field, isAsked) => {
    field.hidden = !isAsked;
    field.disabled = !isAsked;
  };
  /** Shows the fields that the chosen kind needs. */
  const shape = () => {
    const { layer } = chosenKind();
    show(name, layer === "activity" || layer === "step");
    show(source, layer === "attribute" || layer === "relation");
    show(target, layer === "relation");
  };
  const fill = () => {
    const [first] = player.selected;
    for (const [field, value] of /** @type {const} */ ([
      [source, first ?? source.value],
      [target, target.value],
    ])) {
      const objects = [...work.names].map(([id, text]) => node("option", { value: id, selected: id === value }, text));
      field.replaceChildren(...objects);
    }
  };
  /** @returns {Statement | null} */
  const statementOf = () => {
    const { layer, type, value } = chosenKind();
    const named = { name: name.value.trim() };
    if (layer === "activity") return { list: "activities", said: named };
    if (layer === "step") return { list: "process_steps", said: named };
    if (layer === "attribute") return { list: "attributes", said: { object: source.value, type, value } };
    if (layer === "touch") return null;
    return { list: "relations", said: { source: source.value, target: target.value, type, value } };
  };
  const add = async () => {
    const end = player.frame + Math.round(SECONDS * player.facts.fps) || 1;
    /** @type {FrameRange} */
    const range = [player.frame, Math.min(player.count, end)];
    const statement = statementOf();
    await (statement ? write(changedLayers(work.project.layers, statement, null, range)) : touch(range));
    say(`from frame ${range[0]} to ${range[1] - 1}: drag its ends on the timeline`);
  };
  shape();
  const submit = node("button", { "data-icon": "plus" }, "add here");
  return { element: form({ class: "inline wrap" }, add, what, name, source, target, submit), fill };
}
