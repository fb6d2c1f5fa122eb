/**
 * The usage of a tenant is as its clients count it, to the last token, although workers and
 * gateways are killed and clients leave.
 */
import { describe, expect, it } from "vitest";
import { tokenRecord } from "#shared/contract/generation.js";
import { useKeyedFleet, type Key } from "../../auth/keyed.js";
import { ask } from "../../jobs/ask.js";
import { until } from "../../support/until.js";
import { nth } from "../pace.js";
import { streamScale } from "../scale.js";

const MODEL = "gen-mha";
const STREAMS = streamScale.used;
const { timeoutMs } = streamScale;
const { served, make, setTenant } = useKeyedFleet({
  gateways: 2,
  workers: 2,
  models: [MODEL],
  env: { BATON_RECONNECT_GRACE_MS: "1000", BATON_LEASE_MS: "1000" },
});

async function keyOf(tenant: string): Promise<Key> {
  const key = await make({ tenant });
  await setTenant(tenant, { limits: { concurrent_streams: 100_000 } });
  return key;
}

const bodyOf = (i: number, max_tokens: number, stream: boolean) => ({
  model: MODEL,
  prompt: `lap ${i}`,
  max_tokens,
  seed: i,
  stream,
  ignore_eos: true,
});

/** @returns the tokens that the answer says were used */
async function complete(url: string, key: Key, i: number): Promise<{ readonly in: number; readonly out: number }> {
  const { status, body } = await ask(`${url}/v1/completions`, { body: bodyOf(i, 40, false), headers: key.headers });
  expect([status, body]).toEqual([200, expect.objectContaining({ object: "text_completion" })]);
  const { prompt_tokens, completion_tokens } = (body as { usage?: Record<string, number> }).usage ?? {};
  return { in: prompt_tokens ?? Number.NaN, out: completion_tokens ?? Number.NaN };
}

/** Reads some of a stream, and leaves, unless the gateway dies before. */
async function readAndLeave(url: string, key: Key, i: number, chunks: number): Promise<void> {
  const leaving = new AbortController();
  try {
    const { body } = await fetch(`${url}/v1/completions`, {
      method: "POST",
      headers: { ...key.headers, "content-type": "application/json" },
      body: JSON.stringify(bodyOf(i, 500, true)),
      signal: leaving.signal,
    });
    let seen = 0;
    for await (const _ of body ?? []) if (++seen >= chunks) return leaving.abort();
  } catch {
    // The gateway was killed: its clients leave, too.
  }
}

/** The tokens in the logs of a tenant's streams. */
async function tokensInLogs(tenant: string): Promise<number> {
  const logs = await served.redis.keys(`log:*:${tenant}:*`);
  let tokens = 0;
  for (const log of logs) {
    for (const text of await served.redis.lrange(log, 0, -1)) {
      const { choices } = tokenRecord.parse(JSON.parse(text));
      tokens += choices.reduce((sum, choice) => sum + choice.tokens.length, 0);
    }
  }
  return tokens;
}

async function totalsOf(tenant: string): Promise<Record<string, number>> {
  const { headers } = await make({ tenant, scopes: ["admin"] });
  const { body } = await ask(`${nth(served.fleet.urls, 1)}/v2/usage`, { headers });
  return (body as { totals?: Record<string, number> }).totals ?? {};
}

describe("usage", () => {
  it(
    "is what clients count after workers and a gateway were killed, and nothing stays counted",
    async () => {
      const [steady, leaver] = [await keyOf("steady"), await keyOf("leaver")];
      const [doomed, whole] = [nth(served.fleet.urls, 0), nth(served.fleet.urls, 1)];
      const numbers = Array.from({ length: STREAMS }, (_, i) => i);
      let ended = 0;
      const completions = numbers.map(async (i) => {
        const used = await complete(whole, steady, i);
        ended++;
        return used;
      });
      const left = numbers.map((i) => readAndLeave(i % 2 === 0 ? doomed : whole, leaver, i, i % 7));
      for (const worker of served.fleet.workers) {
        const before = ended;
        await until(() => ended > before || ended === STREAMS);
        await worker.restart();
      }
      await nth(served.fleet.gateways, 0).member.kill();
      const used = await Promise.all(completions);
      await Promise.all(left);
      await until(async () => (await served.redis.hlen("open:all")) === 0);

      const sum = (of: "in" | "out") => used.reduce((all, one) => all + one[of], 0);
      const totals = await totalsOf("steady");
      expect(totals).toMatchObject({ requests: STREAMS, tokens_in: sum("in"), tokens_out: sum("out"), refused: 0 });
      expect(totals["tokens_out"]).toBe(await tokensInLogs("steady"));
      const { tokens_out } = await totalsOf("leaver");
      expect(tokens_out).toBe(await tokensInLogs("leaver"));
      expect(tokens_out).toBeGreaterThan(0);
      for (const { headers } of [steady, leaver]) {
        const { body } = await ask(`${whole}/v2/whoami`, { headers });
        expect(body).toMatchObject({ used: { concurrent_streams: 0, queued_requests: 0 } });
      }
    },
    timeoutMs,
  );
});
