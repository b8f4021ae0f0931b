// A draft on its way to the server: shown at once, kept in the background, tried again until it is kept.
import { RefusedError, send } from "./server.js";
import { reasonOf } from "./status.js";

/** @import { DraftContent } from "./shapes.d.ts" */

const PAUSE = 2000; // milliseconds until what failed is tried again

export class DraftKeeper {
  /** @param {number} revision of the draft that the server has */
  constructor(revision) {
    this.revision = revision;
    this.page = String(Math.random());
    /** @type {"saved" | "saving" | "failed"} */
    this.state = "saved";
    this.problem = "";
    /** The newest content that is not kept yet. @type {DraftContent | null} */
    this.unsent = null;
    this.isBusy = false;
    this.onState = () => {};
    /** Another page of the same person has changed the draft. */
    this.conflicted = () => {};
    /** @param {BeforeUnloadEvent} event */
    const leaving = (event) => {
      if (this.unsent) event.preventDefault();
    };
    addEventListener("beforeunload", leaving);
  }

  /** @param {DraftContent} draft */
  keep(draft) {
    this.unsent = draft;
    if (!this.isBusy) this.run();
  }

  async run() {
    this.isBusy = true;
    this.say("saving");
    while (this.unsent) {
      const sent = this.unsent;
      try {
        await send("/api/project/draft", { ...sent, revision: this.revision + 1, page: this.page });
        this.revision += 1;
        if (this.unsent === sent) this.unsent = null;
      } catch (error) {
        this.say("failed", reasonOf(error));
        if (error instanceof RefusedError && error.status === 409) {
          this.isBusy = false;
          this.conflicted();
          return;
        }
        await new Promise((done) => {
          setTimeout(done, PAUSE);
        });
      }
    }
    this.isBusy = false;
    this.say("saved");
  }

  /** What another page wrote is taken instead. */
  drop() {
    this.unsent = null;
    this.say("saved");
  }

  /** @param {DraftKeeper["state"]} state */
  say(state, problem = "") {
    this.state = state;
    this.problem = problem;
    this.onState();
  }
}
