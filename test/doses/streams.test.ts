/** A stream has no gap and no repeat when its worker and its gateway are killed. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nth } from "../faults/pace.js";
import { seed } from "../faults/scale.js";
import { askFor } from "../support/streams/ask.js";
import { submitInBackground } from "../support/streams/front-doors.js";
import { StreamLab } from "../support/streams/lab.js";
import { Reader } from "../support/streams/reader.js";
import { holderOf, readStored, slowDown } from "../support/streams/stored.js";

/** Tokens enough that the stream is not over when its worker dies, even on a quick machine. */
const MANY = 1_200;
let lab: StreamLab;

beforeAll(async () => {
  lab = await StreamLab.open({ seed, fleet: { gateways: 2, workers: 2, models: ["gen-mha"] } });
}, 120_000);
afterAll(() => lab.close());

describe("a stream whose worker and gateway are killed", () => {
  it("is, record by record, as it is undisturbed", { timeout: 120_000 }, async () => {
    const { fleet, redis } = lab;
    const [gateway, other] = [nth(fleet.gateways, 0), nth(fleet.gateways, 1)];
    const ask = askFor(MANY, "a long tale", seed);
    await lab.learn([ask]);

    slowDown(fleet);
    const id = await submitInBackground(gateway.url, ask);
    const reader = new Reader(gateway.url, id);
    await reader.reach(1);
    await (await holderOf(redis, fleet.workers, id)).kill();
    fleet.lines.workerRedis.heal();
    await gateway.member.kill();
    const { records } = await reader.ended;
    const rest = await new Reader(other.url, id, records.length - 1).ended;

    const { log, takenAt } = await readStored(redis, id);
    expect(takenAt).toBeGreaterThan(0);
    expect(takenAt).toBeLessThan(log.length);
    expect(log).toEqual(lab.referenceOf(ask));
    expect([...records, ...rest.records]).toEqual(log);
    expect(await lab.leftOver()).toEqual([]);
  });
});
