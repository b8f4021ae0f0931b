// Show two texts side by side, and mark the words that only one text has.
import { node, text } from "./elements.js";

/** Maximum length of each text. The time to compare grows with the product of both lengths. */
const MOST_WORDS = 600;

/** @param {string} content */
const piecesOf = (content) => content.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

/**
 * The pieces of `own` in order, and whether each is in `other`, by the longest common subsequence of words.
 * Returns null for texts that are too long to compare.
 * @param {string} own
 * @param {string} other
 * @returns {[piece: string, isShared: boolean][] | null}
 */
function sharedPieces(own, other) {
  const [a, b] = [piecesOf(own), piecesOf(other)];
  if (a.length > MOST_WORDS || b.length > MOST_WORDS) return null;
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  /** @type {[string, boolean][]} */
  const pieces = [];
  for (let i = 0, j = 0; i < a.length; i += 1) {
    const canSkip = () => common[i][j + 1] >= common[i + 1][j] && common[i][j + 1] === common[i][j];
    while (j < b.length && a[i] !== b[j] && canSkip()) j += 1;
    const isShared = j < b.length && a[i] === b[j];
    if (isShared) j += 1;
    pieces.push([a[i], isShared]);
  }
  return pieces;
}

/**
 * Mark the differences, unless there is no other text or the texts share no words.
 * @param {string | null} own
 * @param {string | null | undefined} other
 */
export function withDifferences(own, other) {
  if (own === null) return text("pre", "(none)", { tabindex: 0 });
  const pieces = other === null || other === undefined ? null : sharedPieces(own, other);
  if (!pieces || pieces.every(([, isShared]) => !isShared)) return text("pre", own || "(empty)", { tabindex: 0 });
  const marked = pieces.map(([piece, isShared]) => (isShared || !piece.trim() ? piece : text("mark", piece)));
  return node("pre", { tabindex: 0 }, ...marked);
}
