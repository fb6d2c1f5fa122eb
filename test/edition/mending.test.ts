/**
 * If a user deletes the queued step of one sequence, that step's client gets an error, and the
 * sequence can continue. More than a thousand other sequences have waiting steps.
 */
import { expect, it } from "vitest";
import { queued } from "../support/queued.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { add, type Said } from "./ask.js";
import { buckets, patient } from "./settings.js";

const WHOLE = 1_100;
const served = useFleet({ models: ["accumulate"], configs: { accumulate: patient }, env: buckets(1), direct: true });

it("tells the client of the one that was broken", { timeout: 120_000 }, async () => {
  const { redis } = served;
  const answered: Said[] = [];
  const start = async (sequence: number) => {
    const said = await add(served.url, { sequence, value: 1, start: true }, 100_000);
    answered.push(said);
    return said;
  };
  for (let sequence = 1; sequence <= WHOLE; sequence++) void start(sequence);
  await expect.poll(() => queued(redis), { timeout: 60_000 }).toBe(WHOLE);

  // The highest name belongs to the last sequence, and so does the newest entry.
  const broken = start(999_999_999);
  await expect.poll(() => queued(redis)).toBe(WHOLE + 1);
  const [key = ""] = await redis.keys("ready:*");
  const [newest] = await redis.xrevrange(key, "+", "-", "COUNT", 1);
  expect(await redis.xdel(key, newest?.[0] ?? "")).toBe(1);

  await expect.poll(() => answered).toHaveLength(1);
  expect(await broken).toMatchObject({ status: 500, code: "request_lost" });
});
