// Names, counts and times as people read them.

/** @param {string} name */
export const words = (name) => name.replaceAll("_", " ");

/**
 * @param {number} count
 * @param {string} noun
 */
export const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** Minutes, seconds and hundredths. @param {number} seconds */
export const clock = (seconds) => `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(2).padStart(5, "0")}`;

/** Minutes and seconds, with hours where there are any. @param {number} seconds */
export function minutes(seconds) {
  const whole = Math.round(seconds);
  const parts = [Math.floor(whole / 60) % 60, whole % 60].map((part) => String(part).padStart(2, "0"));
  return whole < 3600 ? parts.join(":").replace(/^0/, "") : `${Math.floor(whole / 3600)}:${parts.join(":")}`;
}
