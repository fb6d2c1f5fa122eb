/**
 * A well-behaved client: requests are due at fixed times, and the latency of each counts from then,
 * so a slow answer hides no other. Each has a connection of its own for as long as it takes.
 */
import { Agent, request } from "node:http";
import { simpleBody } from "../../jobs/ask.js";
import { serveJob } from "../support/child.js";
import { percentiles, type Percentiles } from "../support/statistics.js";

export interface PacedJob {
  readonly port: number;
  readonly key: string;
  readonly perSecond: number;
  readonly warmupMs: number;
  readonly measureMs: number;
}

export interface PacedResult {
  readonly latencyMs: Percentiles;
  /** Answers other than 200, and none. */
  readonly errors: number;
  readonly checked: number;
  readonly wrong: number;
}

const agent = new Agent({ keepAlive: true, maxSockets: 256 });
/** 1 + 1 and 1 - 1, sixteen times each. */
const RIGHT = [2, 0].map((value) => JSON.stringify(Array.from({ length: 16 }, () => value)));

function ask({ port, key }: PacedJob, body: string): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${key}`, "content-length": body.length };
    const path = "/v2/models/simple/infer";
    const sent = request({ agent, host: "127.0.0.1", port, path, method: "POST", headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (piece: string) => (text += piece));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    sent.on("error", (error) => resolve({ status: 0, text: error.message }));
    sent.end(body);
  });
}

await serveJob(async (job: PacedJob, measuring, measured): Promise<PacedResult> => {
  const body = JSON.stringify(simpleBody(1));
  const everyMs = 1_000 / job.perSecond;
  const begun = performance.now();
  const measuredFrom = begun + job.warmupMs;
  const over = measuredFrom + job.measureMs;
  const latencies: number[] = [];
  const asked: Promise<void>[] = [];
  let [errors, checked, wrong, isMeasuring] = [0, 0, 0, false];
  for (let dueAt = begun; dueAt < over; dueAt += everyMs) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueAt - performance.now())));
    if (dueAt >= measuredFrom && !isMeasuring) {
      isMeasuring = true;
      measuring();
    }
    const one = async (due: number, counts: boolean) => {
      const { status, text } = await ask(job, body);
      if (!counts) return;
      latencies.push(performance.now() - due);
      if (status !== 200) errors++;
      else if (++checked && !RIGHT.every((row) => text.includes(row))) wrong++;
    };
    asked.push(one(dueAt, isMeasuring));
  }
  measured();
  await Promise.all(asked);
  return { latencyMs: percentiles(latencies), errors, checked, wrong };
});
