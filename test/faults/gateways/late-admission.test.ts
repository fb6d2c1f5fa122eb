/**
 * A gateway's link to Redis stalls with an admission on it. The gateway reconnects and admits the
 * request anew. The first call arrives after the request was answered and the client had its
 * outcome.
 */
import { expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";

const served = useFleet({ models: ["accumulate"] });

async function add(value: number, start: boolean): Promise<{ status: number; sum: number | undefined }> {
  const answer = await fetch(`${served.url}/v2/models/accumulate/infer`, {
    method: "POST",
    body: JSON.stringify({
      parameters: { sequence_id: 42, sequence_start: start },
      inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }],
    }),
  });
  const body = (await answer.json()) as { outputs?: { data: number[] }[] };
  return { status: answer.status, sum: body.outputs?.[0]?.data[0] };
}

it("takes effect once", { timeout: 60_000 }, async () => {
  const { redis } = served;
  const outcomes = async () => (await redis.keys("out:*")).length;
  expect(await add(20, true)).toEqual({ status: 200, sum: 20 });
  // Outcomes are swept away when no client can ask for them.
  await expect.poll(outcomes).toBe(0);

  const stalled = served.fleet.lines.gatewayRedis.stall();
  const second = add(22, false);
  await expect.poll(() => stalled.holds('"name":"INPUT"'), { interval: 1 }).toBe(true);
  stalled.cut();
  expect(await second).toEqual({ status: 200, sum: 42 });

  // A further request comes and is swept. By then the removable records of the second request are
  // gone, too.
  await add(0, false);
  await expect.poll(outcomes).toBeLessThan(2);
  await stalled.deliver();
  expect(await add(0, false)).toEqual({ status: 200, sum: 42 });
});
