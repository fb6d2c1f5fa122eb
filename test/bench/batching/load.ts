/** Sends requests of one row as a pattern says, and checks that each answer is its request's. */
import { seededRandom } from "../../support/fleet/random.js";
import { Connection, type Answer } from "../load/connection.js";
import { serveJob } from "../support/child.js";

/** How requests arrive. */
export type Pattern =
  /** Groups of these sizes in turn, each at once, when the group before has its answers. */
  | { readonly kind: "together"; readonly sizes: readonly number[]; readonly groups: number }
  /** At random times, whether or not earlier requests have their answers. */
  | { readonly kind: "sparse"; readonly perSecond: number; readonly requests: number }
  /** Each connection sends its next request when it has an answer. */
  | { readonly kind: "loaded"; readonly connections: number; readonly requests: number };

export interface BatchingLoadJob {
  readonly port: number;
  readonly model: string;
  readonly pattern: Pattern;
}

export interface BatchingLoadResult {
  /** The times at which requests were sent, in ms, ascending. Groups do not meet each other. */
  readonly groups: readonly (readonly number[])[];
  readonly latencies: readonly number[];
  readonly seconds: number;
  readonly checked: number;
  readonly wrong: number;
}

const SEED = 27;
/** More than a sparse load ever has open, even if the machine stands still for a second. */
const MOST_OPEN = 256;

function requestOf(model: string, n: number): Buffer {
  const data = Buffer.from(new Int32Array([n]).buffer);
  const json = JSON.stringify({
    parameters: { binary_data_output: true },
    inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], parameters: { binary_data_size: data.length } }],
  });
  const head =
    `POST /v2/models/${model}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n` +
    `Inference-Header-Content-Length: ${json.length}\r\nContent-Length: ${json.length + data.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head + json), data]);
}

/** Asks over connections of which each has one request at a time. */
class Client {
  readonly #free: ((request: Buffer, onAnswer: (answer: Answer) => void) => void)[] = [];
  readonly latencies: number[] = [];
  readonly #model: string;
  #sent = 0;
  wrong = 0;

  private constructor(model: string) {
    this.#model = model;
  }

  static async open({ port, model }: BatchingLoadJob, connections: number, onFault: (error: Error) => void) {
    const client = new Client(model);
    const openOne = async () => {
      let answered: (answer: Answer) => void = () => undefined;
      const connection = await Connection.open(port, (answer) => answered(answer), onFault);
      client.#free.push((request, onAnswer) => {
        answered = onAnswer;
        connection.send(request);
      });
    };
    await Promise.all(Array.from({ length: connections }, openOne));
    return client;
  }

  /** @returns the time of sending, and a promise that resolves with the answer */
  ask(): { readonly at: number; readonly answered: Promise<void> } {
    const send = this.#free.pop();
    if (send === undefined) throw new Error("too many requests are open");
    const n = ++this.#sent;
    const at = performance.now();
    const answered = new Promise<void>((resolve) => {
      send(requestOf(this.#model, n), ({ status, body, tensorsAt }) => {
        this.latencies.push(performance.now() - at);
        if (status !== 200 || body.readInt32LE(tensorsAt) !== n) this.wrong++;
        this.#free.push(send);
        resolve();
      });
    });
    return { at, answered };
  }
}

async function drive(client: Client, pattern: Pattern): Promise<number[][]> {
  if (pattern.kind === "together") {
    const groups: number[][] = [];
    for (let i = 0; i < pattern.groups; i++) {
      const size = pattern.sizes[i % pattern.sizes.length] ?? 1;
      const asked = Array.from({ length: size }, () => client.ask());
      await Promise.all(asked.map(({ answered }) => answered));
      // The rule takes a group as one arrival; the gateway admits it in one or two calls.
      groups.push(asked.map(() => asked[0]?.at ?? 0));
    }
    return groups;
  }
  const sent: number[] = [];
  const open: Promise<void>[] = [];
  const ask = () => {
    const { at, answered } = client.ask();
    sent.push(at);
    return answered;
  };
  if (pattern.kind === "loaded") {
    const one = async () => {
      while (sent.length < pattern.requests) await ask();
    };
    await Promise.all(Array.from({ length: pattern.connections }, one));
    return [sent];
  }
  const random = seededRandom(SEED);
  let due = performance.now();
  for (let i = 0; i < pattern.requests; i++) {
    due += (-Math.log(1 - random.unit()) * 1_000) / pattern.perSecond;
    await new Promise((next) => setTimeout(next, Math.max(0, due - performance.now())));
    open.push(ask());
  }
  await Promise.all(open);
  return [sent];
}

await serveJob(async (job: BatchingLoadJob, measuring, measured) => {
  const { pattern } = job;
  const connections = pattern.kind === "loaded" ? pattern.connections : MOST_OPEN;
  const client = await Client.open(job, connections, (error) => {
    throw error;
  });
  measuring();
  const startedAt = performance.now();
  const groups = await drive(client, pattern);
  const seconds = (performance.now() - startedAt) / 1_000;
  measured();
  const { latencies, wrong } = client;
  const result: BatchingLoadResult = { groups, latencies, seconds, checked: latencies.length, wrong };
  return result;
});
