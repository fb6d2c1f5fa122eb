/**
 * A tenant has as many live sequences of all models as its limit says, made by a START, a fork or
 * an import. Each end of a sequence makes room.
 */
import { describe, expect, it } from "vitest";
import type { WhoAmI } from "../../gateway/service/keys.js";
import { ask, type Answer } from "../jobs/ask.js";
import { changeFacts } from "../support/queue/facts.js";
import { sequenceIn } from "../support/queue/of-model.js";
import { useKeyedFleet, type Key } from "./keyed.js";

const fleet = useKeyedFleet({ models: ["accumulate", "chain"], direct: true });
const { served, make, setTenant } = fleet;
const refusal = (most: number) => ({
  error: `the tenant may have ${most} live sequences (live_sequences)`,
  code: "sequence_limit",
  limit: "live_sequences",
  scope: "tenant",
});

/** The datatype of each model's input. */
const inputs = { accumulate: "INT32", chain: "INT64" };
type Model = keyof typeof inputs;
const step = ({ headers }: Key, id: number, flags: object = {}, model: Model = "accumulate"): Promise<Answer> =>
  ask(`${served.url}/v2/models/${model}/infer`, {
    body: {
      parameters: { sequence_id: id, ...flags },
      inputs: [{ name: "INPUT", datatype: inputs[model], shape: [1, 1], data: [1] }],
    },
    headers,
  });
const begin = (key: Key, id: number, model?: Model) => step(key, id, { sequence_start: true }, model);
const of = (id: number, rest = "") => `${served.url}/v2/models/accumulate/sequences/${id}${rest}`;
const said = ({ status, body }: Answer): unknown => (status === 200 || status === 201 ? "made" : [status, body]);
const look = async ({ headers }: Key) => (await ask(`${served.url}/v2/whoami`, { headers })).body as unknown as WhoAmI;
const live = async (key: Key) => (await look(key)).used.live_sequences;

async function bounded(tenant: string, most: number): Promise<Key> {
  const key = await make({ tenant });
  await setTenant(tenant, { limits: { live_sequences: most } });
  return key;
}

describe("the live sequences of a tenant", () => {
  it("are as many as its limit, of all its keys, and any end makes room", async () => {
    const key = await bounded("acme", 2);
    const other = await make({ tenant: "acme" });
    expect([said(await begin(key, 1)), said(await begin(other, 2))]).toEqual(["made", "made"]);
    expect(said(await begin(key, 1, "chain"))).toEqual([429, refusal(2)]);
    expect(await look(key)).toMatchObject({ limits: { live_sequences: 2 }, used: { live_sequences: 2 } });
    const refused = await begin(other, 3);
    expect(said(refused)).toEqual([429, refusal(2)]);
    expect([refused.headers.get("retry-after"), refused.headers.get("retry-after-ms")]).toEqual(["1", "1000"]);
    // Steps of sequences that are there, and another START of one, are no further sequence.
    expect([said(await step(key, 1)), said(await begin(key, 2))]).toEqual(["made", "made"]);
    const stranger = await make({ tenant: "globex" });
    expect(said(await begin(stranger, 3))).toBe("made");

    expect(said(await step(key, 1, { sequence_end: true }))).toBe("made");
    expect([await live(key), said(await begin(other, 3))]).toEqual([1, "made"]);
    expect(said(await begin(key, 4))).toEqual([429, refusal(2)]);
    const headers = key.headers;
    expect((await ask(of(3), { method: "DELETE", headers })).status).toBe(200);
    expect([await live(key), said(await begin(key, 4))]).toEqual([1, "made"]);

    const { name, live: index, lane } = await sequenceIn(served.redis, "accumulate", "u4", "acme");
    await changeFacts(served.redis, lane, name, { lapses: 1 });
    await served.redis.zadd(index, 1, name);
    await expect.poll(() => live(key), { timeout: 20_000 }).toBe(1);
    expect([said(await begin(key, 5, "chain")), await live(key)]).toEqual(["made", 2]);
    const gateway = served.fleet.gateways[0]?.member.process ?? expect.fail("no gateway");
    await gateway.waitForLine(
      "rate_limited",
      ({ fields }) => fields["event"] === "rate_limited" && fields["limit"] === "live_sequences",
    );
  });

  it("include forks and imports", async () => {
    const key = await bounded("copier", 2);
    const { headers } = key;
    expect(said(await begin(key, 11))).toBe("made");
    const fork = (id: number) => ask(of(11, "/fork"), { body: { sequence_id: id }, headers });
    const state = await (await fetch(of(11, "/state"), { headers })).arrayBuffer();
    const bring = async (id: number) => {
      const answer = await fetch(of(id, "/state"), { method: "PUT", body: state, headers });
      return answer.ok ? "made" : [answer.status, await answer.json()];
    };
    expect(said(await fork(12))).toBe("made");
    // Forks and imports lie in any bucket.
    for (const id of [13, 14, 15, 16]) {
      expect(said(await fork(id))).toEqual([429, refusal(2)]);
      expect(await bring(id)).toEqual([429, refusal(2)]);
    }
    expect((await ask(of(12), { method: "DELETE", headers })).status).toBe(200);
    expect(await bring(13)).toBe("made");
    expect(said(await begin(key, 17))).toEqual([429, refusal(2)]);
    expect(await live(key)).toBe(2);
  });

  it("are none if the limit is 0, and begin at once many times over", async () => {
    expect(said(await begin(await bounded("closed", 0), 21))).toEqual([429, refusal(0)]);
    const key = await bounded("rushing", 5);
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => begin(key, 100 + i)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
    expect(answers.filter(({ body }) => body.code === "sequence_limit")).toHaveLength(35);
    expect(await live(key)).toBe(5);
  });

  it("stay counted right if gateways and workers die", { timeout: 60_000 }, async () => {
    const key = await bounded("falling", 3);
    expect([said(await begin(key, 31)), said(await begin(key, 32))]).toEqual(["made", "made"]);
    const gateways = served.fleet.gateways.map(({ member }) => member);
    await Promise.all([...served.fleet.workers, ...gateways].map((one) => one.restart()));
    await expect.poll(async () => said(await step(key, 31)), { timeout: 30_000 }).toBe("made");
    expect(await live(key)).toBe(2);
    expect([said(await begin(key, 33)), said(await begin(key, 34))]).toEqual(["made", [429, refusal(3)]]);
  });
});
