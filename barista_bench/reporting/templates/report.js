"use strict";
// Texts come from models and annotations: they only ever become text nodes, never markup.
(() => {
  const get = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const STATUS = { ok: "●", parse_error: "▲", refused: "■", truncated: "◆", infra_error: "✕", not_run: "○" };
  const VERDICT = { hit: ["✓", "correct"], miss: ["○", "missed"], wrong: ["✗", "wrong"] };
  const ORDER = Object.keys(STATUS);
  const ROW = 54; // height of a row of the list in pixels, as in the style
  const KEPT = 12; // chunks kept inflated
  const MANY = 4; // models of which three digits each no longer fit into the list
  const words = (name) => name.replaceAll("_", " ");
  const score = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));

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

  function drawn(tag, options = {}, ...children) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(options)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  // Theme and help work without samples, too.
  const THEMES = ["auto", "dark", "light"];
  function theme() {
    const root = document.documentElement;
    const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "auto") + 1) % THEMES.length];
    root.dataset.theme = next;
    get("theme").textContent = `theme: ${next}`;
  }
  const help = () => (get("help").open ? get("help").close() : get("help").showModal());
  get("theme").addEventListener("click", theme);
  get("ask").addEventListener("click", help);
  document.querySelector(".tools").hidden = false;
  // What is folded on screen is printed all the same.
  addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("main details:not([open])")) {
      folded.open = true;
      addEventListener("afterprint", () => { folded.open = false; }, { once: true });
    }
  });

  const block = get("browser");
  const data = JSON.parse(get("data").textContent);
  const samples = data.samples.map(([section, id, label, frames, models, pictures]) =>
    ({ section, id, label, frames, models, pictures }));
  const state = { shown: [], current: -1, runs: new Map(), layers: new Map(), boxes: true, frame: null, turn: 0 };

  const labels = (sample) => data.sections[sample.section].labels;
  const statusOf = (code) => data.statuses[code];
  const value = (id) => get(id).value;

  // Details lie deflated in chunks, and are inflated when somebody looks at one.
  const inflated = new Map();
  async function inflate(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }
  function chunk(number) {
    if (!inflated.has(number)) inflated.set(number, inflate(get(`chunk-${number}`).textContent));
    const found = inflated.get(number);
    for (const old of inflated.keys()) {
      if (inflated.size <= KEPT) break;
      if (old !== number) inflated.delete(old);
    }
    return found;
  }
  const details = async (number) => (await chunk(Math.floor(number / data.chunk)))[number % data.chunk];

  // Places of the models that the model filter lets through.
  function places(sample) {
    const wanted = value("by-model");
    return [...labels(sample).keys()].filter((place) => !wanted || labels(sample)[place] === wanted);
  }

  // The most serious status over the runs stands for the model.
  const worst = ([, codes]) => ORDER[Math.max(...codes.map((code) => ORDER.indexOf(statusOf(code))))];

  const meansOf = (sample) => places(sample).map((place) => sample.models[place][0]).filter((mean) => mean !== null);

  // What can be searched before any chunk is inflated, and all texts once they are.
  const light = samples.map((sample, number) => {
    const values = data.meta.flatMap(({ values: all, codes }) => codes[number].map((code) => all[code]));
    const frames = sample.frames.map(([video, frame]) => `${data.videos[video]} frame ${frame}`);
    return [sample.id, sample.label, ...frames, ...values].join("\n").toLowerCase();
  });
  const texts = { all: null, reading: null };
  function strings(found) {
    if (typeof found === "string") return [found];
    return found && typeof found === "object" ? Object.values(found).flatMap(strings) : [];
  }
  async function readTexts() {
    const all = [];
    for (let number = 0; number * data.chunk < samples.length; number += 1) {
      for (const found of await inflate(get(`chunk-${number}`).textContent)) {
        all.push(`${light[all.length]}\n${strings({ ...found, pictures: null }).join("\n").toLowerCase()}`);
      }
    }
    texts.all = all;
  }

  function filters() {
    const key = data.meta.find((meta) => meta.key === value("by-key"));
    const number = (id) => (value(id) === "" ? null : Number(value(id)));
    return {
      section: value("by-section"), status: value("by-status"), least: number("by-least"), most: number("by-most"),
      codes: key && value("by-value") !== "" ? key.codes : null, code: Number(value("by-value")),
      pictures: get("by-pictures").checked, text: value("by-text").trim().toLowerCase(),
    };
  }

  function passes(sample, number, wanted) {
    if (wanted.section && sample.section !== Number(wanted.section)) return false;
    if (wanted.pictures && !sample.pictures) return false;
    if (wanted.codes && !wanted.codes[number].includes(wanted.code)) return false;
    if (state.frame && !sample.frames.some((frame) => state.frame.keys.has(frame.join(":")))) return false;
    const fits = places(sample).some((place) => {
      const [mean, codes] = sample.models[place];
      if (wanted.status && !codes.some((code) => statusOf(code) === wanted.status)) return false;
      if (wanted.least !== null && (mean === null || mean < wanted.least)) return false;
      return wanted.most === null || (mean !== null && mean <= wanted.most);
    });
    return fits && (!wanted.text || (texts.all ?? light)[number].includes(wanted.text));
  }

  function ordered(numbers) {
    const way = value("by-order");
    if (!way) return numbers;
    const rank = new Map(numbers.map((number) => {
      const means = meansOf(samples[number]);
      if (!means.length) return [number, null];
      if (way === "apart") return [number, Math.min(...means) - Math.max(...means)];
      const mean = means.reduce((sum, one) => sum + one, 0) / means.length;
      return [number, way === "up" ? mean : -mean];
    }));
    return numbers.sort((a, b) => {
      const [left, right] = [rank.get(a), rank.get(b)];
      if (left === null || right === null) return (left === null) - (right === null) || a - b;
      return left - right || a - b;
    });
  }

  function chip(sample, place) {
    const status = worst(sample.models[place]);
    return node("span", { title: `${labels(sample)[place]}: ${words(status)}` },
      node("span", { class: `dot ${status}`, role: "img", "aria-label": words(status) }, STATUS[status]),
      score(sample.models[place][0], places(sample).length > MANY ? 2 : 3));
  }

  function entry(row) {
    const number = state.shown[row];
    const sample = samples[number];
    const made = node("div", {
      class: "entry", role: "option", id: `entry-${number}`, "aria-selected": String(number === state.current),
      "aria-posinset": row + 1, "aria-setsize": state.shown.length, click: () => open(number),
    },
    // The list cuts long ids at their start, since ids of one task differ at their end.
    node("span", { class: "name", title: sample.id }, node("bdi", {}, sample.id)),
    node("span", { class: places(sample).length > MANY ? "chips many" : "chips" },
      ...places(sample).map((place) => chip(sample, place))));
    made.style.top = `${row * ROW}px`;
    return made;
  }

  // Only the rows in view are in the page: thousands of samples scroll as a few do.
  function paint() {
    const { scrollTop, clientHeight } = get("scroller");
    const first = Math.max(0, Math.floor(scrollTop / ROW) - 8);
    const last = Math.min(state.shown.length, Math.ceil((scrollTop + clientHeight) / ROW) + 8);
    get("list").style.height = `${state.shown.length * ROW}px`;
    get("list").replaceChildren(...Array.from({ length: Math.max(0, last - first) }, (_, at) => entry(first + at)));
    get("list").setAttribute("aria-activedescendant", `entry-${state.current}`);
  }

  function reveal() {
    const row = state.shown.indexOf(state.current);
    const box = get("scroller");
    if (row < 0) return;
    if (row * ROW < box.scrollTop) box.scrollTop = row * ROW;
    else if ((row + 1) * ROW > box.scrollTop + box.clientHeight) box.scrollTop = (row + 1) * ROW - box.clientHeight;
  }

  function legend() {
    const sample = samples[state.shown[0] ?? 0];
    const name = data.sections[sample.section].scores[0];
    const order = places(sample).map((place) => labels(sample)[place]).join(", ");
    const shapes = ORDER.map((status) => node("span", { class: "key" },
      node("span", { class: `dot ${status}` }, STATUS[status]), words(status)));
    get("legend").replaceChildren(
      node("span", {}, `${name ? words(name) : "status"}, mean over runs: ${order}`), node("br"), ...shapes);
  }

  function refresh() {
    const wanted = filters();
    if (wanted.text && !texts.all) texts.reading ??= readTexts().then(refresh);
    state.shown = ordered([...samples.keys()].filter((number) => passes(samples[number], number, wanted)));
    const reading = wanted.text && !texts.all ? ", reading answers…" : "";
    get("count").textContent = `${state.shown.length} of ${samples.length}${reading}`;
    get("one-frame").hidden = !state.frame;
    get("one-frame").textContent = state.frame ? `only ${state.frame.name} ✕` : "";
    legend();
    if (state.shown.length) open(state.shown.includes(state.current) ? state.current : state.shown[0], false);
    else get("sample").replaceChildren(node("p", { class: "note" }, "No sample passes these filters."));
    paint();
  }

  // Boxes: a layer for what the question gives, one for the truth, and one a model.
  function layers(sample, found) {
    const kept = places(sample);
    const own = kept.map((place, at) => ({
      name: labels(sample)[place], look: `m${place % 6}`, usual: at === 0 || kept.length < 3,
      boxes: chosen(sample, found, place)?.boxes ?? [],
    }));
    const asked = ["given", "truth"].map((kind) => ({
      name: kind, look: kind, usual: true, boxes: found.boxes.filter((box) => box[1] === kind),
    }));
    return [...asked, ...own].filter((layer) => layer.boxes.length);
  }
  const visible = (layer) => state.boxes && (state.layers.get(layer.name) ?? layer.usual);

  function overlay(placed, image, shownLayers) {
    const size = placed.width / 54;
    const groups = shownLayers.filter(visible).map((layer) => drawn("g", { class: layer.look },
      ...layer.boxes.filter((box) => box[0] === image).flatMap(([, , label, [x0, y0, x1, y1]]) => {
        const [x, y] = [Math.min(x0, x1), Math.min(y0, y1)];
        const box = drawn("rect", { x, y, width: Math.abs(x1 - x0), height: Math.abs(y1 - y0) });
        if (!label) return [box];
        // Labels of boxes at the right grow to the left, so that the picture's edge does not cut them.
        const right = x > placed.width * 0.6;
        const text = drawn("text", {
          x: right ? Math.min(placed.width - 2, Math.max(x0, x1)) : Math.max(2, x), "text-anchor": right ? "end" : "start",
          y: Math.min(placed.height - 2, y > size * 1.3 ? y - size * 0.3 : y + size), "font-size": size,
        });
        text.textContent = label;
        return [box, text];
      })));
    return drawn("svg", { viewBox: `0 0 ${placed.width} ${placed.height}`, "aria-hidden": "true" }, ...groups);
  }

  // Pictures are inflated when their sample is opened: the page holds them as text until then.
  function pictures(found, shownLayers) {
    if (found.problem) return [node("p", { class: "alert" }, found.problem)];
    const figures = found.pictures.map((placed, index) => {
      const source = `data:image/jpeg;base64,${get(`picture-${placed.file}`).textContent}`;
      const text = found.captions[index] ?? `image ${index}`;
      const image = node("img", { src: source, alt: text, width: placed.width, height: placed.height });
      const figure = node("figure", {});
      const button = node("button", {
        type: "button", title: "larger or smaller", click: () => figure.classList.toggle("large"),
      }, image, overlay(placed, index, shownLayers));
      const caption = node("figcaption", {}, text);
      image.addEventListener("error", () => caption.append(": cannot be shown by this browser"));
      figure.append(button, caption);
      return figure;
    });
    const toggles = shownLayers.map((layer) => node("button", {
      type: "button", class: `layer ${layer.look}`, "aria-pressed": String(visible(layer)),
      click: () => { state.layers.set(layer.name, !visible(layer)); state.boxes = true; render(); },
    }, node("span", { class: "swatch" }), { given: "given", truth: "true" }[layer.look] ?? layer.name));
    return [
      node("div", { class: figures.length > 6 ? "pictures strip" : "pictures" }, ...figures),
      toggles.length ? node("div", { class: "layers" }, node("small", {}, "boxes"), ...toggles) : null,
    ];
  }

  const folded = (title, text, open = false) =>
    text ? node("details", open ? { open: "" } : {}, node("summary", {}, title), node("pre", {}, text)) : null;

  function pairs(title, found) {
    if (!found.length) return [];
    const items = found.map(([name, text]) => node("div", {}, node("dt", {}, name), node("dd", {}, text)));
    return [node("h4", {}, title), node("dl", { class: "pairs" }, ...items)];
  }

  function explanation(rows) {
    if (!rows.length) return [];
    const items = rows.map(([verdict, text]) => {
      const [mark, word] = VERDICT[verdict];
      return node("li", { class: verdict },
        node("span", { class: "mark", "aria-hidden": "true" }, mark),
        node("span", { class: "word" }, word), node("span", {}, text));
    });
    return [node("h4", {}, "Why it scored as it did"), node("ul", { class: "rows" }, ...items)];
  }

  const runKey = (sample, place) => `${sample.section} ${place}`;
  function chosen(sample, found, place) {
    const answers = found.models[place];
    return answers.find((one) => one.run === state.runs.get(runKey(sample, place))) ?? answers[0];
  }

  function answer(sample, one) {
    if (!one) return [node("p", { class: "state" }, `${STATUS.not_run} not run`)];
    const names = data.sections[sample.section].scores;
    const scored = one.scores.some((mark) => mark !== null);
    const scores = names.map((name, at) => node("span", {}, `${words(name)} ${score(one.scores[at])}`));
    return [
      node("p", { class: "state" },
        node("span", { class: `dot ${one.status}` }, STATUS[one.status]), ` ${words(one.status)}`),
      one.error ? node("p", { class: "error" }, one.error) : null,
      node("p", { class: "scores" }, ...(scored ? scores : ["not scored"])),
      ...explanation(one.rows),
      ...pairs("Judges", one.verdicts),
      ...one.earlier.map((text, step) => folded(`Answer ${step + 1}, before the last question`, text || "(empty)")),
      node("h4", {}, "Answer"),
      node("pre", {}, one.text === null ? "(none)" : one.text || "(empty)"),
      folded("As it was read", one.parsed),
      folded("Reasoning", one.reasoning),
      node("p", { class: "note" }, one.facts.map((fact) => fact.join(" ")).join(" · ")),
    ].filter((child) => child !== null);
  }

  function card(sample, found, place) {
    const now = chosen(sample, found, place);
    const tabs = found.models[place].map((one) => node("button", {
      type: "button", id: `run-${place}-${one.run}`, "aria-pressed": String(one === now),
      click: () => { state.runs.set(runKey(sample, place), one.run); render(`run-${place}-${one.run}`); },
    }, `run ${one.run}`));
    return node("section", { class: "card" }, node("h3", {}, labels(sample)[place]),
      tabs.length ? node("div", { class: "tabs" }, ...tabs) : null, node("div", {}, ...answer(sample, now)));
  }

  // All samples by their frames: what else is asked about the same picture.
  let byFrame = null;
  function related(number) {
    if (!byFrame) {
      byFrame = new Map();
      samples.forEach((sample, place) => sample.frames.forEach((frame) => {
        const key = frame.join(":");
        if (!byFrame.has(key)) byFrame.set(key, []);
        byFrame.get(key).push(place);
      }));
    }
    const found = new Set(samples[number].frames.flatMap((frame) => byFrame.get(frame.join(":"))));
    found.delete(number);
    return [...found].sort((a, b) => a - b);
  }

  function elsewhere(number) {
    const found = related(number);
    if (!found.length) return null;
    const buttons = found.slice(0, 60).map((other) => {
      const sample = samples[other];
      return node("li", {}, node("button", { type: "button", title: sample.id, click: () => open(other) },
        node("strong", {}, data.sections[sample.section].heading), ` ${sample.label} `,
        node("span", { class: "chips" }, ...places(sample).map((place) => chip(sample, place)))));
    });
    const more = found.length > 60 ? `, the first 60 of ${found.length}` : "";
    return node("section", { class: "elsewhere" },
      node("h4", {}, `Also asked about ${samples[number].frames.length > 1 ? "these frames" : "this frame"}${more}`),
      node("ul", {}, ...buttons));
  }

  function render(focus = "") {
    const { current: number, found } = state;
    if (!found) return;
    const sample = samples[number];
    const shownLayers = layers(sample, found);
    const step = (by, text, title) => node("button", { type: "button", title, click: () => go(by) }, text);
    const frame = node("button", { type: "button", title: "all tasks on this frame (f)", click: oneFrame }, "this frame");
    get("sample").replaceChildren(...[
      node("div", { class: "top" }, node("h3", {}, sample.id),
        node("div", { class: "steps" }, frame, step(-1, "↑", "previous (k)"), step(1, "↓", "next (j)"))),
      node("p", { class: "where" }, `${data.sections[sample.section].heading} · ${sample.label} · ${found.where}`),
      ...pictures(found, shownLayers),
      node("div", { class: "cards" }, ...places(sample).map((place) => card(sample, found, place))),
      elsewhere(number),
      node("div", { class: "below" }, folded("Prompt", found.prompt), folded("Truth", found.truth),
        ...pairs("Metadata", found.metadata), ...pairs("Evidence in the scene graph", found.evidence)),
    ].filter((child) => child !== null));
    if (focus) get(focus)?.focus({ preventScroll: true });
  }

  async function open(number, move = true) {
    const turn = (state.turn += 1);
    state.current = number;
    reveal();
    paint();
    // Only a choice of the reader becomes part of the address, so that it can be passed on.
    if (move) history.replaceState(null, "", `#sample-${number}`);
    try {
      const found = await details(number);
      if (turn !== state.turn) return;
      state.found = found;
      render();
    } catch (error) {
      if (turn !== state.turn) return;
      const text = `This sample cannot be read (${error.message}). It needs a browser of 2023 or later.`;
      get("sample").replaceChildren(node("p", { class: "alert" }, text));
    }
  }

  function go(by) {
    const next = state.shown[state.shown.indexOf(state.current) + by];
    if (next !== undefined) open(next);
  }

  function oneFrame() {
    const frames = samples[state.current]?.frames ?? [];
    const names = frames.map(([video, frame]) => `${data.videos[video]} frame ${frame}`);
    const name = names.length > 1 ? `${names[0]} and ${names.length - 1} more` : names[0];
    const keys = new Set(frames.map((frame) => frame.join(":")));
    state.frame = state.frame ? null : { keys, name };
    if (state.frame) for (const id of ["by-section", "by-status", "by-text", "by-least", "by-most"]) get(id).value = "";
    refresh();
  }

  function nextRun() {
    const sample = samples[state.current];
    if (!sample || !state.found) return;
    for (const place of places(sample)) {
      const runs = state.found.models[place].map((one) => one.run);
      const at = runs.indexOf(chosen(sample, state.found, place)?.run);
      if (runs.length) state.runs.set(runKey(sample, place), runs[(at + 1) % runs.length]);
    }
    render();
  }

  const ACTIONS = {
    j: () => go(1), k: () => go(-1), f: oneFrame, r: nextRun, t: theme, "?": help,
    b: () => { state.boxes = !state.boxes; render(); },
    "/": () => { block.scrollIntoView(); get("by-text").focus(); },
  };
  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || get("help").open) return;
    const typing = event.target.closest("input, select, textarea");
    if (typing) {
      if (event.key === "Escape") typing.blur();
      return;
    }
    // Arrows scroll the page elsewhere: they page through samples once the reader is in the list.
    const arrow = document.activeElement === get("list") ? { ArrowDown: "j", ArrowUp: "k" }[event.key] : undefined;
    const action = ACTIONS[arrow ?? event.key];
    if (!action || (!block && !["t", "?"].includes(event.key))) return;
    event.preventDefault();
    action();
  }
  document.addEventListener("keydown", keys);
  if (!block) return;

  const option = (chosenValue, text) => node("option", { value: chosenValue }, text);
  function metaValues() {
    const meta = data.meta.find(({ key }) => key === value("by-key"));
    get("by-value").replaceChildren(option("", "any"), ...(meta?.values ?? []).map((text, code) => option(code, text)));
    get("by-value").disabled = !meta;
  }

  function reset() {
    for (const made of block.querySelectorAll(".filters select, .filters input")) made.value = "";
    get("by-pictures").checked = false;
    state.frame = null;
    metaValues();
    refresh();
  }

  function linked() {
    const number = Number(location.hash.match(/^#sample-(\d+)$/)?.[1] ?? -1);
    return number >= 0 && number < samples.length ? number : -1;
  }

  function start() {
    data.sections.forEach((section, place) => get("by-section").append(option(String(place), section.heading)));
    get("by-section").parentNode.hidden = data.sections.length < 2;
    const models = new Set(data.sections.flatMap((section) => section.labels));
    get("by-model").append(...[...models].map((label) => option(label, label)));
    get("by-key").append(...data.meta.map(({ key }) => option(key, words(key))));
    for (const id of ["by-section", "by-model", "by-status", "by-value", "by-pictures"]) {
      get(id).addEventListener("change", refresh);
    }
    get("by-key").addEventListener("change", () => { metaValues(); refresh(); });
    get("by-order").addEventListener("change", () => { state.current = -1; refresh(); });
    for (const id of ["by-text", "by-least", "by-most"]) get(id).addEventListener("input", refresh);
    get("one-frame").addEventListener("click", oneFrame);
    get("reset").addEventListener("click", reset);
    get("scroller").addEventListener("scroll", paint, { passive: true });
    addEventListener("resize", paint);
    addEventListener("hashchange", () => { if (linked() >= 0) open(linked(), false); });
    for (const hidden of block.querySelectorAll("[hidden].filters, [hidden].panes")) hidden.hidden = false;
    state.current = linked();
    if (state.current >= 0) block.scrollIntoView();
    refresh();
  }

  start();
})();
