/**
 * Sequences of a copy of `accumulate` over HTTP, many side by side, with a check of every sum. A
 * step goes out as soon as the step before has its answer, or at a fixed rate that does not depend
 * on the fleet.
 */
import { Connection } from "../load/connection.js";
import { serveJob } from "../support/child.js";
import { STEPS } from "../support/patterns.js";
import { addingStep } from "./models.js";

export interface SumsJob {
  readonly port: number;
  readonly model: string;
  /** How many sequences to begin, with a single step each. */
  readonly begin?: number;
  /** Or how long the load runs, in ms, with a sequence per connection. */
  readonly loopMs?: number;
  /** A fixed rate of steps a second within that time, instead of a step per answer. */
  readonly perSecond?: number;
  /** The API key; absent: none. */
  readonly key?: string | undefined;
}

export interface SumsResult {
  readonly seconds: number;
  readonly checked: number;
  readonly wrong: number;
  /** Steps that were due but had no idle connection, because all waited for an answer. */
  readonly missed: number;
}

/** The pause between two looks for steps that are due, in ms. */
const TICK_MS = 5;
const CONNECTIONS = 128;

await serveJob(async ({ port, model, begin, loopMs = 0, perSecond, key }: SumsJob): Promise<SumsResult> => {
  const startedAt = performance.now();
  let begun = 0;
  let open = CONNECTIONS;
  let checked = 0;
  let wrong = 0;
  let missed = 0;
  const idle: (() => void)[] = [];
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
        connection.send(addingStep(model, sequence, step === 0, key));
      };
      const connection = await Connection.open(
        port,
        ({ status, body, tensorsAt }) => {
          if (status !== 200) return reject(new Error(`the gateway answered ${status}: ${body.toString("utf8")}`));
          checked++;
          if (body.readInt32LE(tensorsAt) !== sequence * (step + 1)) wrong++;
          if (perSecond === undefined || isOver()) next();
          else idle.push(next);
        },
        reject,
      );
      return next;
    };
    /** Sends the steps that are due, again and again. */
    const pace = (rate: number) => {
      let sent = 0;
      const timer = setInterval(() => {
        const elapsed = Math.min(performance.now() - startedAt, loopMs);
        for (; sent < (elapsed / 1_000) * rate; sent++) {
          const send = idle.shift();
          if (send === undefined) missed++;
          else send();
        }
        if (elapsed < loopMs) return;
        clearInterval(timer);
        // Connections that wait for an answer end when the answer comes.
        for (const end of idle.splice(0)) end();
      }, TICK_MS);
    };
    Promise.all(Array.from({ length: CONNECTIONS }, (_, i) => drive(i)))
      .then((starts) => {
        if (perSecond === undefined) return starts.forEach((start) => start());
        idle.push(...starts);
        pace(perSecond);
      })
      .catch(reject);
  });
  return { seconds: (performance.now() - startedAt) / 1_000, checked, wrong, missed };
});
