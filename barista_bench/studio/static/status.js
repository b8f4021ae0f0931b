// The status line: what just happened, for eyes and screen readers.

/**
 * An element of index.html.
 * @param {string} id
 */
export function part(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no ${id}`);
  return element;
}

/** @param {string} text */
export function say(text) {
  part("status").textContent = text;
}

/** The message of an error. @param {unknown} error */
export const reasonOf = (error) => (error instanceof Error ? error.message : String(error));

/**
 * Runs the action of a click; the page shows its error.
 * @template {unknown[]} Given
 * @template Result
 * @param {(...given: Given) => Result | Promise<Result>} action
 */
export const explained =
  (action) =>
  /**
   * @param {Given} given
   * @returns {Promise<Result | undefined>}
   */
  async (...given) => {
    try {
      return await action(...given);
    } catch (error) {
      say(reasonOf(error));
      return undefined;
    }
  };
