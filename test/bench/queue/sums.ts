/** Sequences of a copy of `accumulate` over HTTP, many side by side, and every sum checked. */
import { Connection } from "../load/connection.js";
import { serveJob } from "../support/child.js";
import { STEPS } from "../support/patterns.js";
import { addingStep } from "./models.js";

export interface SumsJob {
  readonly port: number;
  readonly model: string;
  /** How many sequences to begin, with one step each. */
  readonly begin?: number;
  /** Or for how long, in ms, as many sequences run as there are connections. */
  readonly loopMs?: number;
}

export interface SumsResult {
  readonly seconds: number;
  readonly checked: number;
  readonly wrong: number;
}

const CONNECTIONS = 128;

await serveJob(async ({ port, model, begin, loopMs = 0 }: SumsJob): Promise<SumsResult> => {
  const startedAt = performance.now();
  let begun = 0;
  let open = CONNECTIONS;
  let checked = 0;
  let wrong = 0;
  await new Promise<void>((resolve, reject) => {
    const drive = async (which: number) => {
      let sequence = which + 1;
      let step = -1;
      const isOver = () => (begin === undefined ? performance.now() - startedAt >= loopMs : begun >= begin);
      const next = () => {
        if (isOver()) {
          if (--open === 0) resolve();
          return;
        }
        if (begin === undefined) step = (step + 1) % STEPS;
        else [sequence, step] = [++begun, 0];
        connection.send(addingStep(model, sequence, step === 0));
      };
      const connection = await Connection.open(
        port,
        ({ status, body, tensorsAt }) => {
          if (status !== 200) return reject(new Error(`the gateway answered ${status}: ${body.toString("utf8")}`));
          checked++;
          if (body.readInt32LE(tensorsAt) !== sequence * (step + 1)) wrong++;
          next();
        },
        reject,
      );
      return next;
    };
    Promise.all(Array.from({ length: CONNECTIONS }, (_, i) => drive(i)))
      .then((starts) => starts.forEach((start) => start()))
      .catch(reject);
  });
  return { seconds: (performance.now() - startedAt) / 1_000, checked, wrong };
});
