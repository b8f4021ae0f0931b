// A release: the graph of each frame, what holds when, what is asked about a moment, search.
import { ask, button, drawn, form, listed, node, say, tabbed } from "./page.js";
import { colour } from "./masks.js";
import { Player, frameAt, remembering } from "./player.js";
import { Timeline } from "./timeline.js";

/** A player of an annotated video; its `graph(frame)` promises all that is said of a frame. */
export async function graphPlayer(video) {
  const graph = remembering((frame) => ask("/api/frame", { video, frame }));
  return Object.assign(await Player.open("graph", video, async (frame) => (await graph(frame)).instances), { graph });
}

export const address = (video, frame, more = {}) => `#/graph/${encodeURIComponent(video)}?${new URLSearchParams({ frame, ...more })}`;

export async function exploreView(video, query) {
  const [player, tables] = await Promise.all([graphPlayer(video), ask("/api/video", { video })]);
  const names = new Map(tables.objects.map(({ id, name }) => [id, name]));
  const presence = tables.objects.map(({ id, name, ranges }) => ({ layer: "object", text: name, objects: [id], ranges }));
  const timeline = new Timeline(player, [...tables.rows, ...presence]);
  const example = query.get("example");
  const side = sidePanel(player, names, example);
  const results = node("div", { class: "results" });
  const hunt = searchField("", async (text) => {
    const { rows, more, nearest } = await ask("/api/search", { video, text });
    const entries = (some) => moments(some, (start, end, objects) => button(`${span(player.times, start, end)}`, async () => {
      await player.go(start);
      player.pick(objects);
    }));
    const count = counted(entries(rows).length, "moment");
    results.replaceChildren(node("h3", {}, `${count}${more ? `, and ${more} further statements` : ""}`), node("ul", { class: "moments" }, ...entries(rows)),
      ...(nearest.length ? [node("p", { class: "note" }, "Nothing has all these words. The nearest:"), node("ul", { class: "moments" }, ...entries(nearest))] : []),
      node("p", {}, node("a", { href: `#/search?${new URLSearchParams({ text })}` }, "search all videos")));
    say(count);
  });
  const warnings = tables.problems.length
    ? node("details", { class: "alert" }, node("summary", {}, `${tables.problems.length} problems in this video's annotation`),
      node("ul", {}, ...tables.problems.map((problem) => node("li", {}, problem)))) : null;
  player.on("frame", (frame) => history.replaceState(null, "", address(video, frame, example ? { example } : {})));
  return { made: [node("div", { class: "heading" }, node("h2", {}, video), secondField(player), hunt), warnings, results,
    node("div", { class: "columns" }, player.element, side), timeline.element].filter(Boolean),
  keys: { ...player.keys(), "/": () => hunt.querySelector("input").focus() },
  started: async () => {
    await player.start(Number(query.get("frame") ?? 0));
    if (query.get("objects")) player.pick(query.get("objects").split(","));
  } };
}

/** "what does the graph say at second 12?" */
function secondField(player) {
  const field = node("input", { type: "number", min: 0, step: "any", "aria-label": "second" });
  return form({ class: "inline" }, () => player.go(frameAt(player.times, Number(field.value))), node("label", {}, "second ", field), node("button", {}, "go"));
}

function searchField(text, look) {
  const field = node("input", { type: "search", value: text, placeholder: "left hand holds" });
  return form({ class: "inline", role: "search" }, () => look(field.value), node("label", {}, "find ", field), node("button", {}, "search"));
}

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const span = (times, start, end) => `${times[start].toFixed(2)} to ${times[Math.min(end, times.length - 1)].toFixed(2)} s, frames ${start} to ${end - 1}`;
const moments = (rows, link) => rows.flatMap(({ text, objects, ranges }) => ranges.map(([start, end]) => node("li", {}, link(start, end, objects), ` ${text}`)));

/** Search in every video of the release, one after the other; the words stand in the address. */
export async function searchView(videos, query) {
  const text = query.get("text") ?? "";
  const list = node("ul", { class: "moments" });
  const bar = node("progress", { max: videos.length, value: 0, "aria-label": "videos searched", hidden: true });
  const heading = node("h3", {});
  const hunt = searchField(text, (wanted) => {
    if (wanted !== text) location.hash = `#/search?${new URLSearchParams({ text: wanted })}`;
  });
  const look = async () => {
    bar.hidden = false;
    let nearest = [];
    const link = (video) => (start, end, objects) => node("a", { href: address(video, start, { objects: objects.join(",") }) }, `${video}, frames ${start} to ${end - 1}`);
    for (const [number, video] of videos.entries()) {
      const answer = await ask("/api/search", { video, text }).catch((error) => ({ rows: [{ text: error.message, objects: [], ranges: [[0, 1]] }], nearest: [] }));
      if (!list.isConnected) return;
      list.append(...moments(answer.rows, link(video)));
      nearest = [...nearest, ...moments(answer.nearest, link(video))].slice(0, 10);
      bar.value = number + 1;
      say(`${counted(list.children.length, "moment")} in ${number + 1} of ${counted(videos.length, "video")}`);
    }
    bar.hidden = true;
    heading.textContent = list.children.length ? counted(list.children.length, "moment") : "Nothing has all these words. The nearest:";
    if (!list.children.length) list.append(...nearest);
  };
  return { made: [node("h2", {}, "Search all videos"), hunt, bar, heading, list], started: () => (text ? look() : hunt.querySelector("input").focus()) };
}

function sidePanel(player, names, example) {
  const graph = () => player.graph(player.frame);
  const side = tabbed("what the graph says", { "This frame": async () => factsOf(player, await graph(), names),
    Graph: async () => diagram(player, await graph(), names), Questions: () => questions(player, example) }, example ? "Questions" : "This frame");
  player.on("frame", side.fill);
  player.on("pick", side.fill);
  return side.element;
}

/** Everything that holds on the frame, in words. */
function factsOf(player, { instances, relations, attributes, activities, steps }, names) {
  const said = (title, items) => (items.length ? listed(title, items) : []);
  const thing = (id) => {
    const made = button(names.get(id), () => player.pick(player.selected.has(id) && player.selected.size === 1 ? [] : [id]),
      { class: "thing", "aria-pressed": String(player.selected.has(id)) });
    made.style.borderLeftColor = colour(id);
    return made;
  };
  const statement = ({ source, target, value }) => [thing(source), ` ${value} `, thing(target)];
  const seen = instances.map(({ object, mask }) => {
    const traits = attributes.filter((entry) => entry.object === object).map(({ type, value }) => `${type} ${value}`).join(", ");
    return [thing(object), ` ${traits}`, mask.problem ? node("span", { class: "warn" }, " mask unusable") : ""];
  });
  return [...said("Activity", activities), ...said("Process step", steps),
    ...said("Hands", relations.filter(({ type }) => type === "human_actions").map(statement)),
    ...said("Relations", relations.filter(({ type }) => type !== "human_actions").map(statement)),
    ...listed("Objects", seen)];
}

/** The related objects of the frame on a circle, and the relations between them. */
function diagram(player, { instances, relations }, names) {
  const seen = new Set(instances.map(({ object }) => object));
  const ids = [...new Set(relations.flatMap(({ source, target }) => [source, target]))].filter((id) => seen.has(id));
  const alone = [...seen].filter((id) => !ids.includes(id)).map((id) => names.get(id));
  const [width, height] = [460, 430];
  const spots = new Map(ids.map((id, at) => {
    const turn = (2 * Math.PI * at) / ids.length - Math.PI / 2;
    return [id, [width / 2 + Math.cos(turn) * (width / 2 - 60), height / 2 + Math.sin(turn) * (height / 2 - 26)]];
  }));
  const edges = relations.filter(({ source, target }) => spots.has(source) && spots.has(target)).map(({ source, target, value, type }) => {
    const [[x1, y1], [x2, y2]] = [spots.get(source), spots.get(target)];
    const part = (share) => `${x1 + (x2 - x1) * share},${y1 + (y2 - y1) * share}`;
    const [x, y] = part(0.36).split(",");
    return drawn("g", { class: type === "human_actions" ? "by-hand" : "edge" },
      drawn("polyline", { points: `${part(0.06)} ${part(0.6)} ${part(0.94)}`, "marker-mid": "url(#tip)", class: "edge-line" }),
      drawn("text", { x, y, class: "edge-name" }, value));
  });
  const nodes = ids.map((id) => {
    const [x, y] = spots.get(id);
    return drawn("g", {}, drawn("circle", { cx: x, cy: y, r: player.selected.has(id) ? 9 : 6, fill: colour(id) }), drawn("text", { x, y: y - 11, class: "node-name" }, names.get(id)));
  });
  const tip = drawn("defs", {}, drawn("marker", { id: "tip", viewBox: "0 0 8 8", refX: 4, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    drawn("path", { d: "M0 0 8 4 0 8z", class: "tip-shape" })));
  const text = relations.map(({ source, target, value }) => `${names.get(source)} ${value} ${names.get(target)}`).join("; ");
  return [drawn("svg", { viewBox: `0 0 ${width} ${height}`, class: "diagram", role: "img", "aria-label": text || "no relations" }, tip, ...edges, ...nodes),
    alone.length ? node("p", { class: "note" }, `In view and related to nothing: ${alone.join(", ")}.`) : ""];
}

/** What the open datasets ask about this moment; `example` is the one that a report led here from. */
async function questions(player, example) {
  const { asked } = await ask("/api/moment", { video: player.video, frame: player.frame });
  return listed("Asked about this frame", asked.map(({ task, id, label, question, frames, truth }) => node("details", { open: id === example },
    node("summary", {}, `${task.replaceAll("_", " ")}: ${label}`),
    node("p", { class: "asked-text" }, question),
    node("h4", {}, "Truth"), node("ul", {}, ...truth.map((line) => node("li", {}, line))),
    node("p", { class: "note" }, ...frames.map((frame) => button(`frame ${frame}`, () => player.go(frame))), ` ${id}`),
    id === example ? node("p", {}, button("back to the sample", () => history.back())) : "")));
}
