import type { Progress } from "./home_shapes.d.ts";

// What the studio's server sends of a domain file and of missing annotations (`drafting.py`).

/** As fractions of the frame. */
type PartOfFrame = [x: number, y: number, width: number, height: number];

/** Of one line that is proposed, what it is for was found so often, and at these places first. */
export interface DraftLine {
  text: string;
  /** What stands behind the line in the file; empty of what is not proposed from the graphs' words. */
  note: string;
  count: number;
  places: { video_id: string; frame: number; text: string; objects: string[]; boxes: PartOfFrame[] }[];
}

/** The lines are there once it is done. */
export interface DraftState extends Progress {
  path: string;
  lines: DraftLine[];
}

export interface MissingAnnotations {
  /** Whether questions were generated that say so. */
  is_known: boolean;
  annotations: { work: string; frames: number[]; items: number; subtasks: Record<string, number> }[];
}

export interface DraftReads {
  "/api/draft": DraftState;
  "/api/missing": MissingAnnotations;
}

export interface DraftWrites {
  "/api/draft/keep": { sent: { lines: string[] }; answer: { path: string } };
}
