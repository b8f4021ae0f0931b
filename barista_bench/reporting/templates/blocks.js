// The page's data: an index that is read at once, and blocks that are inflated when they are shown.
import { get, part } from "./elements.js";

/** @import { AcrossBlock, Details, PageIndex, PaperPart, TaskBlock } from "./shapes.d.ts" */

const KEPT = 16;

/** @type {PageIndex} */
export const index = JSON.parse(part("index").textContent);

/** Blocks and pictures stand behind the script, so that the first screen need not wait for them. */
export const loaded = new Promise((done) => {
  if (document.readyState !== "loading") done(undefined);
  else addEventListener("DOMContentLoaded", done, { once: true });
});

/** @type {Map<string, Promise<unknown>>} */
const kept = new Map();

/** @param {string} id */
async function inflated(id) {
  await loaded;
  const bytes = Uint8Array.from(atob(part(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/**
 * @param {string} id
 * @returns {Promise<any>}
 */
function block(id) {
  const wanted = kept.get(id) ?? inflated(id);
  kept.delete(id);
  kept.set(id, wanted);
  for (const old of kept.keys()) {
    if (kept.size <= KEPT) break;
    kept.delete(old);
  }
  return wanted;
}

/**
 * @param {number} number
 * @returns {Promise<TaskBlock>}
 */
export const taskBlock = (number) => block(`task-${number}`);

/**
 * @param {number} number
 * @returns {Promise<PaperPart>}
 */
export const paperPart = (number) => block(`paper-${number}`);

/** @returns {Promise<AcrossBlock>} */
export const acrossBlock = () => block("across");

/**
 * All of one sample.
 * @param {number} number over the whole report
 * @returns {Promise<Details>}
 */
export const details = async (number) =>
  (await block(`chunk-${Math.floor(number / index.chunk)}`))[number % index.chunk];

/** Whether the report had room for a picture. @param {number} file */
export const hasPicture = (file) => get(`picture-${file}`) !== null;

/** @param {number} file */
export const pictureUrl = (file) => `data:image/jpeg;base64,${part(`picture-${file}`).textContent}`;
