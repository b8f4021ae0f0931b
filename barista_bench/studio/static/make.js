// From a video to a score: each command as a form that shows its line, and the table of started commands.
import { dropZone } from "./drop_videos.js";
import { button, form, node } from "./elements.js";
import { jobTable } from "./job_table.js";
import { ask, send } from "./server.js";
import { explained, say } from "./status.js";
import { counted, words } from "./words.js";

/** @import { View } from "./page.d.ts" */
/** @import { CommandField, CommandStep, Workshop } from "./home_shapes.d.ts" */

/**
 * @param {URLSearchParams} query the step that is open, and values of its fields
 * @returns {Promise<View>}
 */
export async function makeView(query) {
  const workshop = await ask("/api/commands");
  const table = jobTable();
  const open = query.get("step") ?? firstOf(workshop);
  const steps = workshop.steps.map((step, at) =>
    stepForm(workshop, step, at, step.id === open ? query : null, () => table.refresh()),
  );
  const about = "Each button runs the command next to it, in this folder: ";
  return {
    elements: [
      node("h2", {}, "From a video to a score"),
      node("p", {}, about, node("code", {}, workshop.folder)),
      node("div", { class: "columns workshop" }, node("div", { class: "steps" }, ...steps), table.element),
    ],
    onShown: () => table.refresh(),
  };
}

/** The inputs to begin with. @param {Workshop} workshop */
function firstOf({ found }) {
  const kinds = new Set(found.map(({ kind }) => kind));
  if (kinds.has("runs")) return "report";
  if (kinds.has("dataset")) return "run";
  if (kinds.has("release")) return "build";
  return kinds.has("project") ? "stages" : "start";
}

/**
 * @param {Workshop} workshop
 * @param {CommandStep} step
 * @param {number} at
 * @param {URLSearchParams | null} given values, where the step is open
 * @param {() => unknown} started
 */
function stepForm(workshop, step, at, given, started) {
  const inputs = step.fields.map((field) => fieldInput(workshop, step, field, given?.get(field.name)));
  const line = node("code", { class: "command-line", tabindex: 0 });
  const copy = button("copy", () => copyLine(line.textContent), { "data-icon": "copy" });
  const problem = node("p", { class: "note", role: "status" });
  const run = node("button", { class: "primary", "data-icon": "play" }, "run");
  const values = () =>
    Object.fromEntries(inputs.map(({ name, input }) => [name, input.value]).filter(([, value]) => value));
  let turn = 0;
  const preview = explained(async () => {
    turn += 1;
    const mine = turn;
    const command = await ask("/api/command", { step: step.id, ...values() });
    if (mine !== turn) return;
    line.textContent = command.line;
    problem.textContent = command.problem;
    copy.disabled = run.disabled = !command.line;
  });
  const start = async () => {
    await send("/api/jobs/start", { step: step.id, values: values() });
    say(`started: ${line.textContent}`);
    await started();
  };
  const fields = form(
    { class: "command", input: preview },
    start,
    ...inputs.map(({ element }) => element),
    step.id === "start" ? dropZone(inputs, preview) : null,
    problem,
    node("div", { class: "controls" }, run, line, copy),
  );
  const summary = node("summary", {}, node("span", { class: "number" }, at ? String(at) : "+"), step.title);
  const element = node("details", { class: "step", open: given !== null, toggle: preview }, summary, fields);
  if (given !== null) preview();
  return element;
}

/**
 * @param {Workshop} workshop
 * @param {CommandStep} step
 * @param {CommandField} field
 * @param {string | null | undefined} given
 */
function fieldInput({ found }, step, field, given) {
  const suggested = found.filter(({ kind }) => field.suggested.includes(kind)).map(({ path }) => path);
  const choices = [...field.choices, ...suggested];
  const value = given ?? (field.value || (field.required && field.kind !== "new" ? (choices[0] ?? "") : ""));
  const input = inputFor(step, field, choices, value);
  const title = node("span", {}, words(field.name), node("small", {}, field.required ? " needed" : ""));
  const id = field.open || field.kind !== "text" ? input.getAttribute("list") : null;
  const list = id && node("datalist", { id }, ...choices.map((choice) => node("option", { value: choice })));
  const about = node("small", { class: "about-field" }, field.help);
  return { name: field.name, input, element: node("label", {}, title, input, list, about) };
}

/**
 * @param {CommandStep} step
 * @param {CommandField} field
 * @param {string[]} choices
 * @param {string} value
 */
function inputFor(step, field, choices, value) {
  if (field.kind === "text" && field.choices.length && !field.open) {
    const select = node("select", {}, ...["", ...choices].map((choice) => node("option", { value: choice }, choice)));
    select.value = value;
    return select;
  }
  const list = choices.length ? `${step.id}-${field.name}` : null;
  const inputmode = field.kind === "number" ? "decimal" : null;
  const look = { list, inputmode, value, autocomplete: "off", spellcheck: "false", maxlength: 500 };
  return node("input", look);
}

/** @param {string} line */
async function copyLine(line) {
  await navigator.clipboard.writeText(line);
  say(`copied ${counted(line.length, "character")}`);
}
