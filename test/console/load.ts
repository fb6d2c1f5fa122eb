/** Real requests to the fleet, as many as a number of clients get done. */
import { askFor } from "../support/streams/ask.js";
import { submitInBackground } from "../support/streams/front-doors.js";
import { step } from "./steps.js";

const TOKENS = 400;

/** How many clients ask at a time. */
export interface Load {
  /** Of `accumulate`. */
  readonly sequences: number;
  /** Of `gen-mha`. */
  readonly streams: number;
}

/** Loads the fleet until `work` has ended. @returns its result, and the steps a second */
export async function beside<Result>(url: string, load: Load, work: () => Promise<Result>): Promise<Loaded<Result>> {
  const over = new AbortController();
  let steps = 0;
  const sequence = async (id: number) => {
    for (let start = true; !over.signal.aborted; start = false) {
      await step(url, id, 1, { start });
      steps += 1;
    }
  };
  const stream = async () => {
    while (!over.signal.aborted) {
      const id = await submitInBackground(url, askFor(TOKENS, "a lap", 7));
      await (await fetch(`${url}/v2/requests/${id}/events`)).text();
    }
  };
  const since = performance.now();
  const clients = [
    ...Array.from({ length: load.sequences }, (_, i) => sequence(1_000 + i)),
    ...Array.from({ length: load.streams }, stream),
  ];
  try {
    const result = await work();
    return { result, stepsPerSecond: (steps / (performance.now() - since)) * 1_000 };
  } finally {
    over.abort();
    await Promise.all(clients);
  }
}

export interface Loaded<Result> {
  readonly result: Result;
  readonly stepsPerSecond: number;
}
