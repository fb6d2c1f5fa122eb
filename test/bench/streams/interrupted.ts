/**
 * A single stream whose worker dies on the way. Reports when the client has read a given number of
 * tokens, and afterwards the longest pause.
 */
import { serveJob } from "../support/child.js";
import { long } from "../support/models.js";
import { eventsOf } from "./events.js";
import { expectedOf, faultOf, readReferences } from "./expected.js";
import { completionRequest, Recorder, type Recording } from "./recorder.js";
import { Vocabulary } from "./vocabulary.js";

export interface InterruptedJob {
  readonly port: number;
  readonly references: string;
  /** Number of the prompt. */
  readonly prompt: number;
  /** How many tokens the client reads before it reports. */
  readonly history: number;
}

export interface InterruptedResult {
  readonly pauseMs: number;
  /** The index and the arrival of each event, in milliseconds on the wall clock. */
  readonly came: readonly (readonly [index: number, at: number])[];
  readonly checked: number;
  readonly wrong: number;
  readonly fault?: string;
}

await serveJob(async (job: InterruptedJob, measuring): Promise<InterruptedResult> => {
  const { port, history } = job;
  const reference = readReferences(job.references)[job.prompt];
  if (reference === undefined) throw new Error(`no prompt ${job.prompt}`);
  const { prompt, tokens } = reference;
  let read = 0;
  const recording = await new Promise<Recording>((resolve, reject) => {
    const arrived = ({ bytes }: { readonly bytes: Buffer }) => {
      if (read >= history) return;
      const at = bytes.lastIndexOf("\nid: ");
      if (at !== -1) read = Number.parseInt(bytes.toString("latin1", at + 5, at + 15), 10) + 1;
      if (read >= history) measuring();
    };
    Recorder.open(port, { ended: resolve, failed: reject, arrived })
      .then((recorder) => recorder.send(completionRequest(long.name, prompt, tokens.length)))
      .catch(reject);
  });
  const answered = eventsOf(recording.arrivals);
  const expected = expectedOf(Vocabulary.read(long.folder), tokens);
  const fault = faultOf(answered, expected);
  const { events } = answered;
  const pauses = events.slice(1).map(({ at }, i) => at - (events[i]?.at ?? at));
  return {
    pauseMs: Math.max(...pauses),
    came: events.map(({ index, at }) => [index, performance.timeOrigin + at]),
    checked: 1,
    wrong: fault === undefined ? 0 : 1,
    ...(fault !== undefined && { fault }),
  };
});
