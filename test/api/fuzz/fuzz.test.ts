/**
 * Requests that are made from the OpenAPI document get answers that the document declares, and a
 * request that the document does not allow is refused.
 */
import { Agent, createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { documentPath } from "../../../gateway/api/openapi.js";
import { endpoints } from "../../../gateway/endpoints.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { exchange, type Answer, type Question } from "../recording/exchange.js";
import { Cases, type Case } from "./cases.js";
import { ApiDocument, jsonOf, type Operation } from "./document.js";
import { Things } from "./things.js";

const casesAsked = process.env["BATON_FUZZ_CASES"];
const seedAsked = process.env["BATON_FUZZ_SEED"];
const CASES = Number(casesAsked ?? 20);
const randomSeed = () => 1 + Math.floor(Math.random() * 1_000_000_000);
/** Fixed, unless a run asks for a seed or for more cases than usual. */
const SEEDS = seedAsked !== undefined ? [Number(seedAsked)] : casesAsked !== undefined ? [randomSeed()] : [1, 2, 3];
/** Longer than any case takes, so that only a gateway that hangs meets the limit. */
const MS_EACH = 1_000;

const served = useFleet({
  jobs: 1,
  models: ["simple", "accumulate", "picky", "tale-gpt"],
  env: {
    BATON_BUCKETS: "4",
    BATON_TENANT_HEADER: "x-tenant",
    BATON_MAX_JSON_BYTES: "65536",
    BATON_MAX_BODY_BYTES: "131072",
  },
  direct: true,
  guarded: true,
});

/** Refusals with 500 that Triton's clients expect. */
const TRITONS_500 = ["data_shape_mismatch", "model_error"];

const names = endpoints.map(({ method, path }) => `${method} ${documentPath(path)}`);
const agent = new Agent({ keepAlive: true });
const tally = { allowed: 0, wrong: 0, statuses: new Map<number, number>(), neverDone: new Set<string>() };
let document: ApiDocument;
let receiver: Server;

beforeAll(async () => {
  receiver = createServer((incoming, outgoing) => {
    incoming.resume();
    outgoing.writeHead(204).end();
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  document = new ApiDocument((await (await fetch(`${served.url}/openapi.json`)).json()) as object);
});
afterAll(() => {
  agent.destroy();
  receiver.closeAllConnections();
  receiver.close();
  const statuses = [...tally.statuses]
    .sort(([one], [other]) => one - other)
    .map(([status, count]) => `${count}x ${status}`);
  console.log(
    `${names.length} operations, seeds ${SEEDS.join(", ")}: ${tally.allowed} allowed and ${tally.wrong} wrong requests; ` +
      `${statuses.join(", ")}; never 2xx: ${[...tally.neverDone].join(", ")}`,
  );
});

class Asker {
  readonly #things: Things;
  readonly #tenant: string;
  #hasSucceeded = false;

  constructor(tenant: string) {
    this.#tenant = tenant;
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    this.#things = new Things((question) => this.#send(question), url);
  }

  get hasSucceeded(): boolean {
    return this.#hasSucceeded;
  }

  async answerTo(one: Case): Promise<Answer> {
    const query = await Promise.all(
      one.query.map(
        async ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(await this.#things.fill(value))}`,
      ),
    );
    const path = `${await this.#things.fill(one.path)}${query.length > 0 ? "?" : ""}${query.join("&")}`;
    const answer = await this.#send({ method: one.method, path, headers: one.headers, body: await this.#bodyOf(one) });
    if (one.method === "DELETE") this.#things.forget(one.path);
    this.#hasSucceeded ||= answer.status < 300;
    return answer;
  }

  async #bodyOf({ body }: Case): Promise<string | Buffer> {
    if (!body.startsWith("<state>")) return this.#things.fill(body);
    const state = await this.#things.state();
    return Buffer.concat(body.split("<state>").flatMap((text, i) => (i === 0 ? [] : [state, Buffer.from(text)])));
  }

  #send(question: Question): Promise<Answer> {
    return exchange(served.url, { ...question, headers: { "x-tenant": this.#tenant, ...question.headers } }, agent);
  }
}

/** @throws Error that names the fault of the answer */
async function check(operation: Operation, asker: Asker, one: Case): Promise<void> {
  const answer = await asker.answerTo(one);
  tally[one.fault === undefined ? "allowed" : "wrong"] += 1;
  tally.statuses.set(answer.status, (tally.statuses.get(answer.status) ?? 0) + 1);
  const fault = faultOf(operation, one, answer);
  if (fault === undefined) return;
  throw new Error(
    `${fault}: ${answer.status} ${answer.headers["content-type"] ?? ""} ${answer.body.toString().slice(0, 400)}`,
  );
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
  it.each(names)("%s", { timeout: 60_000 + CASES * MS_EACH }, async (name) => {
    const operation = document.operation(name);
    const asker = new Asker(`fuzz-${seed}-${names.indexOf(name)}`);
    const cases = new Cases(document, operation);
    for (const requests of [cases.allowed, cases.wrong]) {
      const property = fc.asyncProperty(requests, (one) => check(operation, asker, one));
      await fc.assert(property, { numRuns: CASES / 2, seed, endOnFailure: false });
    }
    if (operation.succeeds && !asker.hasSucceeded) tally.neverDone.add(name);
  });
});

it("has met requests of every kind", () => {
  expect(tally.allowed).toBeGreaterThan(0);
});
