// Started commands: state, the end of the output, and possible actions.
import { button, node } from "./elements.js";
import { ask, send } from "./server.js";
import { explained, say } from "./status.js";
import { minutes } from "./words.js";

/** @import { Job } from "./home_shapes.d.ts" */

const PAUSE = 700; // milliseconds between two questions how far jobs are

/** The table, and a function that loads it again: at once, and as long as a command runs. */
export function jobTable() {
  const list = node("div", { class: "jobs" });
  const element = node("section", { class: "side", "aria-label": "Commands" }, list);
  /** @type {Map<number, ReturnType<typeof jobCard>>} */
  const cards = new Map();
  let timer = 0;
  const refresh = async () => {
    clearTimeout(timer);
    const { jobs } = await ask("/api/jobs");
    for (const job of jobs) {
      const card = cards.get(job.number) ?? jobCard(job, refresh);
      cards.set(job.number, card);
      card.fill(job);
    }
    const elements = jobs.map(({ number }) => cards.get(number)?.element ?? "");
    const empty = node(
      "p",
      { class: "empty" },
      "No commands yet. Commands that you start appear here and continue when you leave this page.",
    );
    list.replaceChildren(...(elements.length ? elements : [empty]));
    const isRunning = jobs.some(({ state }) => state === "running");
    if (isRunning && element.isConnected) timer = setTimeout(explained(refresh), PAUSE);
  };
  return { element, refresh };
}

/**
 * @param {Job} job
 * @param {() => Promise<void>} refresh
 */
function jobCard({ number, title, line }, refresh) {
  const state = node("span", { class: "job-state" });
  const output = node("pre", { tabindex: 0, "aria-label": `output of ${title}` });
  const actions = node("p", { class: "controls" });
  const element = node(
    "article",
    { class: "job" },
    node("h3", {}, title, state),
    node("code", { class: "command-line" }, line),
    output,
    actions,
  );
  const stop = async () => {
    await send("/api/jobs/cancel", { job: number });
    await refresh();
  };
  const cancel = button("cancel", stop, { "data-icon": "x" });
  /** @param {Job} now */
  const fill = (now) => {
    if (element.dataset.state !== now.state) {
      element.dataset.state = now.state;
      actions.replaceChildren(...(now.state === "running" ? [cancel] : now.makes ? [openButton(now.makes)] : []));
    }
    state.textContent = ` ${now.state === "failed" ? `failed (${now.code})` : now.state}, ${minutes(now.seconds)}`;
    if (output.textContent === now.output) return;
    output.textContent = now.output;
    output.scrollTop = output.scrollHeight;
  };
  return { element, fill };
}

/** Opens a folder in the studio, and shows the home page with it. @param {string} path */
export function openButton(path) {
  const open = async () => {
    say(`opening ${path} ...`);
    await send("/api/open", { path });
    location.hash = "#/";
    location.reload();
  };
  return button(`open ${path}`, open, { "data-icon": "folder-open" });
}
