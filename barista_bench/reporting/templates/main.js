// What is shown is told by the address alone; keys, theme and help.
const THEMES = ["auto", "dark", "light"];
function theme() {
  const root = document.documentElement;
  const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "auto") + 1) % THEMES.length];
  root.dataset.theme = next;
  get("theme").textContent = `theme: ${next}`;
}
const help = () => (get("help").open ? get("help").close() : get("help").showModal());

let turn = 0;
let actions = {};
let before = null;
async function screen({ task: wanted, sample, query }) {
  const task = index.tasks.find((one) => one.address === wanted);
  if (!task) {
    const made = wanted === "across" ? await acrossScreen() : firstScreen(tabOf(wanted));
    return { made, keys: {} };
  }
  const found = await block(`task-${index.tasks.indexOf(task)}`);
  await loaded; // pictures stand at the end of the page
  if (sample) return sampleScreen(task, found, sample, query, () => show(true));
  const made = await taskScreen(task, found);
  if (found.samples.length) made.push(await gallery(task, found, query));
  return { made, keys: { Escape: () => { location.hash = ""; }, "/": () => get("by-text")?.focus() } };
}

function tabs(current) {
  const shown = current.task;
  const task = index.tasks.findIndex((one) => one.address === shown);
  const active = task < 0 ? tabOf(shown) : index.tabs.find((tab) => tab.tasks.includes(task));
  const marked = shown === "across" ? null : active;
  get("tabs").replaceChildren(...index.tabs.map((tab) => node("a", {
    href: `#${tab.address}`, "aria-current": tab === marked ? (task < 0 ? "page" : "true") : null,
  }, tab.board.title)));
}

async function show(again = false) {
  const mine = (turn += 1);
  const now = parsed(location.hash);
  tabs(now);
  try {
    const { made, keys } = await screen(now);
    if (mine !== turn) return;
    const focused = again ? document.activeElement?.id : "";
    get("main").replaceChildren(...made);
    actions = keys;
    const task = index.tasks.some((one) => one.address === now.task);
    if (focused) get(focused)?.focus({ preventScroll: true });
    else if (task && !now.sample && now.query.size) get("samples")?.scrollIntoView();
    else if (before !== null && !again) scrollTo(0, 0);
    if (before !== null && !again && !focused) get("main").focus({ preventScroll: true });
    const field = before?.task === now.task && !now.sample && before?.changed;
    if (field) get(field)?.focus({ preventScroll: true });
    before = now;
  } catch (error) {
    if (mine === turn) get("main").replaceChildren(text("p", `This part cannot be read (${error.message}). It needs a browser of 2023 or later.`, { class: "alert" }));
  }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || get("help").open) return;
  const typing = event.target.closest("input:not([type=range]), select, textarea");
  if (typing) {
    if (event.key === "Escape") typing.blur();
    return;
  }
  if (event.target.closest(".tile, input") && event.key.startsWith("Arrow")) return;
  const action = { t: theme, "?": help, ...actions }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
// What is folded on screen is printed all the same.
addEventListener("beforeprint", () => {
  for (const closed of document.querySelectorAll("main details:not([open])")) {
    unfolding.get(closed)?.();
    closed.open = true;
  }
});
addEventListener("hashchange", () => {
  if (before) before.changed = document.activeElement?.id ?? "";
  show();
});
get("theme").addEventListener("click", theme);
get("ask").addEventListener("click", help);
document.querySelector(".tools").hidden = false;
show();
