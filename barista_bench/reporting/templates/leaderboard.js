// A benchmark's models by task. People and baselines are listed separately, and drawn as lines in each bar.
import { address } from "./addresses.js";
import { index } from "./blocks.js";
import { node, text } from "./elements.js";
import { failuresOf } from "./failures.js";
import { ANY_FAILURE } from "./filters.js";
import { rowOf, scrollArea } from "./tables.js";

/** @import { Cell, Column, Tab, Table } from "./shapes.d.ts" */

const UNRANKED = "Not ranked (people, baselines, models that were trained on these videos): the thin lines in the bars";
const SUMMARY =
  "Each task's primary metric with its 95% interval. ▲ ahead of the next model below, △ likely " +
  "ahead, ≈ no clear difference.";
const MARKS =
  "▲: the difference to the next model below is significant (p below 0.05, permutation of resampling " +
  "units, Holm); " +
  "△: likely, p is below 0.05 only before Holm's correction; ≈: no clear difference; too few " +
  "videos: with 5 units or fewer, p cannot be below 0.05.";
const RANKS =
  "A model's rank, averaged over tasks. The rank in a task is 1 plus the number of models whose interval is " +
  "entirely above its own. Baselines, people and incomplete runs have no rank.";

/**
 * Sort rows by the number in a column. Rows without a number come last. Without a column, keep the order.
 * @param {Cell[][]} rows
 * @param {number | null} column
 * @param {boolean} isRising
 */
function sortedRows(rows, column, isRising) {
  if (column === null) return rows;
  /** @param {Cell[]} row */
  const value = (row) => Number.parseFloat(row[column].text.replaceAll(",", "").replace("−", "-"));
  return [...rows].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (Number.isNaN(left) || Number.isNaN(right)) return Number(Number.isNaN(left)) - Number(Number.isNaN(right));
    return isRising ? left - right : right - left;
  });
}

let tips = 0;

/** A button whose text shows on hover and on focus. @param {string} content */
function tip(content) {
  tips += 1;
  const id = `tip-${tips}`;
  const about = { type: "button", class: "about", "aria-label": "what this value means", "aria-describedby": id };
  return node("span", { class: "tip" }, node("button", about, "i"), text("span", content, { role: "tooltip", id }));
}

/**
 * @param {Table} table
 * @param {Cell[][]} unranked
 */
function marksOf(table, unranked) {
  return table.columns.map((_, at) =>
    unranked.flatMap((row) => {
      const { bar } = row[at];
      return bar && bar.value < 1 ? [{ name: row[0].text, value: bar.value }] : [];
    }),
  );
}

/** @param {Tab} tab */
export function leaderboard({ tasks, board: { table, unranked } }) {
  const offset = table.columns.length - tasks.length;
  const ranked = table.rows.length - unranked;
  const [models, others] = [table.rows.slice(0, ranked), table.rows.slice(ranked)];
  const marks = marksOf(table, others);
  /** @type {number | null} */
  let sorting = null;
  let isRising = false;

  /**
   * A row. Its numbers link to the model's worst samples, and its name links to all failures of the model.
   * @param {Cell[]} row
   * @returns {Cell[]}
   */
  const linked = (row) =>
    row.map((cell, at) => {
      const label = row[0].text;
      if (!at) return { ...cell, href: failuresOf(label), title: `failures of ${label}` };
      if (at < offset || cell.text === "–") return cell;
      const task = index.tasks[tasks[at - offset]];
      const query = new URLSearchParams({ model: label, failure: ANY_FAILURE, order: "up" });
      return { ...cell, href: address(task.address, "", query), title: `failures of ${label} in ${task.name}` };
    });

  /**
   * @param {Column} column
   * @param {number} at
   */
  const headOf = (column, at) => {
    if (!at) return text("th", column.name, { scope: "col" });
    const task = at < offset ? null : index.tasks[tasks[at - offset]];
    const sort = () => {
      [sorting, isRising] = [at, sorting === at ? !isRising : at < offset];
      paint();
    };
    const look = { type: "button", class: "sort", title: "sort by this column", click: sort };
    const explanation = task ? `Each example: ${task.about}. ${task.metric}` : RANKS;
    return node(
      "th",
      { scope: "col", class: "number" },
      task ? node("a", { class: "task", href: address(task.address) }, task.name) : null,
      node(
        "span",
        { class: "sorter" },
        node("button", look, task ? task.primary : column.name),
        explanation ? tip(explanation) : null,
      ),
    );
  };

  const head = node("tr", {}, ...table.columns.map(headOf));
  const body = node("tbody");
  const foot = node("tbody", { class: "unranked" });
  function paint() {
    [...head.children].forEach((cell, at) => {
      const sorter = cell.querySelector(".sort");
      if (at === sorting) {
        cell.setAttribute("aria-sort", isRising ? "ascending" : "descending");
        sorter?.setAttribute("data-icon", isRising ? "arrow-up" : "arrow-down");
      } else {
        cell.removeAttribute("aria-sort");
        sorter?.removeAttribute("data-icon");
      }
    });
    const sortedModels = sortedRows(models, sorting, isRising);
    body.replaceChildren(...sortedModels.map((row) => rowOf(table.columns, linked(row), { marks })));
  }
  paint();
  if (others.length) {
    const title = node("th", { colspan: table.columns.length, scope: "rowgroup" }, UNRANKED);
    foot.append(node("tr", {}, title), ...others.map((row) => rowOf(table.columns, linked(row))));
  }
  const caption = text("caption", table.title, { class: "hidden" });
  return [
    scrollArea(table.title, node("table", { class: "board" }, caption, node("thead", {}, head), body, foot)),
    node(
      "details",
      { class: "note" },
      node("summary", {}, `${SUMMARY} `, text("span", "more", { class: "more" })),
      text("p", `${table.note} ${MARKS}`),
    ),
  ];
}
