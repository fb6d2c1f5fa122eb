/** Sequences that are idle for long lie on disk, and resume from there. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { connectRedis, whenReady } from "#shared/redis/connect.js";
import { SleepingStates, isPointer } from "#shared/sleeping-states.js";
import { removeUnused } from "../../../worker/upkeep/unused-files.js";
import { configWith } from "../../support/fleet/repository.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { silentLog } from "../../support/silent.js";
import { ask, exported, step, steps, sum, TENANT_HEADER } from "./ask.js";

const parent = mkdtempSync(join(tmpdir(), "baton-asleep-"));
const folder = join(parent, "states");
mkdirSync(folder);
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const served = useFleet({
  workers: 2,
  models: ["accumulate"],
  configs: { accumulate: configWith("accumulate", "checkpoint_history", "3") },
  env: {
    BATON_TENANT_HEADER: TENANT_HEADER,
    BATON_HIBERNATE_DIR: folder,
    BATON_HIBERNATE_AFTER_MS: "200",
    BATON_STATE_CACHE_BYTES: "0",
  },
  direct: true,
});

const at = (id: number, rest = "") => `accumulate/sequences/${id}${rest}`;

/** The checkpoints of a sequence in Redis. */
async function stored(id: number): Promise<(Buffer | null)[]> {
  const { redis } = served;
  const keys = await redis.keys(`state:*:accumulate:acme:u${id}@*`);
  return await Promise.all(keys.map((key) => redis.getBuffer(key)));
}

const fallAsleep = (id: number, count: number) =>
  expect.poll(async () => (await stored(id)).filter(isPointer).length).toBe(count);

it("wake at the next step, at whichever worker", async () => {
  await steps(served.url, 1, 1, 10);
  await fallAsleep(1, 2);
  expect((await ask("GET", served.url, at(1))).body).toMatchObject({
    state: "hibernating",
    step: 2,
    state_bytes: 4,
    checkpoints: [1, 2],
  });
  const asleep = await ask("GET", served.url, "accumulate/sequences?state=hibernating");
  expect(asleep.body.sequences).toMatchObject([{ sequence_id: 1 }]);
  await Promise.all(served.fleet.workers.map((worker) => worker.restart()));
  await served.fleet.whenServing();
  expect(await sum(served.url, 1, 100)).toBe(111);
  expect((await stored(1)).filter((value) => !isPointer(value))).not.toEqual([]);
  await fallAsleep(1, 3);
  expect(await sum(served.url, 1, 1_000)).toBe(1_111);
});

it("are taken back, forked and exported like others", async () => {
  await steps(served.url, 2, 1, 10, 100);
  await fallAsleep(2, 3);
  expect(await ask("POST", served.url, at(2, "/fork"), { body: { sequence_id: 3 } })).toMatchObject({ status: 200 });
  expect(await ask("POST", served.url, at(2, "/fork"), { body: { sequence_id: 4, step: 2 } })).toMatchObject({
    status: 200,
    body: { step: 2, state_bytes: 4 },
  });
  const body = await exported(served.url, at(2, "/state?step=1"));
  expect(await ask("PUT", served.url, at(5, "/state"), { body })).toMatchObject({ status: 200, body: { step: 1 } });
  await fallAsleep(2, 3);
  expect(await ask("POST", served.url, at(2, "/rewind"), { body: { step: 2 } })).toMatchObject({ status: 200 });
  expect(await sum(served.url, 2, 5)).toBe(16);
  expect(await sum(served.url, 3, 5)).toBe(116);
  expect(await sum(served.url, 4, 5)).toBe(16);
  expect(await sum(served.url, 5, 5)).toBe(6);
});

it("lose nothing while the folder is away: their steps wait for it", async () => {
  await steps(served.url, 6, 1, 10);
  await fallAsleep(6, 2);
  renameSync(folder, `${folder}.away`);
  const waiting = sum(served.url, 6, 100);
  const refused = await ask("POST", served.url, at(6, "/fork"), { body: { sequence_id: 7 } });
  expect(refused).toMatchObject({ status: 503, body: { code: "unavailable" } });
  expect(refused.body.error).toContain("BATON_HIBERNATE_DIR");
  renameSync(`${folder}.away`, folder);
  expect(await waiting).toBe(111);
});

it("end with their file alone gone, in words", async () => {
  await steps(served.url, 8, 1);
  await fallAsleep(8, 1);
  const [pointer] = await stored(8);
  const name = pointer?.toString().split(":").at(-1) ?? "";
  const [deployment = ""] = readdirSync(folder);
  const file = join(folder, deployment, name.slice(0, 2), name);
  expect(existsSync(file)).toBe(true);
  rmSync(file);
  expect(await step(served.url, "accumulate", 8, 1)).toMatchObject({ status: 500, body: { code: "state_lost" } });
  expect(await step(served.url, "accumulate", 8, 1)).toMatchObject({
    status: 400,
    body: { code: "sequence_start_required", reason: "cancelled" },
  });
});

it("leave files behind, which are removed when nothing points to them", async () => {
  await steps(served.url, 9, 1);
  await fallAsleep(9, 1);
  await steps(served.url, 10, 1);
  await fallAsleep(10, 1);
  await ask("DELETE", served.url, at(10));
  const [deployment = ""] = readdirSync(folder);
  const files = () =>
    readdirSync(join(folder, deployment)).flatMap((part) =>
      part.length === 2 ? readdirSync(join(folder, deployment, part)) : [],
    );
  const redis = connectRedis({ url: served.fleet.redis.url, name: "test", log: silentLog });
  await whenReady(redis, AbortSignal.timeout(60_000));
  const secret = await redis.hgetBuffer("{registry}:deployment", "secret");
  const states = new SleepingStates(folder, secret ?? Buffer.alloc(0), silentLog);
  await states.prepare();
  const asleep = (await stored(9))[0]?.toString().split(":").at(-1);
  const unused = new Map<string, number>();
  const look = (graceMs: number) =>
    removeUnused({ redis, states, unused, log: silentLog }, new AbortController().signal, graceMs);
  const before = files().length;
  await look(60_000);
  expect(files()).toHaveLength(before);
  await look(0);
  expect(files().length).toBeLessThan(before);
  expect(files()).toContain(asleep);
  expect(await sum(served.url, 9, 1)).toBe(2);
  redis.disconnect();
});
