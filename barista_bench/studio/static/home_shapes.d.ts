import type { VideoKind } from "./shapes.d.ts";

// What the studio's server sends of the home page, and of commands that the page may run (`home.py`, `commands.py`).

export interface Opened {
  person: string;
  graphs: string[];
  projects: string[];
  problems: string[];
  datasets: number;
  runs: number;
  rated: number;
  reviews: number;
  compared: number;
  /** Where commands can be run; null: nowhere. */
  folder: string | null;
}

/** How far a video is. What only a project has is missing for a release. `next`: what a person is to do. */
export interface VideoCard {
  kind: VideoKind;
  id: string;
  /** Null where it is not known without opening the video. */
  seconds: number | null;
  next: "problem" | "contacts" | "keyframes" | "stages" | "doubtful" | "export" | "look";
  /** Who accepted something of it. */
  by: string[];
  problem?: string;
  contacts?: number;
  /** Keyframes that people are asked for, and those of them that are annotated. */
  asked?: number;
  done?: number;
  masks?: number;
  /** Keyframes that have masks. */
  annotated?: number;
  objects?: number;
  doubtful?: number;
  layers?: number;
}

export interface Folder {
  kind: "project" | "release" | "dataset" | "runs" | "review";
  path: string;
  name: string;
  counts: Record<string, number>;
}

/** What the studio's folder holds, by its path there. */
export interface Found {
  kind: Folder["kind"] | "report" | "videos" | "vocabulary";
  path: string;
}

/** An option of a command. */
export interface CommandField {
  name: string;
  /** Empty of what has its place in the line. */
  flag: string;
  help: string;
  kind: "input" | "new" | "anywhere" | "number" | "text";
  suggested: Found["kind"][];
  choices: string[];
  /** Other values than the choices may be given. */
  open: boolean;
  value: string;
  required: boolean;
}

export interface CommandStep {
  id: string;
  title: string;
  fields: CommandField[];
}

/** The commands, and the folder in which they run. */
export interface Workshop {
  folder: string;
  steps: CommandStep[];
  found: Found[];
}

/** A command that was started; `makes` can be opened. */
export interface Job {
  number: number;
  title: string;
  line: string;
  state: "running" | "done" | "failed" | "cancelled";
  seconds: number;
  code: number | null;
  output: string;
  makes: string;
}

/** How far the stages of a video, or the copy that a page plays, have come. */
export interface Progress {
  state: "none" | "waiting" | "running" | "done" | "failed";
  step: string;
  problem: string;
}
