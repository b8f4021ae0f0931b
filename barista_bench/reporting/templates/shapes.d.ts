/** What a report's page holds as JSON; `reporting/pages.py` writes it. A field that holds its default is left out. */

export type Status =
  | "ok"
  | "parse_error"
  | "refused"
  | "truncated"
  | "truncated_thinking"
  | "infra_error"
  | "task_error"
  | "not_run";
export type NameAndValue = [name: string, value: string];

export interface PageIndex {
  title: string;
  /** What all figures are of: data sets and models. */
  provenance: Table[];
  tabs: Tab[];
  tasks: TaskEntry[];
  /** The key questions about each task: the heads of its `answers`. */
  questions: string[];
  statuses: Status[];
  kinds: string[];
  /** Samples of one block of details. */
  chunk: number;
  /** How many samples have no pictures, for which there was no room. */
  bare: number;
}

/** A benchmark on the first screen; `tasks` are the numbers of its tasks in the order of the board's last columns. */
export interface Tab {
  address: string;
  board: { benchmark: string; title: string; table: Table; unranked: number };
  tasks: number[];
}

export interface TaskEntry {
  address: string;
  heading: string;
  name: string;
  /** What an example is, in a line. */
  about: string;
  answers: Cell[];
  primary: string;
  metric: string;
  examples: number;
  /** The models, in the order of everything that is said of each. */
  labels: string[];
  unranked: boolean[];
  warnings: string[];
  scores: string[];
  papers: number[];
  /** The number of its first sample, over the whole report. */
  first: number;
  count: number;
}

export interface Column {
  name: string;
  group?: string;
  numeric?: boolean;
}

export interface Bar {
  value: number;
  low?: number | null;
  high?: number | null;
}

/** How far a model is before the next one; `p` after Holm's correction. */
export interface GapToNext {
  below: string;
  difference: number;
  p: number;
  certainty: "sure" | "likely" | "unclear" | "too few" | "none";
  better: number;
  worse: number;
}

export interface Cell {
  text: string;
  extra?: string;
  warn?: boolean;
  notes?: string[];
  bar?: Bar;
  gap?: GapToNext;
  /** Filters of the gallery that lead to the samples behind the figure. */
  query?: NameAndValue[];
  /** Of cells that the page makes: where they lead instead, and what that is. */
  href?: string;
  title?: string;
}

export interface Table {
  title: string;
  columns: Column[];
  rows: Cell[][];
  note?: string;
  /** What is drawn of it. */
  chart?: Chart;
}

/** A line in a bar: the figure of people or of a baseline. */
export interface Mark {
  name: string;
  value: number;
}

export interface TaskBlock {
  facts: NameAndValue[];
  metrics: Table[];
  breakdowns: Table[];
  failures: Table[];
  others: Table[];
  samples: SampleRow[];
  filters: Filter[];
}

export type SampleRow = [
  id: string,
  label: string,
  frames: string,
  firstPicture: number | null,
  pictures: number,
  models: Outcome[],
];

/** Of one model: its mean score, the numbers of its runs' statuses, the numbers of its kinds of failure. */
export type Outcome = [mean: number | null, statuses: number[], failures: number[]];

/** `codes` are, by sample, the numbers of the `values` that it has. */
export interface Filter {
  key: string;
  values: string[];
  codes: number[][];
}

export interface Details {
  captions: string[];
  boxes: DrawnBox[];
  /** The line of the prompt that asks. */
  question: string;
  prompt: string;
  reference: string;
  metadata: NameAndValue[];
  evidence: NameAndValue[];
  pictures: PlacedPicture[];
  problem?: string;
  models: Answer[][];
  related: [task: number, sample: string, label: string][];
}

export interface PlacedPicture {
  file: number;
  width: number;
  height: number;
}

export type DrawnBox = [
  image: number,
  kind: string,
  label: string,
  corners: [x0: number, y0: number, x1: number, y1: number],
  mask: DrawnMask | null,
];

/** COCO's compressed run lengths of a mask that is stretched over the image. */
export type DrawnMask = [height: number, width: number, counts: string];

export interface Answer {
  repetition: number;
  status: Status;
  error: string;
  text: string | null;
  reasoning: string;
  scores: (number | null)[];
  facts: NameAndValue[];
  rows: { verdict: Verdict; text: string }[];
  parsed?: string;
  boxes?: DrawnBox[];
  verdicts?: NameAndValue[];
  failures?: string[];
  earlier?: string[];
  /** Titles and texts of the same question asked with aids. */
  aided?: NameAndValue[];
}

export type Verdict = "hit" | "miss" | "wrong";

/** A model of a task beside another, with the answers of all its runs and the one that is shown. */
export interface Side {
  place: number;
  answers: Answer[];
  answer: Answer | undefined;
}

export interface AcrossBlock {
  tables: Table[];
  graphs: PropagationGraph[];
  left_out: string[];
}

export interface PropagationGraph {
  model: string;
  tasks: string[];
  edges: PropagationEdge[];
}

export interface PropagationEdge {
  source: string;
  target: string;
  n: number;
  odds_ratio: number | null;
  low: number | null;
  high: number | null;
}

export interface PaperPart {
  benchmark: string;
  heading: string;
  tables?: Table[];
}

export interface Chart {
  title: string;
  x: string;
  y: string;
  series: Series[];
  kind: "line" | "bar";
}

export interface Series {
  name: string;
  points: Point[];
}

export type Point = [x: number | string, y: number | null, low?: number | null, high?: number | null];

/** What is under an address: elements of the page, and what keys do there. */
export interface Screen {
  parts: Child[];
  keys: Record<string, () => void>;
}

/** What an address names. */
export interface Place {
  task: string;
  sample: string;
  query: URLSearchParams;
  /** The id of the field whose change led here. */
  changed?: string;
}

export type Child = Node | string | null | undefined;

type Listeners = { [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name]) => unknown };

/** Attributes, and listeners of the event of their name. */
export interface Options extends Listeners {
  // biome-ignore lint/suspicious/noExplicitAny: as wide as the listeners above, of any event
  [name: string]: string | number | boolean | null | undefined | ((event: any) => unknown);
}
