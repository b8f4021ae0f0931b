// One sample: its frames, the answers of two models side by side, and all that was asked.
const runs = new Map();
const pairOf = { chosen: [] };

function usualPair(task, models, query) {
  const wanted = [query.get("better") ?? query.get("model"), query.get("worse")].map((label) => task.labels.indexOf(label ?? ""));
  const kept = pairOf.chosen.map((label) => task.labels.indexOf(label));
  const first = [wanted[0], kept[0] ?? -1, 0].find((place) => place >= 0);
  const second = [wanted[1], kept[1] ?? -1, ...task.labels.keys()].find((place) => place >= 0 && place !== first);
  return second === undefined ? [first] : [first, second];
}

async function sampleScreen(task, found, id, query, again) {
  const at = found.samples.findIndex(([known]) => known === id);
  if (at < 0) return { made: [text("p", `${task.heading} has no sample ${id} in this report.`, { class: "alert" })], keys: {} };
  const [, label, where, , , models] = found.samples[at];
  const kept = await selected(task, found, query);
  const held = await details(task.first + at);
  const row = kept.indexOf(at);
  const other = (by) => (row >= 0 ? kept[row + by] : undefined);
  const link = (by) => (other(by) === undefined ? null : address(task.address, found.samples[other(by)][0], query));
  const pair = usualPair(task, models, query).map((place) => {
    const answers = held.models[place];
    return { place, answers, answer: answers.find(({ run }) => run === runs.get(`${task.address} ${place}`)) ?? answers[0] };
  });
  const chosen = (place, run) => { runs.set(`${task.address} ${place}`, run); again(); };
  const view = stage(task, held, pair);
  const pick = (side) => {
    const made = node("select", { id: `side-${side}`, change: () => {
      pairOf.chosen = pair.map(({ place }) => task.labels[place]);
      pairOf.chosen[side] = task.labels[made.value];
      for (const name of ["better", "worse", "model"]) query.delete(name);
      again();
    } }, ...task.labels.map((name, place) => node("option", { value: place, selected: place === pair[side]?.place }, name)));
    return node("label", {}, side ? "beside" : "model", made);
  };
  const nextRun = () => {
    for (const { place, answers, answer } of pair) {
      if (answers.length) runs.set(`${task.address} ${place}`, answers[(answers.indexOf(answer) + 1) % answers.length].run);
    }
    again();
  };
  const go = (by) => () => { if (link(by)) location.hash = link(by); };
  const all = node("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "all models" }, node("table", {},
    text("caption", "all models", { class: "hidden" }),
    node("tbody", {}, ...task.labels.map((name, place) => node("tr", {}, text("th", name, { scope: "row" }),
      node("td", {}, chip(task, models, place)), text("td", (held.models[place][0]?.text ?? "(none)").slice(0, 160), { class: "text" }))))));
  const related = held.related.map(([section, sample, named]) => node("li", {},
    node("a", { href: address(index.tasks[section].address, sample) }, `${index.tasks[section].heading}: ${named || sample}`)));
  const made = [
    node("nav", { class: "crumbs", "aria-label": "place" }, node("a", { href: address(task.address, "", query.size ? query : "all=1") }, `${task.heading}, all samples`),
      node("span", {}, row >= 0 ? ` ${row + 1} of ${kept.length} ` : " not among those chosen "),
      link(-1) ? node("a", { href: link(-1), class: "button", title: "previous (k)" }, "↑ previous") : null,
      link(1) ? node("a", { href: link(1), class: "button", title: "next (j)" }, "↓ next") : null),
    text("h2", id, { class: "id" }), text("p", `${label} · ${where}`, { class: "where" }),
    "studio" in document.documentElement.dataset
      ? node("p", {}, node("a", { href: `/#/example/${encodeURIComponent(id)}`, class: "button" }, "see this moment of the video")) : null,
    view.made,
    node("div", { class: "filters" }, ...pair.map((_, side) => pick(side))),
    node("div", { class: "cards" }, ...pair.map((one, side) => card(task, one, pair[1 - side]?.answer, chosen))),
    node("div", { class: "below" }, opened("Truth", held.truth, true), opened("Prompt as sent", held.prompt),
      pairs("Metadata", held.metadata), pairs("Evidence in the scene graph", held.evidence)),
    task.labels.length > 2 ? [text("h3", "All models"), all] : null,
    related.length ? [text("h3", "Also asked about these frames"), node("ul", { class: "related" }, ...related)] : null,
  ].flat().filter(Boolean);
  const step = (by) => () => view.step?.(by);
  const keys = { j: go(1), k: go(-1), r: nextRun, b: view.toggle, ArrowRight: step(1), ArrowLeft: step(-1),
    Escape: () => { location.hash = address(task.address, "", query.size ? query : "all=1"); } };
  return { made, keys };
}
