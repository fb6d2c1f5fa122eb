/** Sequences as things over a Redis Cluster, in the mode `replicated`, with states on disk. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { clusterStore } from "../../support/fleet/cluster-store.js";
import { startFleet, type Fleet } from "../../support/fleet/fleet.js";
import { ownConfig } from "../../support/fleet/repository.js";
import { buckets } from "../settings.js";
import { ask, exported, lookDuring, step, steps, sum, TENANT_HEADER } from "./ask.js";

const folder = mkdtempSync(join(tmpdir(), "baton-asleep-"));
const IDS = Array.from({ length: 30 }, (_, i) => i + 1);
let fleet: Fleet;
let url: string;

beforeAll(async () => {
  const store = await clusterStore();
  const env = {
    ...buckets(16),
    BATON_TENANT_HEADER: TENANT_HEADER,
    BATON_HIBERNATE_DIR: folder,
    BATON_HIBERNATE_AFTER_MS: "200",
    BATON_STATE_CACHE_BYTES: "0",
  };
  // On a busy machine all sequences together take longer than one may be idle by its own model.
  const configs = { accumulate: (ownConfig("accumulate") ?? "").replace("60000000", "600000000") };
  fleet = await startFleet({ models: ["accumulate", "slow-sequence"], configs, store, env });
  await fleet.whenServing();
  url = fleet.urls[0] ?? "";
}, 180_000);
afterAll(async () => {
  await fleet.dispose();
  rmSync(folder, { recursive: true, force: true });
});

it("are listed over all buckets, forked from any to any, carried, and ended", async () => {
  for (const id of IDS) await steps(url, id, id, 1);
  const listed: unknown[] = [];
  for (let next: string | undefined = ""; next !== undefined;) {
    const { body } = await ask("GET", url, `accumulate/sequences?limit=7${next && `&after=${next}`}`);
    listed.push(...(body.sequences ?? []).map(({ sequence_id }) => sequence_id));
    next = body.next;
  }
  expect([...listed].sort((a, b) => Number(a) - Number(b))).toEqual(IDS);
  for (const id of IDS) {
    const at = `accumulate/sequences/${id}`;
    const forked = await ask("POST", url, `${at}/fork`, { body: { sequence_id: id + 100 }, key: "f" });
    expect(forked, String(id)).toMatchObject({ status: 200, body: { sequence_id: id + 100, step: 2, state_bytes: 4 } });
    expect(await sum(url, id, 10)).toBe(id + 11);
    expect(await sum(url, id + 100, 20)).toBe(id + 21);
    expect(await ask("POST", url, `${at}/fork`, { body: { sequence_id: id + 100 }, key: "f" })).toEqual(forked);
    const body = await exported(url, `${at}/state`);
    expect((await ask("PUT", url, `accumulate/sequences/${id + 200}/state`, { body })).status).toBe(200);
    expect(await sum(url, id + 200, 1)).toBe(id + 12);
    expect((await ask("POST", url, `${at}/rewind`, { body: { step: 3 } })).status).toBe(200);
    expect((await ask("DELETE", url, at)).status).toBe(200);
    expect((await step(url, "accumulate", id, 1)).body).toMatchObject({ reason: "deleted" });
  }
});

it("show their open requests and their statistics over all buckets", async () => {
  const OF_SLOW = Array.from({ length: 24 }, (_, i) => i + 1);
  let taken = 0;
  const all = async (start: boolean) => {
    const answers = await Promise.all(OF_SLOW.map((id) => step(url, "slow-sequence", id, 1, { start })));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    taken += answers.length;
  };
  await all(true);
  // Steps may be over before a look, so others follow until most sequences have been seen.
  const seen = new Set<number>();
  while (seen.size <= OF_SLOW.length / 2) {
    await lookDuring(Promise.all([1, 2, 3, 4].map(() => all(false))), async () => {
      for (let next: string | undefined = ""; next !== undefined;) {
        const { body } = await ask("GET", url, `slow-sequence/requests?limit=5${next && `&after=${next}`}`);
        const page = body as {
          readonly requests?: readonly { readonly sequence_id: number }[];
          readonly next?: string;
        };
        expect(page.requests?.length).toBeLessThanOrEqual(5);
        for (const { sequence_id: id } of page.requests ?? []) seen.add(id);
        next = page.next;
      }
      return false;
    });
  }
  const counted = async () => {
    const { body } = await ask("GET", url, "slow-sequence/stats");
    const { model_stats: [stats] = [] } = body as { model_stats?: readonly { readonly inference_count: number }[] };
    return stats?.inference_count;
  };
  await expect.poll(counted).toBe(taken);
});
