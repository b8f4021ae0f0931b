import type { AskingReads, AskingWrites, GivenAnswer } from "./asking_shapes.d.ts";
import type { DraftReads, DraftWrites } from "./draft_shapes.d.ts";
import type { Folder, Found, Job, Opened, Progress, VideoCard, Workshop } from "./home_shapes.d.ts";

/** What the studio's server sends and takes as JSON (`studio/*.py`), and the rows and masks that views make of it. */

/** Half-open, in frames from 0. */
export type FrameRange = [start: number, end: number];

/** In pixels of the frame. */
export type Box = [x: number, y: number, width: number, height: number];

/** COCO's compressed run lengths. */
export interface Mask {
  counts: string;
  size: [height: number, width: number];
}

export interface UnusableMask {
  problem: string;
}

/** A point of a picture, in its pixels. */
export interface Point {
  x: number;
  y: number;
}

/** What is drawn over a frame; `offered` by somebody, and not accepted. */
export interface Instance {
  object: string;
  name: string;
  box: Box | null;
  mask: Mask | UnusableMask;
  id?: string;
  offered?: boolean;
}

// What is open
export type VideoKind = "graph" | "project";

export interface Footage {
  width: number;
  height: number;
  frames: number;
  fps: number;
  /** When each frame begins. */
  seconds: number[];
  version: string;
  /** A small copy is made beside the copy. */
  has_small: boolean;
  copy: Progress;
}

/** Where each frame lies in a copy, in bytes. */
export interface Samples {
  codec: string;
  /** Of the decoder, in base64. */
  description: string;
  offsets: number[];
  sizes: number[];
  /** Their frames. */
  keyframes: number[];
}

// Annotated videos

/** A layer of the timeline. */
export type LayerName = "touch" | "keyframe" | "activity" | "step" | "contact" | "relation" | "attribute" | "object";

/** A row of the timeline: what is said, of which objects, when. */
export interface Row {
  layer: LayerName;
  text: string;
  objects: string[];
  ranges: FrameRange[];
  editable?: boolean;
  /** Proposed, not accepted. */
  offered?: boolean;
  /** A range can be dragged into it. */
  grows?: boolean;
  /** Of a statement: where it stands in a project's layers. */
  statement?: Statement;
}

export interface VideoTables {
  objects: { id: string; name: string; ranges: FrameRange[] }[];
  rows: Row[];
  problems: string[];
}

export interface Relation {
  source: string;
  target: string;
  type: string;
  value: string;
}

export interface Attribute {
  object: string;
  type: string;
  value: string;
}

export interface FrameGraph {
  frame: number;
  instances: Instance[];
  relations: Relation[];
  attributes: Attribute[];
  activities: string[];
  steps: string[];
}

export interface SearchResult {
  rows: Row[];
  /** How many further rows were left out. */
  more: number;
  /** Where no row has all words: those with most of them. */
  nearest: Row[];
  /** When ranges begin and end, by frame; empty where there is no video. */
  seconds: Record<string, number>;
}

export interface AskedQuestion {
  task: string;
  id: string;
  label: string;
  question: string;
  frames: number[];
  reference: string[];
  /** Of the open runs: the first answer of each, of `repetitions`. */
  answers: GivenAnswer[];
}

// Projects

export interface Project {
  /** Another one after each decision. */
  version: string;
  width: number;
  height: number;
  missing: string;
  can_run: boolean;
  /** Where hands touch things; null until a person has said so. */
  contacts: FrameRange[] | null;
  offered_contacts: { origin: string; ranges: FrameRange[] }[];
  asked: number[];
  accepted: { frame: number; complete: boolean }[];
  objects: { id: string; category: string; name: string }[];
  edits: { by: string; edit: Edit }[];
  layers: Layers;
  offered_layers: { origin: string; layers: Layers }[];
  doubts: Doubt[];
  has_segmenter: boolean;
  vocabulary: Vocabulary;
  draft: Draft | null;
  draft_problem: string;
  export: string;
}

export interface Vocabulary {
  categories: string[];
  attributes: Record<string, string[]>;
  relations: Record<string, string[]>;
}

export interface Doubt {
  frame: number;
  object: string;
  doubt: number;
  why: string;
}

export type Edit =
  | { edit: "merge"; into: string; objects: string[] }
  | { edit: "split"; object: string; frame: number; new: string }
  | { edit: "rename"; object: string; category: string }
  | { edit: "undo"; line: number };

export interface Segment {
  name: string;
  range: FrameRange;
}

export interface Layers {
  activities: Segment[];
  process_steps: Segment[];
  attributes: (Attribute & { ranges: FrameRange[] })[];
  relations: (Relation & { ranges: FrameRange[] })[];
}

/** One thing that is said, without when. */
export type Statement =
  | { list: "activities" | "process_steps"; said: { name: string } }
  | { list: "attributes"; said: Attribute }
  | { list: "relations"; said: Relation };

/** `object` is the id of the tracks, `accepted_as` the one under which a decision names it. */
export interface FrameMask {
  object: string;
  accepted_as: string;
  mask: Mask;
}

export interface Suggestion {
  object: string | null;
  category: string;
  origin: string;
  mask: Mask;
}

export interface PromptPoint extends Point {
  inside: boolean;
}

/** What a segmenter is asked by; points along a line are a stroke. */
export interface MaskPrompt {
  box: [left: number, top: number, right: number, bottom: number] | null;
  points: PromptPoint[];
}

export interface ProjectFrame {
  /** Null on a frame on which nothing was decided. */
  accepted: FrameMask[] | null;
  tracks: FrameMask[];
  suggestions: Suggestion[];
}

/** A mask that stands on a frame; `id` is the one under which it is accepted. */
export interface StandingMask {
  id: string;
  object: string;
  mask: Mask;
  origin: "propagated" | "accepted" | "draft";
}

/** The masks of a frame by the ids under which they are accepted. */
export type FrameDraft = Map<string, Mask>;

export interface DecidedKeyframe {
  frame: number;
  complete: boolean;
  masks: Record<string, Mask>;
}

export interface Decisions {
  contacts?: FrameRange[];
  withdrawn?: number[];
  objects?: Record<string, string>;
  keyframes?: DecidedKeyframe[];
  layers?: Layers;
  edits?: Edit[];
}

export interface DraftContent {
  decisions: { video: string; objects: Record<string, string>; keyframes: DecidedKeyframe[] };
  looked_at: number[];
}

export interface Draft extends DraftContent {
  revision: number;
  page: string;
}

export interface Agreement {
  annotators: string[];
  metrics: Record<string, number | null>;
  keyframes: { frame: number; iou: number }[];
}

// Generated questions

export interface ReviewItem {
  file: number;
  item: string;
  subtask: string;
  video_id: string;
  question: string;
  choices: string[];
  correct: number[];
  verdict: "" | Verdict;
  reason: string;
  reviewer: string;
  moment: { span: FrameRange; frames: number[]; objects: string[] } | null;
  /** Null where its video is not open. */
  kind: "graph" | null;
  revisable: boolean;
}

export type Verdict = "accept" | "revise" | "reject";

// Requests

/** What the server answers to a GET of each path. */
export interface Reads extends AskingReads, DraftReads {
  "/api/studio": Opened;
  "/api/home": { cards: VideoCard[]; folders: Folder[]; closed: Found[]; reports: string[] };
  "/api/length": { seconds: number | null };
  "/api/commands": Workshop;
  "/api/command": { line: string; problem: string };
  "/api/jobs": { jobs: Job[] };
  "/api/footage": Footage;
  "/api/footage/samples": Samples;
  "/api/video": VideoTables;
  "/api/frame": FrameGraph;
  "/api/search": SearchResult;
  "/api/moment": { asked: AskedQuestion[] };
  "/api/example": { video: string; frames: number[] };
  "/api/report": Progress & { runs: number };
  "/api/project": Project;
  "/api/project/frame": ProjectFrame;
  "/api/project/progress": Progress;
  "/api/agreement": Agreement;
  "/api/review": { items: ReviewItem[] };
}

/** What each path takes by POST, and answers. */
export interface Writes extends AskingWrites, DraftWrites {
  "/api/jobs/start": { sent: { step: string; values: Record<string, string> }; answer: { job: number } };
  "/api/jobs/cancel": { sent: { job: number }; answer: unknown };
  "/api/open": { sent: { path: string }; answer: unknown };
  "/api/project/accept": { sent: Decisions & { video: string; seen: string }; answer: unknown };
  "/api/project/segment": {
    sent: { video: string; frame: number } & MaskPrompt;
    answer: { mask: Mask; score: number };
  };
  "/api/project/edge": {
    sent: { video: string; frame: number; points: Point[] };
    answer: { points: [x: number, y: number][] };
  };
  "/api/project/draft": { sent: Draft; answer: unknown };
  "/api/project/run": { sent: { video: string }; answer: unknown };
  "/api/review/verdict": {
    sent: {
      file: number;
      item: string;
      verdict: Verdict;
      reason: string;
      question: string;
      choices: string[];
    };
    answer: Partial<ReviewItem>;
  };
}
