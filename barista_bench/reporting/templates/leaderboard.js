// The first screen: a benchmark's models by its tasks, people and baselines apart and as lines in each bar, a finding a task.
const tabOf = (wanted) => index.tabs.find((tab) => tab.address === wanted) ?? index.tabs[0];

function ordered(table, unranked, at, rising) {
  const models = table.rows.slice(0, table.rows.length - unranked);
  const value = (row) => (at === null ? 0 : Number.parseFloat(row[at].text.replaceAll(",", "").replace("−", "-")));
  const sorted = at === null ? models : [...models].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (Number.isNaN(left) || Number.isNaN(right)) return Number.isNaN(left) - Number.isNaN(right);
    return rising ? left - right : right - left;
  });
  return [sorted, table.rows.slice(table.rows.length - unranked)];
}

function leaderboard(tab) {
  const { table, unranked } = { unranked: 0, ...tab.board };
  const offset = table.columns.length - tab.tasks.length;
  const reference = table.rows.slice(table.rows.length - unranked);
  const marks = table.columns.map((_, at) => reference.filter((row) => row[at].bar && row[at].bar.value < 1)
    .map((row) => ({ name: row[0].text, value: row[at].bar.value })));
  let [sorting, rising] = [null, false];
  const body = node("tbody");
  const foot = node("tbody", { class: "unranked" });
  const head = node("tr", {}, ...table.columns.map((column, at) => {
    if (!at) return text("th", column.name, { scope: "col" });
    const task = at < offset ? null : index.tasks[tab.tasks[at - offset]];
    const sort = node("button", { type: "button", class: "sort", title: "sort by this column", click: () => {
      [sorting, rising] = [at, sorting === at && !rising];
      paint();
    } }, task ? task.primary : column.name);
    const explained = task?.metric ? tip(task.metric) : at < offset ? tip("The tasks' figures measure different things: their mean gives a rough order.") : null;
    return node("th", { scope: "col", class: "number" },
      task ? node("a", { class: "task", href: address(task.address) }, task.name) : null, node("span", { class: "sorter" }, sort, explained));
  }));
  function paint() {
    const [models, others] = ordered(table, unranked, sorting, rising);
    [...head.children].forEach((cell, at) => {
      if (at === sorting) cell.setAttribute("aria-sort", rising ? "ascending" : "descending");
      else cell.removeAttribute("aria-sort");
    });
    body.replaceChildren(...models.map((row) => rowOf(table.columns, row, { marks })));
    const title = node("tr", {}, node("th", { colspan: table.columns.length, scope: "rowgroup" }, "Not ranked (people, baselines, models that were trained on these videos): the thin lines in the bars"));
    foot.replaceChildren(...(others.length ? [title, ...others.map((row) => rowOf(table.columns, row))] : []));
  }
  paint();
  return [
    scrolled(table.title, node("table", { class: "board" }, text("caption", table.title, { class: "hidden" }), node("thead", {}, head), body, foot)),
    text("p", `${table.note} ▲: ahead of the model with the next lower figure by more than chance (p below 0.05, permutation of videos, Holm); ≈: the two cannot be told apart.`, { class: "note" }),
  ];
}

let tips = 0;
function tip(words) {
  const id = `tip-${(tips += 1)}`;
  return node("span", { class: "tip" }, node("button", { type: "button", class: "about", "aria-label": "what this figure is", "aria-describedby": id }, "i"),
    text("span", words, { role: "tooltip", id }));
}

function firstScreen(tab) {
  const tasks = tab.tasks.map((number) => index.tasks[number]);
  return [
    text("h2", tab.board.title),
    ...leaderboard(tab),
    text("h3", "Findings"),
    node("ul", { class: "findings" }, ...tasks.map((task) => node("li", {},
      node("a", { href: address(task.address) }, task.name), ` ${task.finding} `,
      node("small", {}, counted(task.examples, "example"))))),
    node("p", {}, node("a", { href: "#across" }, "Across tasks: agreement, baselines, consistency, propagation of errors")),
  ];
}

async function acrossScreen() {
  const found = await block("across");
  return [
    text("h2", "Across tasks"),
    ...found.graphs.map(graphOf),
    ...found.tables.map((table) => (table.rows.length > 12 ? foldedTable(table) : shownTable(table))),
    ...found.left_out.map((reason) => text("p", `Left out. ${reason}`, { class: "note" })),
  ];
}
