// A release: the graph of each frame, what holds when, what is asked about a moment, search.
import { ask, button, drawn, explained, node, say } from "./page.js";
import { colour } from "./masks.js";
import { Player, remembering } from "./player.js";
import { Timeline } from "./timeline.js";

export const frameOf = (video) => remembering((frame) => ask("/api/frame", { video, frame }));

export async function exploreView(video, query) {
  const graph = frameOf(video);
  const [player, tables] = await Promise.all([Player.open("graph", video, async (frame) => (await graph(frame)).instances), ask("/api/video", { video })]);
  const names = new Map(tables.objects.map(({ id, name }) => [id, name]));
  const presence = tables.objects.map(({ id, name, ranges }) => ({ layer: "object", text: name, objects: [id], ranges }));
  const timeline = new Timeline(player, [...tables.rows, ...presence]);
  player.example = query.get("example");
  const side = sidePanel(player, graph, names, video);
  const results = node("div", { class: "results" });
  const hunt = searchField(query.get("search") ?? "", async (text) => {
    results.replaceChildren(...shownRows(await ask("/api/search", { video, text }), player));
  });
  const warnings = tables.problems.length
    ? node("details", { class: "alert" }, node("summary", {}, `${tables.problems.length} problems in this video's annotation`),
      node("ul", {}, ...tables.problems.map((problem) => node("li", {}, problem)))) : null;
  const from = player.example ? { example: player.example } : {};
  player.on("frame", (frame) => history.replaceState(null, "", address(video, frame, from)));
  const goTo = seconds(player);
  const made = [node("div", { class: "heading" }, node("h2", {}, video), goTo, hunt), warnings, results,
    node("div", { class: "columns" }, player.element, side.element), timeline.element].filter(Boolean);
  return { made, keys: { ...player.keys(), "/": () => hunt.querySelector("input").focus() }, started: async () => {
    player.fit();
    if (query.get("objects")) player.selected = new Set(query.get("objects").split(","));
    await player.go(Number(query.get("frame") ?? 0));
    player.pick([...player.selected]);
    if (query.get("search")) hunt.requestSubmit();
    player.prepare().catch((error) => say(error.message));
  } };
}

export const address = (video, frame, more = {}) => `#/graph/${encodeURIComponent(video)}?${new URLSearchParams({ frame, ...more })}`;

/** "what does the graph say at second 12?" */
function seconds(player) {
  const field = node("input", { type: "number", min: 0, step: "any", "aria-label": "second" });
  return node("form", { class: "inline", submit: (event) => {
    event.preventDefault();
    const wanted = Number(field.value);
    player.go(player.times.reduce((best, time, frame) => (time <= wanted + 1e-6 ? frame : best), 0));
  } }, node("label", {}, "second ", field), node("button", {}, "go"));
}

function searchField(text, look) {
  const field = node("input", { type: "search", value: text, placeholder: "left hand holds pitcher", "aria-label": "search" });
  return node("form", { class: "inline", role: "search", submit: explained(async (event) => {
    event.preventDefault();
    await look(field.value);
  }) }, node("label", {}, "find ", field), node("button", {}, "search"));
}

function moments(rows, player) {
  const second = (frame) => player.times[Math.min(frame, player.count - 1)].toFixed(2);
  return node("ul", { class: "moments" }, ...rows.flatMap(({ text, objects, ranges }) => ranges.map(([start, end]) =>
    node("li", {}, button(`${second(start)} to ${second(end)} s`, async () => {
      await player.go(start);
      player.pick(objects);
    }), ` ${text}`))));
}

function shownRows({ rows, more, nearest }, player) {
  const count = rows.reduce((sum, { ranges }) => sum + ranges.length, 0);
  const title = count === 1 ? "1 moment" : `${count} moments`;
  say(title);
  return [node("h3", {}, `${title}${more ? `, and ${more} further statements` : ""}`), moments(rows, player),
    ...(nearest.length ? [node("p", { class: "note" }, "Nothing has all these words. The nearest:"), moments(nearest, player)] : [])];
}

/** Search in every video of the release, one after the other. */
export async function searchView(videos, query) {
  const list = node("ul", { class: "moments" });
  const bar = node("progress", { max: videos.length, value: 0, "aria-label": "videos searched" });
  let turn = 0;
  const hunt = searchField(query.get("text") ?? "", async (text) => {
    const mine = turn += 1;
    list.replaceChildren();
    let count = 0;
    for (const [number, { id }] of videos.entries()) {
      const { rows } = await ask("/api/search", { video: id, text }).catch((error) => ({ rows: [], problem: say(error.message) }));
      if (mine !== turn || !bar.isConnected) return;
      for (const { text: said, objects, ranges } of rows) {
        count += ranges.length;
        list.append(node("li", {}, node("strong", {}, id), ` ${said}: `, ...ranges.flatMap(([start, end]) =>
          [node("a", { href: address(id, start, { objects: objects.join(",") }) }, `frames ${start} to ${end - 1}`), " "])));
      }
      bar.value = number + 1;
      say(`${count} moments in ${number + 1} of ${videos.length} videos`);
    }
  });
  return { made: [node("h2", {}, "Search all videos"), hunt, bar, list], keys: {}, started: () => query.get("text") && hunt.requestSubmit() };
}

function sidePanel(player, graph, names, video) {
  const content = node("div", { class: "content" });
  const views = { "This frame": factsOf, Graph: diagram, Questions: questions };
  let shown = player.example ? "Questions" : "This frame";
  let turn = 0;
  const fill = explained(async () => {
    const mine = turn += 1;
    const made = await views[shown](player, await graph(player.frame), names, video);
    if (mine === turn) content.replaceChildren(...made);
  });
  const tabs = Object.keys(views).map((name) => button(name, () => {
    shown = name;
    for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.textContent === name));
    fill();
  }, { "aria-pressed": String(name === shown) }));
  player.on("frame", fill);
  player.on("pick", fill);
  return { element: node("section", { class: "side", "aria-label": "what the graph says" }, node("div", { class: "tabs" }, ...tabs), content) };
}

/** Everything that holds on the frame, in words. */
function factsOf(player, { instances, relations, attributes, activities, steps }, names) {
  const said = (title, items) => (items.length ? [node("h4", {}, title), node("ul", { class: "facts-list" }, ...items.map((item) => node("li", {}, item)))] : []);
  const thing = (id) => button(names.get(id), () => player.pick(player.selected.has(id) && player.selected.size === 1 ? [] : [id]),
    { class: "thing", "aria-pressed": String(player.selected.has(id)) });
  const statement = ({ source, target, value }) => node("span", {}, thing(source), ` ${value} `, thing(target));
  const seen = instances.map(({ object, mask }) => {
    const made = thing(object);
    made.style.borderLeftColor = colour(object);
    const traits = attributes.filter((entry) => entry.object === object).map(({ type, value }) => `${type} ${value}`).join(", ");
    return node("span", {}, made, ` ${traits}`, mask.problem ? node("span", { class: "warn" }, " mask unusable") : "");
  });
  return [...said("Activity", activities), ...said("Process step", steps),
    ...said("Hands", relations.filter(({ type }) => type === "human_actions").map(statement)),
    ...said("Relations", relations.filter(({ type }) => type !== "human_actions").map(statement)),
    ...said("Objects", seen), ...(instances.length ? [] : [node("p", { class: "note" }, "No object has a box on this frame.")])];
}

/** Related objects in an order in which neighbours stand side by side. */
function related(ids, relations) {
  const order = [];
  const visit = (id) => {
    if (order.includes(id)) return;
    order.push(id);
    for (const { source, target } of relations) {
      if (source === id) visit(target);
      if (target === id) visit(source);
    }
  };
  for (const { source } of relations) visit(source);
  return order.filter((id) => ids.includes(id));
}

/** The related objects of the frame on a circle, and the relations between them. */
function diagram(player, { instances, relations }, names) {
  const seen = [...new Set(instances.map(({ object }) => object))];
  const ids = related(seen, relations);
  const alone = seen.filter((id) => !ids.includes(id)).map((id) => names.get(id));
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

/** What the open datasets ask about this moment; `player.example` is the one that a report led here from. */
async function questions(player, _, names, video) {
  const { here, near } = await ask("/api/moment", { video, frame: player.frame });
  const shown = ({ task, id, label, frames, distance, truth }) => node("details", { open: id === player.example },
    node("summary", {}, `${task.replaceAll("_", " ")}: ${label}`, node("small", {}, distance ? ` ${distance} frames away` : "")),
    node("ul", {}, ...truth.map((line) => node("li", {}, line))),
    node("p", { class: "note" }, button(`frame ${frames[0]}`, () => player.go(frames[0])), ` ${id}`));
  const part = (title, asked) => (asked.length ? [node("h4", {}, `${title} (${asked.length})`), ...asked.map(shown)] : []);
  const made = [...part("Asked about this frame", here), ...part("Around it, about the same objects", near)];
  return made.length ? made : [node("p", { class: "note" }, "Nothing is asked about this moment by the open datasets.")];
}
