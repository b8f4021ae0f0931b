// Names, counts and times as people read them.

/** @param {string} name */
export const words = (name) => name.replaceAll("_", " ");

/**
 * @param {number} count
 * @param {string} noun
 */
export const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Minutes, seconds and hundredths. @param {number} seconds */
export const clock = (seconds) => `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(2).padStart(5, "0")}`;
