// The page's data: an index that is read at once, and blocks that are inflated when they are shown.
import { get, part } from "./elements.js";

/** @import { AcrossBlock, Details, PageIndex, PaperPart, TaskBlock } from "./shapes.d.ts" */

const MOST_CACHED = 16;

/** @type {PageIndex} */
export const index = JSON.parse(part("index").textContent);

/** Blocks and pictures come after the script, so the first screen does not wait for them. */
export const whenLoaded = new Promise((resolve) => {
  if (document.readyState !== "loading") resolve(undefined);
  else addEventListener("DOMContentLoaded", resolve, { once: true });
});

/** @type {Map<string, Promise<unknown>>} */
const cachedBlocks = new Map();

/** @param {string} id */
async function inflate(id) {
  await whenLoaded;
  const bytes = Uint8Array.from(atob(part(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/**
 * @param {string} id
 * @returns {Promise<any>}
 */
function block(id) {
  const content = cachedBlocks.get(id) ?? inflate(id);
  cachedBlocks.delete(id);
  cachedBlocks.set(id, content);
  for (const old of cachedBlocks.keys()) {
    if (cachedBlocks.size <= MOST_CACHED) break;
    cachedBlocks.delete(old);
  }
  return content;
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
 * The details of one sample.
 * @param {number} number position in the whole report
 * @returns {Promise<Details>}
 */
export const details = async (number) =>
  (await block(`chunk-${Math.floor(number / index.chunk)}`))[number % index.chunk];

/** Whether the report includes a picture. @param {number} file */
export const hasPicture = (file) => get(`picture-${file}`) !== null;

/** @param {number} file */
export const pictureUrl = (file) => `data:image/jpeg;base64,${part(`picture-${file}`).textContent}`;
