// Nodes, blocks of data and addresses. Texts come from models and annotations: they only ever become text nodes.
const SVG = "http://www.w3.org/2000/svg";
const STATUS = { ok: "●", parse_error: "▲", refused: "■", truncated: "◆", infra_error: "✕", task_error: "✖", not_run: "○" };
const index = JSON.parse(document.getElementById("index").textContent);
const get = (id) => document.getElementById(id);
const words = (name) => name.replaceAll("_", " ");
const short = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

function fill(made, options, children) {
  for (const [name, value] of Object.entries(options)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}
const node = (tag, options = {}, ...children) => fill(document.createElement(tag), options, children);
const drawn = (tag, options = {}, ...children) => fill(document.createElementNS(SVG, tag), options, children);
const text = (tag, words, options = {}) => node(tag, options, words);
// What is folded is made when it is opened: tables of thousands of cells cost nothing until then.
const unfolding = new WeakMap();
const folded = (title, make, open = false) => {
  const body = node("div");
  const unfold = () => { if (!body.firstChild) body.append(...[make()].flat()); };
  const made = node("details", { class: "block", open, toggle: () => { if (made.open) unfold(); } }, text("summary", title), body);
  unfolding.set(made, unfold);
  if (open) unfold();
  return made;
};

// Blocks stand behind the script, so that the first screen need not wait for them.
const loaded = new Promise((done) => {
  if (document.readyState !== "loading") done();
  else addEventListener("DOMContentLoaded", done, { once: true });
});
const KEPT = 16;
const read = new Map();
async function inflated(id) {
  await loaded;
  const bytes = Uint8Array.from(atob(get(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
function block(id) {
  if (!read.has(id)) read.set(id, inflated(id));
  const wanted = read.get(id);
  read.delete(id);
  read.set(id, wanted);
  for (const old of read.keys()) {
    if (read.size <= KEPT) break;
    read.delete(old);
  }
  return wanted;
}
const details = async (number) => (await block(`chunk-${Math.floor(number / index.chunk)}`))[number % index.chunk];
const pictureUrl = (file) => `data:image/jpeg;base64,${get(`picture-${file}`).textContent}`;

// An address is #task, #task?filters or #task/sample?filters; everything that a reader chooses stands in it.
// Halves of characters, which broken models write, have no place in one.
const encoded = (part) => encodeURIComponent(part.toWellFormed());
const address = (task, sample = "", query = "") =>
  `#${encoded(task)}${sample === "" ? "" : `/${encoded(sample)}`}${String(query) ? `?${query}` : ""}`;
function parsed(hash) {
  const [, path, query] = hash.match(/^#?([^?]*)\??(.*)$/s);
  const parts = path.split("/").map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  return { task: parts[0], sample: parts.slice(1).join("/"), query: new URLSearchParams(query) };
}
