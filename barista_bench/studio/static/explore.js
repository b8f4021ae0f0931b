// A video of a release: the graph of each frame, the facts and their times, the questions about a moment.
import { diagram } from "./diagram.js";
import { button, countedList, explainedList, form, node } from "./elements.js";
import { frameAt } from "./frame_source.js";
import { address, graphPlayer, spanText } from "./graph_player.js";
import { colour } from "./masks.js";
import { missingAnnotations } from "./missing.js";
import { moments, NEAREST, searchField } from "./search.js";
import { ask } from "./server.js";
import { say } from "./status.js";
import { tabPanels } from "./tab_panels.js";
import { Timeline } from "./timeline.js";
import { counted, words } from "./words.js";
/** @import { Child, View } from "./page.d.ts" */
/** @import { GivenAnswer } from "./asking_shapes.d.ts" */
/** @import { AskedQuestion, FrameGraph, Relation, Row } from "./shapes.d.ts" */
/** @import { GraphPlayer } from "./graph_player.js" */
/** @import { Player } from "./player.js" */

// Names of objects by their ids.
/** @typedef {Map<string, string>} Names */

/**
 * @param {string} video
 * @param {URLSearchParams} query
 * @returns {Promise<View>}
 */
export async function exploreView(video, query) {
  const first = Number(query.get("frame") ?? 0);
  const [opened, tables] = await Promise.all([graphPlayer(video, first), ask("/api/video", { video })]);
  const { player } = opened;
  const names = new Map(tables.objects.map(({ id, name }) => [id, name]));
  /** @type {Row[]} */
  const presence = tables.objects.map(({ id, name, ranges }) => ({
    layer: "object",
    text: name,
    objects: [id],
    ranges,
  }));
  const timeline = new Timeline(player, [...tables.rows, ...presence]);
  const example = query.get("example");
  const side = sidePanel(opened, names, example);
  const results = node("div", { class: "results" });
  const hunt = searchField("", (text) => search(player, text, results));
  player.onRest((frame) => history.replaceState(null, "", address(video, frame, example ? { example } : {})));
  const objects = query.get("objects");
  return {
    elements: [
      node("div", { class: "heading" }, node("h2", {}, video), secondField(player), hunt.element),
      problemsOf(tables.problems),
      results,
      node("div", { class: "columns" }, player.element, side),
      timeline.element,
    ],
    keys: { ...player.keys(), "/": ["search this video", hunt.focus] },
    onShown: async () => {
      await player.start(first);
      if (objects) player.pick(objects.split(","));
    },
  };
}

/** @param {string[]} problems */
function problemsOf(problems) {
  if (!problems.length) return null;
  const title = node("summary", {}, `${problems.length} problems in this video's annotation`);
  return node(
    "details",
    { class: "alert" },
    title,
    node("ul", {}, ...problems.map((problem) => node("li", {}, problem))),
  );
}

/** "what does the graph say at second 12?" @param {Player} player */
function secondField(player) {
  const field = node("input", { type: "number", min: 0, step: "any", "aria-label": "second" });
  const go = () => player.go(frameAt(player.times, Number(field.value)));
  return form({ class: "inline" }, go, node("label", {}, "second ", field), node("button", {}, "go"));
}

/**
 * Shows the moments of this video at which something holds.
 * @param {Player} player
 * @param {string} text
 * @param {HTMLElement} results
 */
async function search(player, text, results) {
  const { rows, more, nearest, seconds } = await ask("/api/search", { video: player.video, text });
  /** @param {Row[]} some */
  const listOf = (some) =>
    node(
      "ul",
      { class: "moments" },
      ...moments(some, (start, end, objects) =>
        button(spanText(seconds[start], seconds[end], start, end), async () => {
          await player.go(start);
          player.pick(objects);
        }),
      ),
    );
  const list = listOf(rows);
  const count = counted(list.children.length, "moment");
  const everywhere = `#/search?${new URLSearchParams({ text })}`;
  results.replaceChildren(
    node("h3", {}, `${count}${more ? `, and ${more} more statements` : ""}`),
    list,
    ...(nearest.length ? [node("p", { class: "note" }, NEAREST), listOf(nearest)] : []),
    node("p", {}, node("a", { href: everywhere }, "search all videos")),
  );
  say(count);
}

/**
 * @param {GraphPlayer} opened
 * @param {Names} names
 * @param {string | null} example of a report's link to this page
 */
function sidePanel({ player, graphOf }, names, example) {
  const graph = () => graphOf(player.frame);
  const panels = {
    "This frame": async () => factsOf(player, await graph(), names),
    Graph: async () => diagram(await graph(), names, player.selected),
    Questions: () => questions(player, example),
    Missing: () => missingAnnotations(player),
  };
  const side = tabPanels("scene graph", panels, example ? "Questions" : "This frame");
  player.onRest(side.fill);
  player.onPick(side.fill);
  return side.element;
}

/**
 * Everything that holds on the frame, in words.
 * @param {Player} player
 * @param {FrameGraph} graph
 * @param {Names} names
 */
function factsOf(player, { instances, relations, attributes, activities, steps }, names) {
  /**
   * @param {string} title
   * @param {(Child | Child[])[]} items
   */
  const listedIfAny = (title, items) => (items.length ? countedList(title, items) : []);
  /** @param {string} id */
  const thing = (id) => {
    const isChosen = player.selected.has(id);
    const pick = () => player.pick(player.selected.has(id) && player.selected.size === 1 ? [] : [id]);
    const thingButton = button(names.get(id) ?? id, pick, { class: "thing", "aria-pressed": String(isChosen) });
    thingButton.style.borderLeftColor = colour(id);
    return thingButton;
  };
  /** @param {Relation} relation */
  const statement = ({ source, target, value }) => [thing(source), ` ${value} `, thing(target)];
  const objects = instances.map(({ object, mask }) => {
    const traits = attributes.filter((attribute) => attribute.object === object);
    const text = traits.map(({ type, value }) => `${type} ${value}`).join(", ");
    const problem = "problem" in mask ? node("span", { class: "warn" }, " mask unusable") : "";
    return [thing(object), ` ${text}`, problem];
  });
  const byHand = relations.filter(({ type }) => type === "human_actions");
  const others = relations.filter(({ type }) => type !== "human_actions");
  return [
    ...listedIfAny("Activity", activities),
    ...listedIfAny("Process step", steps),
    ...listedIfAny("Hands", byHand.map(statement)),
    ...listedIfAny("Relations", others.map(statement)),
    ...countedList("Objects", objects),
  ];
}

/**
 * Questions of the open datasets about this moment.
 * @param {Player} player
 * @param {string | null} example
 */
async function questions(player, example) {
  const { asked } = await ask("/api/moment", { video: player.video, frame: player.frame });
  const items = asked.map((question) => questionOf(player, question, question.id === example));
  return countedList("Questions about this frame", items);
}

/** A model's answer. @param {GivenAnswer} answer */
function answerOf({ model, status, text, is_json: isJson, rows, repetitions }) {
  const notes = [repetitions > 1 ? `the first of ${repetitions}` : "", status === "ok" ? "" : words(status)];
  const note = notes.filter(Boolean).join(", ");
  return node(
    "div",
    {},
    node("h4", {}, model),
    note ? node("p", { class: "note" }, note) : null,
    isJson ? null : node("p", { class: "asked-text" }, text),
    rows.length ? explainedList(rows) : null,
    isJson ? node("details", {}, node("summary", {}, "raw answer"), node("p", { class: "asked-text" }, text)) : null,
  );
}

/**
 * @param {Player} player
 * @param {AskedQuestion} question
 * @param {boolean} isExample
 */
function questionOf(player, { task, id, label, question, frames, reference, answers }, isExample) {
  const jumps = frames.map((frame) => button(`frame ${frame}`, () => player.go(frame)));
  return node(
    "details",
    { open: isExample },
    node("summary", {}, `${words(task)}: ${label}`),
    node("p", { class: "asked-text" }, question),
    node(
      "div",
      { class: "side-by-side" },
      node("div", {}, node("h4", {}, "Truth"), node("ul", {}, ...reference.map((line) => node("li", {}, line)))),
      ...answers.map(answerOf),
    ),
    node("p", { class: "note" }, ...jumps, ` ${id}`),
    isExample
      ? node(
          "p",
          {},
          button("back to the sample", () => history.back(), { "data-icon": "arrow-left" }),
        )
      : "",
  );
}
