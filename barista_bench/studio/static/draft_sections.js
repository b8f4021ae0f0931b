// The sections of a domain file: its lines by their key, with a heading and a purpose.
import { words } from "./words.js";

/** @import { DraftLine } from "./draft_shapes.d.ts" */

/** @typedef {{ key: string, lines: DraftLine[] }} Section */

/** @type {Record<string, [title: string, about: string]>} */
const TITLES = {
  version: ["The file", "Its version, and a name for what is done in the videos."],
  categories: ["Things", "Names of objects; a vague name says less than its `type`."],
  hands: ["Hands", "The names of the left and the right hand."],
  contact_type: ["Hands and things", "Relations between hands and things, with the forms of their verbs."],
  place_type: ["Places", "Relations between things, in the words of questions."],
  attributes: ["Values", "Each line lists values that exclude one another."],
  verbs: ["Verbs alike", ""],
  nouns: ["Names alike", ""],
  stratum: ["Strata", ""],
  opposites: ["Opposites", ""],
  divisible: ["Stuff", ""],
  uncounted: ["Names without an article", ""],
  handyvqa: ["HanDyVQA", "Words of its questions for actions, places and states."],
  egocot: ["EgoCoT-Bench", ""],
  tog_bench: ["ToG-Bench", "Words for a person's requests, and paraphrases of things."],
  vista: ["ViSTa", "Its prompt, and the objects and states that it names."],
};
/** Keys that belong to the section of the key before, by key. @type {Record<string, string>} */
const JOINED = { name: "version", vague: "categories", contacts: "contact_type", places: "place_type" };

/**
 * The lines in the order of the file.
 * @param {DraftLine[]} lines
 */
export function sectionsOf(lines) {
  /** @type {Section[]} */
  const sections = [];
  /** Lines before a key belong to it. @type {DraftLine[]} */
  let leading = [];
  let isFamily = false;
  const open = (/** @type {string} */ key) => {
    if (!sections.length || JOINED[key] !== sections[sections.length - 1].key) sections.push({ key, lines: [] });
  };
  for (const line of lines) {
    const [, key = ""] = /^(\w+):/.exec(line.text) ?? [];
    const [, family = ""] = (isFamily && /^ {2}(\w+):/.exec(line.text)) || [];
    if (key) isFamily = key === "families";
    if (line.text.startsWith("#") || key === "families") {
      leading.push(line);
      continue;
    }
    if (!sections.length || family || key) open(family || key);
    sections[sections.length - 1].lines.push(...leading, line);
    leading = [];
  }
  if (leading.length) sections.push({ key: "", lines: leading });
  return sections;
}

/**
 * Heading of a section, and a line with its purpose: a comment of the file, where it has one.
 * @param {Section} section
 */
export function titleOf({ key, lines }) {
  const [title, about] = TITLES[key] ?? [words(key), ""];
  const comments = lines.map(({ text }) => /^\s*# ?(.*)/.exec(text)?.[1] ?? "").filter(Boolean);
  return { title, about: comments.join(" ") || about };
}
