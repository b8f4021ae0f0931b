// One task: its figures, the breakdowns that separate models most, failures, the paper's counterpart, then samples.
const BREAKDOWNS = 3;

async function papersOf(task) {
  const parts = await Promise.all(task.papers.map((number) => block(`paper-${number}`)));
  return parts.flatMap((part) => {
    const charts = part.charts ?? [];
    return (part.tables ?? []).map((table, at) => folded(`${part.heading}: ${table.title}`, () => {
      const chart = charts.find(({ title }) => table.title.startsWith(title));
      return [chart ? chartOf(chart) : null, ...tableOf(table)].filter(Boolean);
    }, at === 0));
  });
}

async function taskScreen(task, found) {
  const options = { task: task.address };
  const papers = await papersOf(task);
  const [near, far] = [found.breakdowns.slice(0, BREAKDOWNS), found.breakdowns.slice(BREAKDOWNS)];
  return [
    text("h2", task.heading),
    text("p", task.finding, { class: "finding" }),
    node("p", { class: "leads" }, found.samples.length ? node("a", { href: address(task.address, "", "all=1"), class: "button" }, `All ${counted(found.samples.length, "sample")}`) : null,
      ...(task.labels.length > 1 ? [node("a", { href: address(task.address, "", "order=apart"), class: "button" }, "Where models differ most")] : [])),
    ...task.warnings.map((warning) => text("p", warning, { class: "alert" })),
    ...found.figures.map((table) => shownTable(table, options)),
    ...found.failures.map((table) => shownTable(table, options)),
    ...near.map((table) => (table.folded ? foldedTable(table, options) : shownTable(table, options))),
    ...(far.length ? [folded(`${counted(far.length, "more breakdown")}`, () => far.map((table) => shownTable(table, options)))] : []),
    ...(papers.length ? [text("h3", "Counterparts of the paper's tables"), ...papers] : []),
    folded("Coverage, details, timing, settings", () => [
      node("dl", { class: "facts" }, ...found.facts.map(([name, value]) => node("div", {}, text("dt", name), text("dd", value)))),
      ...found.others.map((table) => (table.rows.length > 12 ? foldedTable(table, options) : shownTable(table, options))),
    ]),
  ];
}
