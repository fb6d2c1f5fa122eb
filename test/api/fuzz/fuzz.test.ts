/**
 * Requests that are made from the OpenAPI document get answers that the document declares, and a
 * request that the document does not allow is refused.
 */
import { Agent, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { documentPath } from "../../../gateway/api/endpoint/openapi.js";
import { endpoints } from "../../../gateway/endpoints.js";
import { POISON_INPUT } from "../../fixtures/models/chain-reference.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { Asker, type Site } from "./asker.js";
import { Cases, type Case } from "./cases.js";
import { ApiDocument, jsonOf, type Operation } from "./document.js";
import { Tally } from "./tally.js";
import type { Answer } from "../recording/exchange.js";

const { BATON_FUZZ_CASES: casesAsked, BATON_FUZZ_SEED: seedAsked } = process.env;
/** Requests of each operation with each seed, half of them wrong. */
const CASES = Number(casesAsked ?? 20);
const drawn = 1 + Math.floor(Math.random() * 1_000_000_000);
/** Fixed by default. A run with another number of cases draws its seed. */
const SEEDS = seedAsked !== undefined ? [Number(seedAsked)] : casesAsked !== undefined ? [drawn] : [1, 2, 3];
/** Longer than any operation takes, so that only a gateway that hangs meets the limit. */
const PATIENCE_MS = 60_000 + CASES * 1_000;
/** Requests of an operation, by all seeds together, after which one of them has succeeded. */
const ENOUGH = 60;
/** Refusals with 500 that Triton's clients expect. */
const TRITONS_500 = ["data_shape_mismatch", "model_error"];
/**
 * Operations that cannot succeed here: no job of this tenant was set aside, a deployment without
 * keys administers none, a tenant sees no settings and changes none, workers load their models by
 * themselves, and no seed draws the hash in the name of a console's file.
 */
const NEVER_SUCCEED =
  /^(?:POST \/v2\/dead\/\{id\}\/retry|GET \/console\/\{file|POST \/v2\/(?:logging|repository\/models|(?:models\/\{model\}\/)?trace)|\w+ \/v2\/(?:keys|settings|tenants|tickets|usage))\b/;

const served = useFleet({
  jobs: 1,
  models: ["simple", "accumulate", "picky", "pill", "tale-gpt"],
  env: {
    BATON_BUCKETS: "4",
    BATON_TENANT_HEADER: "x-tenant",
    BATON_MAX_JSON_BYTES: "65536",
    BATON_MAX_BODY_BYTES: "131072",
  },
  workerEnv: { BATON_MAX_RUNS_ALONE: "1" },
  direct: true,
  guarded: true,
});

const names = endpoints.map(({ method, path }) => `${method} ${documentPath(path)}`);
const agent = new Agent({ keepAlive: true });
const receiver = createServer((incoming, outgoing) => {
  incoming.resume();
  outgoing.writeHead(204).end();
});
const tally = new Tally();
let document: ApiDocument;
let site: Site;

beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const { port } = receiver.address() as AddressInfo;
  site = { url: served.url, receiver: `http://127.0.0.1:${port}/hook`, agent };
  document = new ApiDocument((await (await fetch(`${served.url}/openapi.json`)).json()) as object);
  await setAside();
});

afterAll(() => {
  agent.destroy();
  receiver.closeAllConnections();
  receiver.close();
  console.log(`seeds ${SEEDS.join(", ")}: ${tally.report}`);
});

/** Ends the worker with a request, which is set aside. */
async function setAside(): Promise<void> {
  const inputs = [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [Number(POISON_INPUT)] }];
  const parameters = { sequence_id: 1, sequence_start: true };
  await new Asker(site, "dead").ask({ method: "POST", path: "/v2/models/pill/infer", body: { parameters, inputs } });
  await served.fleet.whenServing();
}

function tenantOf(seed: number, name: string): string {
  return name.includes(" /v2/dead") ? "dead" : `fuzz-${seed}-${names.indexOf(name)}`;
}

/** @throws Error that names the fault of the answer */
async function check(operation: Operation, asker: Asker, one: Case): Promise<void> {
  const answer = await asker.answerTo(one);
  tally.note(operation, one.fault === undefined ? "allowed" : "wrong", answer.status);
  const fault = faultOf(operation, one, answer);
  if (fault === undefined) return;
  const { status, headers, body } = answer;
  throw new Error(`${fault}: ${status} ${headers["content-type"] ?? ""} ${body.toString().slice(0, 600)}`);
}

function faultOf(operation: Operation, { fault, isOther = false }: Case, answer: Answer): string | undefined {
  if (fault !== undefined && answer.status < 400) return `${fault}, and is not refused`;
  if (answer.status === 500) {
    const { code = "" } = (jsonOf(answer.body) ?? {}) as { readonly code?: string };
    if (!TRITONS_500.includes(code)) return "an answer with 500";
  }
  return isOther ? document.refusalFaultOf(operation, answer) : document.faultOf(operation, answer);
}

describe.each(SEEDS)("with seed %i", (seed) => {
  it.each(names)("%s", { timeout: PATIENCE_MS }, async (name) => {
    const operation = document.operation(name);
    const asker = new Asker(site, tenantOf(seed, name));
    const { allowed, wrong } = new Cases(document, operation);
    for (const requests of [allowed, wrong]) {
      const property = fc.asyncProperty(requests, (one) => check(operation, asker, one));
      await fc.assert(property, { numRuns: Math.ceil(CASES / 2), seed });
    }
  });
});

/** A run of few requests may draw none that an operation can answer with success. */
it.runIf(CASES * SEEDS.length >= ENOUGH)("has met an answer with success of every operation that has one", () => {
  const unexpected = tally.neverSucceeded.filter((line) => !NEVER_SUCCEED.test(line));
  expect(unexpected).toEqual([]);
});
