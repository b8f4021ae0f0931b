// Requests to the studio's server. shapes.d.ts has the request and answer of each path.
/** @import { Progress } from "./home_shapes.d.ts" */
/** @import { Reads, Writes } from "./shapes.d.ts" */

const PAUSE = 300; // milliseconds between two requests for progress

/** A refusal of the server, and its reason. */
export class RefusedError extends Error {
  /**
   * @param {string} message
   * @param {number} status 409 if another person has changed something in the meantime
   */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/**
 * A path of the server as the page asks for it: it lies below the page's own. @param {string} path
 */
export const below = (path) => new URL(path.slice(1), document.baseURI).href;

/** @param {Response} response */
async function bodyOf(response) {
  const body = await response.json();
  if (!response.ok) throw new RefusedError(body.error ?? response.statusText, response.status);
  return body;
}

/**
 * @template {keyof Reads} Path
 * @param {Path} path
 * @param {Record<string, string | number>} [query]
 * @returns {Promise<Reads[Path]>}
 */
export async function ask(path, query = {}) {
  const parts = Object.entries(query).map(([name, value]) => [name, String(value)]);
  return bodyOf(await fetch(`${below(path)}?${new URLSearchParams(parts)}`));
}

/**
 * @template {keyof Writes} Path
 * @param {Path} path
 * @param {Writes[Path]["sent"]} body
 * @returns {Promise<Writes[Path]["answer"]>}
 */
export async function send(path, body) {
  const headers = { "content-type": "application/json" };
  return bodyOf(await fetch(below(path), { method: "POST", headers, body: JSON.stringify(body) }));
}

/**
 * Waits for work in the background, as long as `element` is shown; `onProgress(now)` hears how far it is. Throws where
 * the work fails.
 * @template {Progress} State
 * @param {() => Promise<State>} progress
 * @param {(now: State) => void} onProgress
 * @param {Element} [element]
 */
export async function waitUntilDone(progress, onProgress, element = document.body) {
  for (;;) {
    const now = await progress();
    if (now.state === "failed") throw new Error(now.problem);
    if (now.state !== "running" && now.state !== "waiting") return;
    onProgress(now);
    await new Promise((done) => {
      setTimeout(done, PAUSE);
    });
    if (!element.isConnected) throw new Error("left");
  }
}

/**
 * Calls `work` with the newest input: input that arrives during a call replaces waiting input.
 * Promises the last result.
 * @template Input
 * @template Result
 * @param {(input: Input) => Promise<Result>} work
 */
export function newestOf(work) {
  /** @type {Input[]} */
  let pending = [];
  /** @type {Promise<Result> | null} */
  let running = null;
  const run = async () => {
    /** @type {Result} */
    let result;
    try {
      do {
        const [input] = pending.splice(0);
        result = await work(input);
      } while (pending.length);
    } finally {
      running = null;
    }
    return result;
  };
  return (/** @type {Input} */ input) => {
    pending = [input];
    running ??= run();
    return running;
  };
}

const MOST_KEPT = 60;

/**
 * Keeps the answers last asked for; `forget()` them.
 * @template Answer
 * @param {(key: number) => Promise<Answer>} fetch
 */
export function caching(fetch) {
  /** @type {Map<number, Promise<Answer>>} */
  const answers = new Map();
  /** @param {number} key */
  const recall = (key) => {
    const answer = answers.get(key);
    if (answer) return answer;
    const request = fetch(key);
    answers.set(key, request);
    request.catch(() => answers.delete(key));
    if (answers.size > MOST_KEPT) {
      const [oldest] = answers.keys();
      answers.delete(oldest);
    }
    return request;
  };
  return Object.assign(recall, { forget: () => answers.clear() });
}
