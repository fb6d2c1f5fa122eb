/**
 * What the access log takes for a request that is parsed on the socket, in a loop over the
 * functions that note, format and write. The file lies on a disk, whose own time does not count.
 */
import { readFileSync, rmSync, statSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { openAccessLog } from "../../../gateway/access-log/access-log.js";
import { openLines } from "../../../gateway/access-log/open.js";
import type { InferenceOutcome, InferenceRequest, Inference } from "../../../gateway/admission/inference.js";
import { noteReply } from "../../../gateway/facts/answer-facts.js";
import { noted } from "../../../gateway/facts/request-facts.js";
import { Peers } from "../../../gateway/http/peers.js";
import { servedModel } from "../../fixtures/served-models.js";
import { silentLog } from "../../support/silent.js";
import { pause } from "../queue/window.js";

export interface LoggingCost {
  /** µs of CPU for a request more than without a log. */
  readonly requestUs: number;
  readonly lineBytes: number;
  readonly checked: number;
  readonly wrong: number;
}

const REQUESTS = 200_000;
const WARM = 20_000;
/** Requests whose answers come together. */
const AT_ONCE = 16;
/** After so many requests a slow disk has some ms, so that no line is dropped. */
const UNTIL_PAUSE = 4_000;
const PAUSE_MS = 20;

const target = "/v2/models/m/infer";
const headers = { host: "gateway:8000", "user-agent": "python-requests/2.32.3", "content-length": "732" };
const socket = { remoteAddress: "10.0.0.7" } as Socket;
const request = {
  model: servedModel("m"),
  tenant: "default",
  sequence: { id: { kind: "uint64", value: 7n }, start: false, end: false },
} as unknown as InferenceRequest;
const outcome = {
  kind: "result",
  id: "req_0123456789abcdefghijkl",
  version: "1",
  step: 4,
  isRepeated: false,
  note: '[1.2,2.1,"0123456789abcdef"]',
} as unknown as InferenceOutcome;
const inference = { infer: () => Promise.resolve(outcome) } as unknown as Inference;
const reply = { status: 200, headers: {}, body: [] };

export async function measureLogging(folder: string): Promise<LoggingCost> {
  const place = join(folder, "logged.jsonl");
  const lines = openLines(place, silentLog);
  const log = openAccessLog({
    gateway: "gw-0123456789abcdef",
    peers: new Peers(),
    workerOf: () => "worker.0123456789abcdef",
    write: (line) => lines.write(line),
  });
  const logged = async () => {
    const facts = log.hear({ socket, method: "POST", target, headers, since: performance.now() });
    Object.assign(facts, { tenant: "default", route: "/v2/models/:model/infer", model: "m", version: undefined });
    facts.bytesIn = 732;
    await noted(inference, facts).infer(request);
    noteReply(facts, reply, "0123456789abcdef", 650);
    facts.isWhole = true;
    facts.end();
  };
  const plain = async () => void (await noted(inference, undefined).infer(request));
  await cpuUs(logged, WARM);
  const withUs = await cpuUs(logged, REQUESTS);
  await lines.close();
  await cpuUs(plain, WARM);
  const withoutUs = await cpuUs(plain, REQUESTS);
  const count = REQUESTS + WARM;
  const isWhole = lines.dropped === 0 && countLines(place) === count;
  const lineBytes = statSync(place).size / count;
  rmSync(place);
  return { requestUs: withUs - withoutUs, lineBytes, checked: 1, wrong: isWhole ? 0 : 1 };
}

/** @returns µs of CPU for each of so many requests */
async function cpuUs(ask: () => Promise<void>, count: number): Promise<number> {
  const before = process.cpuUsage();
  for (let i = 0; i < count; i += AT_ONCE) {
    for (let n = 0; n < AT_ONCE; n++) void ask();
    await (i % UNTIL_PAUSE === 0 ? pause(PAUSE_MS) : new Promise(setImmediate));
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

function countLines(place: string): number {
  let count = 0;
  for (const byte of readFileSync(place)) if (byte === 10) count++;
  return count;
}
