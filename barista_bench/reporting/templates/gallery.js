// The samples of a task as a gallery with filters. Only the tiles in view are in the page, of thousands as of a few.
const TILE = { width: 196, height: 176 };
const FIELDS = ["model", "status", "failure", "better", "worse", "key", "value", "least", "most", "text", "order"];
const ORDERS = { "": "as in the set", up: "lowest score first", down: "highest score first", apart: "models most apart first" };
const severity = (code) => Object.keys(STATUS).indexOf(index.statuses[code]);
const worst = ([, codes]) => index.statuses[codes.reduce((a, b) => (severity(b) > severity(a) ? b : a))];
const { kinds } = index;

// What can be searched at once, and the texts of all details once they are read.
const searched = new Map();
async function searchable(task, found) {
  if (!searched.has(task.address)) {
    const strings = (value) => (typeof value === "string" ? [value] : value && typeof value === "object" ? Object.values(value).flatMap(strings) : []);
    const all = [];
    for (let at = 0; at < found.samples.length; at += 1) {
      const { pictures, related, ...rest } = await details(task.first + at);
      all.push([...found.samples[at].slice(0, 3), ...strings(rest)].join("\n").toLowerCase());
    }
    searched.set(task.address, all);
  }
  return searched.get(task.address);
}

function shownPlaces(task, query) {
  const wanted = task.labels.indexOf(query.get("model") ?? "");
  return wanted < 0 ? [...task.labels.keys()] : [wanted];
}

function passing(task, found, query) {
  const number = (name) => (query.get(name) ? Number(query.get(name)) : null);
  const [least, most] = [number("least"), number("most")];
  const [better, worse] = ["better", "worse"].map((name) => task.labels.indexOf(query.get(name) ?? ""));
  const failure = kinds.indexOf(query.get("failure") ?? "");
  const filter = found.filters.find(({ key }) => key === query.get("key"));
  const code = query.get("value") === null ? -1 : filter?.values.indexOf(query.get("value")) ?? -1;
  const places = shownPlaces(task, query);
  const fits = ([mean, codes, failures]) =>
    (!query.get("status") || codes.some((one) => index.statuses[one] === query.get("status")))
    && (failure < 0 || failures.includes(failure))
    && (least === null || (mean !== null && mean >= least)) && (most === null || (mean !== null && mean <= most));
  const ahead = (models) => {
    if (better < 0 && worse < 0) return true;
    const others = (place) => models.filter((_, at) => at !== place && !task.unranked[at]).map(([mean]) => mean).filter((mean) => mean !== null);
    const high = better >= 0 ? models[better][0] : Math.max(...others(worse));
    const low = worse >= 0 ? models[worse][0] : Math.min(...others(better));
    return high !== null && low !== null && high > low;
  };
  return [...found.samples.keys()].filter((at) => {
    const models = found.samples[at][5];
    return (code < 0 || filter.codes[at].includes(code)) && ahead(models) && places.some((place) => fits(models[place]));
  });
}

async function selected(task, found, query) {
  const wanted = (query.get("text") ?? "").trim().toLowerCase();
  const texts = wanted ? await searchable(task, found) : null;
  const kept = passing(task, found, query).filter((at) => !texts || texts[at].includes(wanted));
  const way = query.get("order");
  if (!way) return kept;
  const places = shownPlaces(task, query);
  const rank = (at) => {
    const means = places.map((place) => found.samples[at][5][place][0]).filter((mean) => mean !== null);
    if (!means.length) return Infinity;
    if (way === "apart") return Math.min(...means) - Math.max(...means);
    const mean = means.reduce((sum, value) => sum + value, 0) / means.length;
    return way === "up" ? mean : -mean;
  };
  const ranks = new Map(kept.map((at) => [at, rank(at)]));
  return kept.sort((a, b) => (ranks.get(a) === ranks.get(b) ? a - b : ranks.get(a) - ranks.get(b)));
}

function mark(status) {
  return node("span", { class: `dot ${status}`, role: "img", "aria-label": words(status) }, STATUS[status]);
}
function chip(task, models, place) {
  const status = worst(models[place]);
  return node("span", { class: "chip", title: `${task.labels[place]}: ${words(status)}` }, mark(status), short(models[place][0], 2));
}

function tile(task, found, kept, row, query) {
  const [id, label, where, picture, , models] = found.samples[kept[row]];
  const places = shownPlaces(task, query);
  const said = places.map((place) => `${task.labels[place]} ${short(models[place][0], 2)}`).join(", ");
  const link = node("a", {
    href: address(task.address, id, query), "data-row": row, title: `${label}\n${where}\n${said}`,
  },
  picture === null || !get(`picture-${picture}`) ? text("span", label || "no picture", { class: "blank" }) : node("img", { src: pictureUrl(picture), alt: "", loading: "lazy" }),
  node("span", { class: "name" }, text("bdi", id)),
  node("span", { class: "chips" }, ...places.slice(0, 6).map((place) => chip(task, models, place))));
  return node("div", { class: "tile", role: "listitem", "aria-setsize": kept.length, "aria-posinset": row + 1 }, link);
}

function grid(task, found, kept, query) {
  const list = node("div", { class: "tiles", role: "list", "aria-label": "samples" });
  const scroller = node("div", { class: "scroller", tabindex: kept.length ? null : 0 }, list);
  let across = 1;
  function paint() {
    across = Math.max(1, Math.floor(scroller.clientWidth / TILE.width));
    list.style.height = `${Math.ceil(kept.length / across) * TILE.height}px`;
    const first = Math.max(0, Math.floor(scroller.scrollTop / TILE.height) - 1) * across;
    const last = Math.min(kept.length, (Math.ceil((scroller.scrollTop + scroller.clientHeight) / TILE.height) + 1) * across);
    const focused = Number(document.activeElement?.dataset?.row ?? -1);
    list.replaceChildren(...Array.from({ length: Math.max(0, last - first) }, (_, at) => {
      const made = tile(task, found, kept, first + at, query);
      made.style.left = `${((first + at) % across) * TILE.width}px`;
      made.style.top = `${Math.floor((first + at) / across) * TILE.height}px`;
      return made;
    }));
    if (focused >= 0) list.querySelector(`[data-row="${focused}"]`)?.focus({ preventScroll: true });
  }
  function move(event) {
    const row = Number(event.target.dataset?.row ?? -1);
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across }[event.key];
    const next = row + (by ?? 0);
    if (row < 0 || !by || next < 0 || next >= kept.length) return;
    event.preventDefault();
    const top = Math.floor(next / across) * TILE.height;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    if (top + TILE.height > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + TILE.height - scroller.clientHeight;
    paint();
    list.querySelector(`[data-row="${next}"]`)?.focus({ preventScroll: true });
  }
  scroller.addEventListener("scroll", paint, { passive: true });
  scroller.addEventListener("keydown", move);
  new ResizeObserver(paint).observe(scroller);
  return scroller;
}

function choice(name, title, options, query, changed) {
  const made = node("select", { id: `by-${name}`, change: () => changed(name, made.value) },
    ...options.map(([value, shown]) => node("option", { value, selected: (query.get(name) ?? "") === value }, shown)));
  return node("label", {}, title, made);
}

function filterBar(task, found, query, changed) {
  const models = task.labels.map((label) => [label, label]);
  const any = [["", "any"]];
  const failing = kinds.filter((_, kind) => found.samples.some(([, , , , , of]) => of.some(([, , failures]) => failures.includes(kind))));
  const statuses = index.statuses.filter((_, code) => found.samples.some(([, , , , , of]) => of.some(([, codes]) => codes.includes(code))));
  const filter = found.filters.find(({ key }) => key === query.get("key"));
  const field = (name, title, type) => {
    const made = node("input", { id: `by-${name}`, type, value: query.get(name) ?? "", step: type === "number" ? 0.1 : null,
      change: () => changed(name, made.value) });
    return node("label", {}, title, made);
  };
  return node("div", { class: "filters" },
    choice("model", "model", [["", "all"], ...models], query, changed),
    choice("better", "better is", [...any, ...models], query, changed),
    choice("worse", "worse is", [...any, ...models], query, changed),
    choice("failure", "failure", [...any, ...failing.map((kind) => [kind, words(kind)])], query, changed),
    choice("status", "status", [...any, ...statuses.map((status) => [status, words(status)])], query, changed),
    found.filters.length ? choice("key", "by", [...any, ...found.filters.map(({ key }) => [key, words(key)])], query, changed) : null,
    filter ? choice("value", words(filter.key), [...any, ...filter.values.map((value) => [value, value])], query, changed) : null,
    field("least", "score from", "number"), field("most", "to", "number"),
    choice("order", "order", Object.entries(ORDERS), query, changed),
    field("text", "search texts", "search"),
    node("a", { class: "button", id: "reset", href: `${address(task.address, "", "all=1")}` }, "reset"));
}

async function gallery(task, found, query) {
  const changed = (name, value) => {
    const next = new URLSearchParams(FIELDS.flatMap((field) => (query.get(field) ? [[field, query.get(field)]] : [])));
    if (value) next.set(name, value);
    else next.delete(name);
    if (name === "key") next.delete("value");
    location.hash = address(task.address, "", next.size ? next : "all=1");
  };
  const kept = await selected(task, found, query);
  const names = task.scores[0] ? `${words(task.scores[0])}, mean over runs: ${shownPlaces(task, query).map((place) => task.labels[place]).join(", ")}` : "";
  return node("section", { id: "samples", class: "part" },
    text("h3", "Samples"),
    index.bare ? text("p", `${counted(index.bare, "sample")} of this report are without pictures, because it has reached its size limit.`, { class: "note" }) : null,
    filterBar(task, found, query, changed),
    node("p", { class: "note" }, text("output", `${kept.length} of ${found.samples.length}`, { id: "count", role: "status" }), ` · ${names} · `,
      ...Object.entries(STATUS).map(([status, shape]) => node("span", { class: "key" }, text("span", shape, { class: `dot ${status}` }), words(status)))),
    kept.length ? grid(task, found, kept, query) : text("p", "No sample passes these filters.", { class: "alert" }));
}
