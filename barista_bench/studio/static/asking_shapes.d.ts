import type { Progress } from "./home_shapes.d.ts";

// What the studio's server sends of questions to people, and of answers to be rated or looked at.

/** How far a person is, and where the answers are kept. */
export interface PersonState {
  done: number;
  total: number;
  kept: string;
  problems: string[];
}

/** What is asked of a draw, by task. */
export interface PeoplePlan {
  tasks: { benchmark: string; task: string; about: string; questions: number; answered: number }[];
  kept: string;
}

export interface Question {
  /** Names it on the page, and says nothing of it. */
  question: string;
  benchmark: string;
  task: string;
  /** What a person is told of the prompt, and below the prompt as a model gets it. */
  system: string;
  /** Its texts, and the numbers of its images. */
  parts: (string | number)[];
  prompt: string;
  images: string[];
  form: "choice" | "fields" | "text";
  choices: Record<string, string>;
  schema: Schema | null;
  scale: number;
}

/** What of JSON Schema the answers of tasks are described by. */
export interface Schema {
  type?: "string" | "integer" | "number" | "array" | "object";
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
}

export interface AnswerToRate {
  answer: string;
  introduction: string;
  asked: string;
  reference: string;
  text: string;
  criteria: { name: string; text: string; scale: string }[];
  top: number;
}

/** Without a question or an answer where none is left. */
export type NextQuestion = PersonState & (Question | { question?: undefined });
export type NextRating = PersonState & (AnswerToRate | { answer?: undefined });

/** An answer of a model; `rows` say what of it is right, wrong and missing. */
export interface GivenAnswer {
  model: string;
  repetitions: number;
  status: string;
  text: string;
  is_json: boolean;
  rows: ExplainedRows;
}

/** In a task's words. */
export type ExplainedRows = ["hit" | "miss" | "wrong", string][];

export interface AskingReads {
  "/api/rating": NextRating;
  "/api/rating/progress": Progress & { scored: number; runs: number };
  "/api/people/plan": PeoplePlan;
}

export interface AskingWrites {
  "/api/people/next": { sent: { number: number }; answer: NextQuestion };
  "/api/people/answer": {
    sent: { number: number; question: string; answer: unknown; seconds: number };
    answer: NextQuestion;
  };
  "/api/rating/scores": { sent: { answer: string; scores: Record<string, number> }; answer: NextRating };
}
