// What all views share: elements, requests, the status line.

/** An element. Properties: `class`, attributes; functions are listeners of the event of that name. Strings become text. */
export function node(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(key, value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** As `node`, of SVG. */
export function drawn(name, properties = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(properties)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export const button = (label, click, properties = {}) => node("button", { type: "button", click, ...properties }, label);

async function answered(response) {
  const body = await response.json();
  if (!response.ok) throw new Error(body.error ?? response.statusText);
  return body;
}

/** JSON of this server. */
export async function ask(path, query = {}) {
  return answered(await fetch(`${path}?${new URLSearchParams(query)}`));
}

export async function send(path, body) {
  return answered(await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }));
}

/** What just happened, for eyes and screen readers. */
export function say(text) {
  document.getElementById("status").textContent = text;
}

/** Runs what a click starts: an error is said, not lost. */
export const explained = (action) => async (...given) => {
  try {
    return await action(...given);
  } catch (error) {
    say(error.message);
    return undefined;
  }
};

/** A form whose fields `submit(form)` hands in, without leaving the page. */
export const form = (properties, submit, ...children) => node("form", { ...properties, submit: explained(async (event) => {
  event.preventDefault();
  await submit(event.target);
}) }, ...children);

/** Items under a heading that counts them. */
export const listed = (title, items) => [node("h4", {}, `${title} (${items.length})`),
  node("ul", { class: "facts-list" }, ...items.map((item) => node("li", {}, item)))];

/** Panels of which one is shown: `panels` promise their elements by title, `fill()` asks the one that is open again. */
export function tabbed(label, panels, open = Object.keys(panels)[0]) {
  const content = node("div", { class: "content" });
  const nameOf = (element) => element.getAttribute("aria-label") ?? element.textContent;
  let turn = 0;
  const fill = explained(async () => {
    const mine = turn += 1;
    for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.textContent === open));
    const made = await panels[open]();
    if (mine !== turn) return;
    const focused = content.contains(document.activeElement) ? nameOf(document.activeElement) : null;
    content.replaceChildren(...made);
    if (focused !== null) [...content.querySelectorAll("button, input, select")].find((element) => nameOf(element) === focused)?.focus();
  });
  const tabs = Object.keys(panels).map((title) => button(title, () => {
    open = title;
    fill();
  }));
  return { element: node("section", { class: "side", "aria-label": label }, node("div", { class: "tabs" }, ...tabs), content), fill };
}

/** Follows a pressed pointer: `move(event)` wherever it goes, `end(event)` when it is lifted. */
export function follow(press, move, end) {
  const target = press.currentTarget;
  target.setPointerCapture(press.pointerId);
  target.addEventListener("pointermove", move);
  target.addEventListener("pointerup", (event) => {
    target.removeEventListener("pointermove", move);
    end(event);
  }, { once: true });
}

/** Waits for work in the background, as long as `element` is shown; `told(progress)` hears how far it is. Throws where it fails. */
export async function finished(progress, told, element = document.body) {
  for (;;) {
    const now = await progress();
    if (now.state === "failed") throw new Error(now.problem);
    if (now.state !== "running" && now.state !== "waiting") return;
    told(now);
    await new Promise((done) => { setTimeout(done, 300); });
    if (!element.isConnected) throw new Error("left");
  }
}

/** Minutes, seconds and hundredths. */
export function clock(seconds) {
  return `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(2).padStart(5, "0")}`;
}
