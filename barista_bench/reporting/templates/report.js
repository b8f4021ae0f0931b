"use strict";
// Texts come from models and annotations: they only ever become text nodes, never markup.
(() => {
  const block = document.getElementById("browser");
  if (!block) return;
  const data = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  const STATUS = {
    ok: "●", parse_error: "▲", refused: "■", truncated: "◆", infra_error: "✕", not_run: "○",
  };
  const VERDICT = { hit: ["✓", "correct"], miss: ["○", "missed"], wrong: ["✗", "wrong"] };
  const ORDER = Object.keys(STATUS);
  const state = { shown: [], current: -1, runs: new Map() };

  function node(tag, options = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(options)) {
      if (name === "class") made.className = value;
      else if (name === "click") made.addEventListener("click", value);
      else made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null && child !== ""));
    return made;
  }

  const words = (name) => name.replaceAll("_", " ");
  const score = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));
  const labels = (sample) => data.sections[sample.section].labels;

  // Places of the models that the model filter lets through.
  function places(sample) {
    const wanted = get("by-model").value;
    return [...labels(sample).keys()].filter((place) => !wanted || labels(sample)[place] === wanted);
  }

  // The most serious status over the runs stands for the model.
  function worst(model) {
    const found = model.answers.map((answer) => ORDER.indexOf(answer.status));
    return found.length ? ORDER[Math.max(...found)] : "not_run";
  }

  const statuses = (model) =>
    model.answers.length ? model.answers.map((answer) => answer.status) : ["not_run"];

  function mean(sample) {
    const known = places(sample)
      .map((place) => sample.models[place].means[0])
      .filter((value) => value !== null && value !== undefined);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  }

  const texts = data.samples.map((sample) => {
    const answers = sample.models.flatMap((model) => model.answers);
    const parts = answers.flatMap((a) => [a.text || "", a.error, ...a.rows.map((row) => row.text)]);
    const pairs = [...sample.metadata, ...sample.evidence].map((pair) => pair.join(" "));
    return [sample.example_id, sample.label, sample.frames, ...pairs, ...parts].join("\n").toLowerCase();
  });

  function passes(sample, number) {
    const section = get("by-section").value;
    const status = get("by-status").value;
    if (section && sample.section !== Number(section)) return false;
    const kept = places(sample);
    if (!kept.length) return false;
    if (status && !kept.some((place) => statuses(sample.models[place]).includes(status))) return false;
    return texts[number].includes(get("by-text").value.trim().toLowerCase());
  }

  function ordered(numbers) {
    const direction = { up: 1, down: -1 }[get("by-order").value];
    if (!direction) return numbers;
    const means = new Map(numbers.map((number) => [number, mean(data.samples[number])]));
    return numbers.sort((a, b) => {
      const [left, right] = [means.get(a), means.get(b)];
      if (left === null || right === null) return (left === null) - (right === null) || a - b;
      return direction * (left - right) || a - b;
    });
  }

  function chip(sample, place) {
    const model = sample.models[place];
    const status = worst(model);
    const title = `${labels(sample)[place]}: ${words(status)}`;
    return node("span", { title },
      node("span", { class: `dot ${status}`, role: "img", "aria-label": words(status) }, STATUS[status]),
      score(model.means[0]));
  }

  function entry(number) {
    const sample = data.samples[number];
    const button = node("button", { type: "button", id: `entry-${number}`, click: () => open(number) },
      // The list cuts long ids at their start, since ids of one task differ at their end.
      node("span", { class: "name", title: sample.example_id }, node("bdi", {}, sample.example_id)),
      node("span", { class: "chips" }, ...places(sample).map((place) => chip(sample, place))));
    return node("li", {}, button);
  }

  function legend() {
    const numbers = state.shown.length ? state.shown : [0];
    const sample = data.samples[numbers[0]];
    const name = data.sections[sample.section].scores[0];
    const order = places(sample).map((place) => labels(sample)[place]).join(", ");
    const shapes = ORDER.map((status) => node("span", { class: "key" },
      node("span", { class: `dot ${status}` }, STATUS[status]), words(status)));
    get("legend").replaceChildren(
      node("span", {}, `${name ? words(name) : "status"}, mean over runs: ${order}`), node("br"),
      ...shapes);
  }

  function refresh() {
    state.shown = ordered([...data.samples.keys()].filter((n) => passes(data.samples[n], n)));
    get("list").replaceChildren(...state.shown.map(entry));
    get("count").textContent = `${state.shown.length} of ${data.samples.length}`;
    legend();
    if (state.shown.length) open(state.shown.includes(state.current) ? state.current : state.shown[0], false);
    else get("sample").replaceChildren(node("p", { class: "note" }, "No sample passes these filters."));
  }

  // Pictures are inflated when their sample is opened: the page holds them as text until then.
  function pictures(number, sample) {
    if (sample.problem) return node("p", { class: "alert" }, sample.problem);
    const urls = JSON.parse(get(`pictures-${number}`).textContent);
    return node("div", { class: "pictures" }, ...urls.map((url, index) => {
      const image = node("img", { src: url, alt: `image ${index} of this sample` });
      const figure = node("figure", {});
      const zoom = () => figure.classList.toggle("large");
      const button = node("button", { type: "button", title: "larger or smaller", click: zoom }, image);
      const caption = node("figcaption", {}, `image ${index}`);
      image.addEventListener("error", () => caption.append(": cannot be shown by this browser"));
      figure.append(button, caption);
      return figure;
    }));
  }

  const folded = (title, text) =>
    text ? node("details", {}, node("summary", {}, title), node("pre", {}, text)) : null;

  function pairs(title, found) {
    if (!found.length) return [];
    const items = found.map(([name, value]) => node("div", {}, node("dt", {}, name), node("dd", {}, value)));
    return [node("h4", {}, title), node("dl", { class: "pairs" }, ...items)];
  }

  function explanation(rows) {
    if (!rows.length) return [];
    const items = rows.map((row) => {
      const [mark, word] = VERDICT[row.verdict];
      return node("li", { class: row.verdict },
        node("span", { class: "mark", "aria-hidden": "true" }, mark),
        node("span", { class: "word" }, word), node("span", {}, row.text));
    });
    return [node("h4", {}, "Why it scored as it did"), node("ul", { class: "rows" }, ...items)];
  }

  function answer(sample, found) {
    if (!found) return [node("p", { class: "state" }, `${STATUS.not_run} not run`)];
    const names = data.sections[sample.section].scores;
    const scored = found.scores.some((value) => value !== null);
    const scores = names.map((name, place) => node("span", {}, `${words(name)} ${score(found.scores[place])}`));
    return [
      node("p", { class: "state" },
        node("span", { class: `dot ${found.status}` }, STATUS[found.status]), ` ${words(found.status)}`),
      found.error ? node("p", { class: "error" }, found.error) : null,
      node("p", { class: "scores" }, ...(scored ? scores : ["not scored"])),
      ...explanation(found.rows),
      ...pairs("Judges", found.verdicts),
      node("h4", {}, "Answer"),
      node("pre", {}, found.text === null ? "(none)" : found.text || "(empty)"),
      folded("Reasoning", found.reasoning),
      node("p", { class: "note" }, found.facts.map((fact) => fact.join(" ")).join(" · ")),
    ].filter((child) => child !== null);
  }

  function card(sample, place) {
    const { answers } = sample.models[place];
    const label = labels(sample)[place];
    const key = `${sample.section} ${place}`;
    const chosen = Math.max(0, answers.findIndex((found) => found.run === state.runs.get(key)));
    const body = node("div", {}, ...answer(sample, answers[chosen]));
    const tabs = answers.map((found, index) => node("button", {
      type: "button", "aria-pressed": String(index === chosen),
      click: (event) => {
        state.runs.set(key, found.run);
        for (const tab of event.currentTarget.parentNode.children) tab.setAttribute("aria-pressed", "false");
        event.currentTarget.setAttribute("aria-pressed", "true");
        body.replaceChildren(...answer(sample, found));
      },
    }, `run ${found.run}`));
    return node("section", { class: "card" }, node("h3", {}, label),
      answers.length ? node("div", { class: "tabs" }, ...tabs) : null, body);
  }

  function open(number, move = true) {
    const sample = data.samples[number];
    get(`entry-${state.current}`)?.removeAttribute("aria-current");
    state.current = number;
    const listed = get(`entry-${number}`);
    listed?.setAttribute("aria-current", "true");
    if (move) listed?.scrollIntoView({ block: "nearest" });
    const step = (by, text, title) => node("button", { type: "button", title, click: () => go(by) }, text);
    get("sample").replaceChildren(
      node("div", { class: "top" }, node("h3", {}, sample.example_id),
        node("div", { class: "steps" }, step(-1, "↑", "previous (k)"), step(1, "↓", "next (j)"))),
      node("p", { class: "where" }, `${sample.label} · ${sample.frames}`),
      pictures(number, sample),
      node("div", { class: "cards" }, ...places(sample).map((place) => card(sample, place))),
      node("div", { class: "below" }, ...pairs("Metadata", sample.metadata),
        ...pairs("Evidence in the scene graph", sample.evidence), folded("Prompt", sample.prompt)));
    // Only a choice of the reader becomes part of the address, so that it can be passed on.
    if (move) history.replaceState(null, "", `#sample-${number}`);
  }

  function go(by) {
    const next = state.shown[state.shown.indexOf(state.current) + by];
    if (next !== undefined) open(next);
  }

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea, pre, .scroll")) return;
    const letter = { j: 1, k: -1 }[event.key];
    // Arrows scroll the page elsewhere: they page through samples once the reader is among them.
    const arrow = block.contains(document.activeElement) ? { ArrowDown: 1, ArrowUp: -1 }[event.key] : undefined;
    const by = letter ?? arrow;
    if (by === undefined) return;
    event.preventDefault();
    go(by);
    get(`entry-${state.current}`)?.focus({ preventScroll: letter !== undefined });
  }

  function start() {
    const option = (value, text) => node("option", { value }, text);
    data.sections.forEach((section, place) => get("by-section").append(option(String(place), section.heading)));
    get("by-section").parentNode.hidden = data.sections.length < 2;
    const models = new Set(data.sections.flatMap((section) => section.labels));
    get("by-model").append(...[...models].map((label) => option(label, label)));
    for (const name of ["by-section", "by-model", "by-status"]) get(name).addEventListener("change", refresh);
    get("by-order").addEventListener("change", () => {
      state.current = -1;
      refresh();
    });
    get("by-text").addEventListener("input", refresh);
    document.addEventListener("keydown", keys);
    for (const hidden of block.querySelectorAll("[hidden].filters, [hidden].panes")) hidden.hidden = false;
    const linked = Number(location.hash.match(/^#sample-(\d+)$/)?.[1] ?? 0);
    if (linked < data.samples.length) state.current = linked;
    refresh();
  }

  start();
})();
