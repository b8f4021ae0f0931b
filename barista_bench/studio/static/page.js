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

export const sleep = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });

/** Minutes, seconds and hundredths. */
export function clock(seconds) {
  return `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(2).padStart(5, "0")}`;
}
