/** Sends numbered requests in a closed loop, and checks that each answer is that of its request. */
import { seededRandom } from "../../support/fleet/random.js";
import { Connection, type Answer } from "../load/connection.js";
import { serveJob } from "../support/child.js";
import { percentiles, type Percentiles } from "../support/statistics.js";

export interface CacheLoadJob {
  readonly port: number;
  readonly model: string;
  readonly connections: number;
  /** The number of the first request. */
  readonly first: number;
  /** How many requests there are; undefined: none comes twice. */
  readonly distinct: number | undefined;
  /** Whether the nth request comes n times more seldom than the first (Zipf). */
  readonly byRank: boolean;
  readonly warmupMs: number;
  readonly measureMs: number;
}

export interface CacheLoadResult {
  readonly requests: number;
  readonly seconds: number;
  readonly latencyMs: Percentiles;
  readonly checked: number;
  readonly wrong: number;
}

/** Elements of an input, of which the first is the number of the request. The model copies them. */
const WIDTH = 64;

/** @returns the whole HTTP request with this number */
function requestOf(model: string, n: number): Buffer {
  const data = Buffer.from(new Int32Array(WIDTH).fill(n, 0, 1).buffer);
  const json = JSON.stringify({
    parameters: { binary_data_output: true },
    inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, WIDTH], parameters: { binary_data_size: data.length } }],
  });
  const head =
    `POST /v2/models/${model}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n` +
    `Inference-Header-Content-Length: ${json.length}\r\nContent-Length: ${json.length + data.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head + json), data]);
}

/** Draws the numbers of requests. */
function drawing({ first, distinct, byRank }: CacheLoadJob): () => number {
  let next = first;
  if (distinct === undefined) return () => next++;
  if (!byRank) return () => first + (next++ % distinct);
  const random = seededRandom(first);
  const sums: number[] = [];
  for (let rank = 1; rank <= distinct; rank++) sums.push((sums.at(-1) ?? 0) + 1 / rank);
  return () => {
    const at = random.unit() * (sums.at(-1) ?? 0);
    let [low, high] = [0, distinct - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sums[middle] ?? 0) < at) low = middle + 1;
      else high = middle;
    }
    return first + low;
  };
}

await serveJob((job: CacheLoadJob, measuring, measured) => {
  const { port, model, connections, warmupMs, measureMs } = job;
  const draw = drawing(job);
  const latencies: number[] = [];
  const counts = { checked: 0, wrong: 0 };
  let phase: "warm-up" | "measure" | "over" = "warm-up";
  let open = connections;

  return new Promise<CacheLoadResult>((resolve, reject) => {
    let seconds = 0;
    const over = () => {
      if (--open > 0) return;
      resolve({ requests: latencies.length, seconds, latencyMs: percentiles(latencies), ...counts });
    };
    const drive = async () => {
      let n = 0;
      let sentAt = 0;
      const send = () => {
        n = draw();
        sentAt = performance.now();
        connection.send(requestOf(model, n));
      };
      const onAnswer = ({ status, body, tensorsAt }: Answer) => {
        if (status !== 200)
          return reject(new Error(`the gateway answered ${status}: ${body.toString("utf8", 0, 500)}`));
        if (phase === "measure") latencies.push(performance.now() - sentAt);
        counts.checked++;
        if (body.readInt32LE(tensorsAt) !== n) counts.wrong++;
        if (phase === "over") over();
        else send();
      };
      const connection = await Connection.open(port, onAnswer, reject);
      return send;
    };
    const run = async () => {
      const starts = await Promise.all(Array.from({ length: connections }, drive));
      for (const start of starts) start();
      await new Promise((next) => setTimeout(next, warmupMs));
      phase = "measure";
      const startedAt = performance.now();
      measuring();
      await new Promise((next) => setTimeout(next, measureMs));
      seconds = (performance.now() - startedAt) / 1_000;
      phase = "over";
      measured();
    };
    run().catch(reject);
  });
});
