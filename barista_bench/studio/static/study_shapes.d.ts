/** What a study's server answers. */

import type { PutQuestion } from "./answer.js";
import type { ExplainedRows } from "./asking_shapes.d.ts";

/** How far a participant is; `lost` questions could not be shown. */
export interface StudyState {
  done: number;
  total: number;
  lost?: number;
  /** After practice, and null after other answers. */
  feedback?: Feedback | null;
}

/** The questions of a task that one is of. */
export interface Block {
  title: string;
  about: string;
  practice: number;
  counted: number;
  begun: boolean;
  /** Among those that are practice, or are not, as it is. */
  number: number;
  of: number;
}

/** After practice: labels of the right choices, or a right text; what is right, missed or wrong; boxes in pixels. */
export interface Feedback {
  right: string[];
  text: string;
  rows: ExplainedRows;
  boxes: { image: number; box: [number, number, number, number]; label: string }[];
}

export type StudyQuestion = StudyState & PutQuestion & { practice: boolean; block: Block };
export type StudyNext = StudyQuestion | (StudyState & { question?: undefined });

declare module "./shapes.d.ts" {
  interface Reads {
    "/api/study": StudyNext;
  }
  interface Writes {
    "/api/study/answer": {
      sent: { question: string; answer: unknown; seconds: number; skipped?: boolean };
      answer: StudyNext;
    };
  }
}
