/** What a report's page holds as JSON; `reporting/pages.py` writes it. Fields with default values are left out. */

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
  /** The data sets and models behind all scores. */
  provenance: Table[];
  tabs: Tab[];
  tasks: TaskEntry[];
  /** The key questions about each task. They are the headings of its `answers`. */
  questions: string[];
  statuses: Status[];
  kinds: string[];
  /** Number of samples in a block of details. */
  chunk: number;
  /** Number of samples without pictures for lack of space. */
  bare: number;
}

/** A benchmark on the first screen. `tasks` has the numbers of its tasks, in the order of the board's last columns. */
export interface Tab {
  address: string;
  board: { benchmark: string; title: string; table: Table; unranked: number };
  tasks: number[];
}

export interface TaskEntry {
  address: string;
  heading: string;
  name: string;
  /** A line that describes an example. */
  about: string;
  answers: Cell[];
  primary: string;
  metric: string;
  examples: number;
  /** The models. All data per model has this order. */
  labels: string[];
  unranked: boolean[];
  warnings: string[];
  scores: string[];
  papers: number[];
  /** The position of its first sample in the whole report. */
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

/** The lead of a model over the next model. `p` is corrected by Holm's procedure. */
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
  /** Filters of the gallery that select the samples behind the score. */
  query?: NameAndValue[];
  /** For cells that the page makes: the address and the title of their link. */
  href?: string;
  title?: string;
}

export interface Table {
  title: string;
  columns: Column[];
  rows: Cell[][];
  note?: string;
  /** The drawn form of the table. */
  chart?: Chart;
}

/** A line in a bar: the score of people or of a baseline. */
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

/** The outcome of one model: its mean score, the statuses of its runs by number, its kinds of failure by number. */
export type Outcome = [mean: number | null, statuses: number[], failures: number[]];

/** `codes` holds, for each sample, the numbers of its `values`. */
export interface Filter {
  key: string;
  values: string[];
  codes: number[][];
}

export interface Details {
  captions: string[];
  boxes: DrawnBox[];
  /** The line of the prompt with the question. */
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

/** COCO's compressed run lengths of a mask. The mask is stretched over the image. */
export type DrawnMask = [height: number, width: number, counts: string];

export interface Answer {
  repetition: number;
  status: Status;
  error: string;
  text: string | null;
  reasoning: string;
  scores: (number | null)[];
  facts: NameAndValue[];
  rows: { kind: RowKind; text: string }[];
  parsed?: string;
  boxes?: DrawnBox[];
  verdicts?: NameAndValue[];
  failures?: string[];
  earlier?: string[];
  /** Titles and texts of the same question asked with aids. */
  aided?: NameAndValue[];
}

export type RowKind = "hit" | "miss" | "wrong";

/** A model in a side-by-side view, with the answers of all its runs and the shown answer. */
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

/** The screen of an address: elements of the page, and actions of keys. */
export interface Screen {
  parts: Child[];
  keys: Record<string, () => void>;
}

/** The place that an address names. */
export interface Place {
  task: string;
  sample: string;
  query: URLSearchParams;
  /** The id of the field whose change led here. */
  changed?: string;
}

export type Child = Node | string | null | undefined;

type Listeners = { [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name]) => unknown };

/** Attributes, and event listeners by the name of the event. */
export interface Options extends Listeners {
  // biome-ignore lint/suspicious/noExplicitAny: as wide as the listeners above, of any event
  [name: string]: string | number | boolean | null | undefined | ((event: any) => unknown);
}
