/**
 * A server that stands in for a whole fleet, in memory, right or with a chosen mistake. Shows that
 * client, load and checker together can tell a right fleet from a wrong fleet.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { chainStep } from "../../fixtures/models/chain-reference.js";

export type Mistake = "none" | "forgets keys" | "skips a step" | "loses a state" | "answers another's id";

export interface ToyServer {
  readonly url: string;
  readonly sequences: ReadonlyMap<string, number>;
  readonly records: number;
  close(): Promise<void>;
}

/**
 * Loses every `cutEvery`-th answer after its effect, and refuses every fifth request before any
 * effect.
 */
export async function startToyServer(mistake: Mistake, cutEvery: number): Promise<ToyServer> {
  const states = new Map<string, bigint>();
  const done = new Map<string, number>();
  const records = new Map<string, string>();
  let answers = 0;

  function compute(body: string, request: string): string {
    const id = /"sequence_id":(".*?[^\\]"|\d+)/.exec(body)?.[1] ?? "";
    const key = id.startsWith('"')
      ? `s${Buffer.from(JSON.parse(id) as string, "utf8").toString("base64url")}`
      : `u${id}`;
    const input = BigInt(/"data":\[(-?\d+)\]/.exec(body)?.[1] ?? "0");
    const slips = mistake !== "none" && answers % 37 === 36;
    if (body.includes('"sequence_start":true')) states.delete(key);
    if (slips && mistake === "loses a state") states.delete(key);
    const before = states.get(key) ?? null;
    const output = chainStep(before, input);
    if (!(slips && mistake === "skips a step")) states.set(key, output);
    done.set(key, (done.get(key) ?? 0) + 1);
    if (body.includes('"sequence_end":true')) for (const map of [states, done]) map.delete(key);
    const echoed = slips && mistake === "answers another's id" ? "another" : request;
    return `{"model_name":"chain","id":"${echoed}","outputs":[{"name":"OUTPUT","datatype":"INT64","shape":[1,1],"data":[${output}]}]}`;
  }

  function answer(body: string, key: string, response: ServerResponse): void {
    answers += 1;
    if (answers % 5 === 0) {
      response.writeHead(503, { "retry-after": "0" });
      response.end('{"error":"later","code":"unavailable"}');
      return;
    }
    const known = mistake === "forgets keys" ? undefined : records.get(key);
    const text = known ?? compute(body, key);
    records.set(key, text);
    if (answers % cutEvery === 0) response.destroy();
    else response.end(text);
  }

  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      answer(Buffer.concat(parts).toString("utf8"), String(request.headers["idempotency-key"]), response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sequences: done,
    get records() {
      return records.size;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
