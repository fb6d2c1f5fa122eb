/** A generation's deadline is kept by the gateway that admitted it; where that has died, by whoever has the request or reads it next. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startFleet, type Fleet } from "../setup/fleet.js";

let fleet: Fleet;
beforeAll(async () => {
  const env = { BATON_GENERATOR_SLOTS: "1" };
  fleet = await startFleet({ gateways: 2, workers: 1, models: ["gen-mha"], env });
  await fleet.whenServing();
}, 120_000);
afterAll(() => fleet.dispose());

async function submit(url: string, parameters: object): Promise<string> {
  const answer = await fetch(`${url}/v2/models/gen-mha/generate`, {
    method: "POST",
    headers: { prefer: "respond-async", "content-type": "application/json" },
    body: JSON.stringify({
      text_input: "once",
      max_tokens: 4_000,
      ignore_eos: true,
      timeout: 1_000_000,
      ...parameters,
    }),
  });
  expect(answer.status).toBe(202);
  return ((await answer.json()) as { id: string }).id;
}

it(
  "ends generations that run, queue or wait, though the gateway that admitted them is dead",
  { timeout: 60_000 },
  async () => {
    const [first, second] = fleet.gateways;
    if (first === undefined || second === undefined) throw new Error("two gateways should run");
    const turn = { sequence_id: 7, sequence_start: true };
    const ids = await Promise.all([submit(first.url, {}), submit(first.url, {}), submit(first.url, turn)]);
    ids.push(await submit(first.url, { ...turn, sequence_start: false }));
    await first.member.kill();
    for (const id of ids) {
      const asked = async () => (await (await fetch(`${second.url}/v2/requests/${id}`)).json()) as { state: string };
      await expect.poll(asked, { timeout: 30_000 }).toMatchObject({ state: "expired", outcome: { code: "expired" } });
      const events = await (await fetch(`${second.url}/v2/requests/${id}/events`)).text();
      expect(events.match(/"final":true,"reason":"expired"/g)).toHaveLength(1);
    }
  },
);
