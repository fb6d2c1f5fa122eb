/**
 * A fleet with work under way is moved to keys, gateway by gateway, and back. Nothing is lost, and
 * the key of the tenant `default` finds all of it.
 */
import { expect, it } from "vitest";
import { requireKeys } from "#shared/queue/deployment.js";
import { until } from "../support/until.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { keyedEnv, useFolder, useKeys } from "./keyed.js";

const folder = useFolder();
const served = useFleet({
  gateways: 2,
  workers: 1,
  jobs: 1,
  models: ["accumulate", "simple", "tale-gpt"],
  direct: true,
});
const keys = useKeys(served);

const keyed = keyedEnv(folder);
const open = { BATON_AUTH: "", BATON_AUTH_SECRET_FILE: "" };

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function ask(
  gateway: number,
  path: string,
  key?: string,
  body?: object,
  more: Record<string, string> = {},
): Promise<Answer> {
  const headers = { connection: "close", ...more, ...(key !== undefined && { "api-key": key }) };
  const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  const answer = await fetch(`${served.fleet.urls[gateway]}${path}`, init);
  const text = await answer.text();
  return { status: answer.status, body: (text.startsWith("{") ? JSON.parse(text) : { text }) as Answer["body"] };
}

const step = (value: number, flags: object = {}) => ({
  parameters: { sequence_id: 7, ...flags },
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }],
});
const sumIn = ({ body }: Answer): unknown => (body["outputs"] as { data: number[] }[] | undefined)?.[0]?.data[0];
const tale = { text_input: "Write a short story about a dragon.", max_tokens: 200 };

it("moves to keys and back without a loss", { timeout: 300_000 }, async () => {
  const [first, second] = served.fleet.gateways;
  if (first === undefined || second === undefined) throw new Error("the fleet has two gateways");
  const { text: key } = await keys.make({ tenant: "default" });

  // Work of a fleet without keys: a sequence, a keyed request, jobs, a schedule, a stream.
  expect(sumIn(await ask(0, "/v2/models/accumulate/infer", undefined, step(30, { sequence_start: true })))).toBe(30);
  const ones = Array.from({ length: 16 }, () => 1);
  const inputs = ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "INT32", shape: [1, 16], data: ones }));
  const once = { "idempotency-key": "once" };
  const answered = await ask(0, "/v2/models/simple/infer", undefined, { inputs }, once);
  expect(answered.status).toBe(200);
  const later = await ask(0, "/v2/models/simple/jobs", undefined, { infer: { inputs }, delay: 3_600_000 });
  const job = await ask(1, "/v2/models/tale-gpt/jobs", undefined, { generate: tale });
  const schedule = await ask(1, "/v2/models/simple/schedules", undefined, {
    every: 3_600_000,
    job: { infer: { inputs } },
  });
  const stream = await ask(1, "/v2/models/tale-gpt/generate_stream", undefined, tale, { prefer: "respond-async" });
  expect([later.status, job.status, schedule.status, stream.status]).toEqual([202, 202, 201, 202]);
  const idOf = ({ body }: Answer): string => String(body["id"]);

  // The first gateway asks for keys. The other one lets its client finish, and ends by itself.
  const waiting = ask(1, "/v2/models/tale-gpt/generate", undefined, tale);
  first.member.reconfigure(keyed);
  await first.member.terminate();
  await first.member.start();
  expect((await waiting).status).toBe(200);
  expect(await second.member.process.exited).toMatchObject({ code: 78 });
  second.member.reconfigure(keyed);
  await second.member.start();

  for (const gateway of [0, 1]) {
    expect((await ask(gateway, "/v2/jobs")).status).toBe(401);
    for (const [path, id] of [
      ["/v2/jobs", idOf(later)],
      ["/v2/jobs", idOf(job)],
      ["/v2/schedules", idOf(schedule)],
      ["/v2/requests", idOf(stream)],
    ] as const) {
      expect([path, (await ask(gateway, `${path}/${id}`, key)).status]).toEqual([path, 200]);
    }
  }
  expect(sumIn(await ask(1, "/v2/models/accumulate/infer", key, step(12)))).toBe(42);
  const repeated = await ask(1, "/v2/models/simple/infer", key, { inputs }, once);
  expect(repeated).toEqual(answered);
  const ended = async (path: string, one: Answer, asker?: string) =>
    (await ask(0, `${path}/${idOf(one)}`, asker)).body["state"] === "completed";
  await until(() => ended("/v2/jobs", job, key));
  await until(() => ended("/v2/requests", stream, key));

  // And back, with the word of an operator.
  await requireKeys(keys.redis, false);
  for (const { member } of [first, second]) {
    member.reconfigure(open);
    await member.terminate();
    await member.start();
  }
  expect(sumIn(await ask(0, "/v2/models/accumulate/infer", undefined, step(1)))).toBe(43);
  expect((await ask(1, `/v2/jobs/${idOf(later)}`)).body["state"]).toBe("scheduled");
  expect(await ended("/v2/jobs", job)).toBe(true);
});
