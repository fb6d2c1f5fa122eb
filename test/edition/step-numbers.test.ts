/**
 * An answer says its step's number in the sequence, and a request may demand a number. If the fleet
 * has lost answered steps, a request with a number gets an error, and the step does not run on the
 * older state.
 */
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { add, simple, stepBody, type Step } from "./ask.js";
import { buckets } from "./settings.js";

const served = useFleet({ models: ["accumulate", "simple"], env: buckets(16), direct: true });

const numbered = (step: Step, number: unknown) =>
  add(served.url, { ...step, parameters: { sequence_step: number, ...step.parameters } });

async function whole(step: Step, headers: Readonly<Record<string, string>> = {}) {
  const url = `${served.url}/v2/models/accumulate/infer`;
  const answer = await fetch(url, { method: "POST", body: JSON.stringify(stepBody(step)), headers });
  return (await answer.json()) as { readonly parameters?: unknown; readonly id?: string };
}

it("is in the answer, counted from START", async () => {
  expect(await whole({ sequence: 1, value: 1, start: true })).toMatchObject({ parameters: { sequence_step: 1 } });
  expect(await whole({ sequence: 1, value: 1 })).toMatchObject({ parameters: { sequence_step: 2 } });
  expect(await whole({ sequence: 1, value: 1, start: true })).toMatchObject({ parameters: { sequence_step: 1 } });
  expect(await whole({ sequence: 1, value: 1 })).toMatchObject({ parameters: { sequence_step: 2 } });
  // A retry reads the same answer.
  const key = { "idempotency-key": "third" };
  const third = await whole({ sequence: 1, value: 1 }, key);
  expect(third).toMatchObject({ parameters: { sequence_step: 3 } });
  expect(await whole({ sequence: 1, value: 1 }, key)).toEqual(third);
});

it("may be said by the client, and a wrong one changes nothing", async () => {
  expect(await numbered({ sequence: 2, value: 10, start: true }, 1)).toMatchObject({ output: 10 });
  expect(await numbered({ sequence: 2, value: 1 }, 2)).toMatchObject({ output: 11 });
  const taken = await numbered({ sequence: 2, value: 1 }, 2);
  expect(taken).toMatchObject({ status: 409, code: "behind_of_state" });
  expect(taken.error).toMatch(/step 2 of sequence 2 .* next step .* is 3/);
  const early = await numbered({ sequence: 2, value: 1 }, 5);
  expect(early).toMatchObject({ status: 409, code: "ahead_of_state" });
  expect(early.error).toMatch(/step 5 of sequence 2 .* next step .* is 3/);
  expect(await numbered({ sequence: 2, value: 1 }, 3)).toMatchObject({ output: 12 });
});

it("is refused by name where it means nothing", async () => {
  for (const malformed of [0, -1, 1.5, "1", true, {}]) {
    const said = await numbered({ sequence: 3, value: 1, start: true }, malformed);
    expect(said).toMatchObject({ status: 400, code: "invalid_argument" });
    expect(said.error).toContain("sequence_step");
  }
  expect(await numbered({ sequence: 3, value: 1, start: true }, 2)).toMatchObject({ status: 400 });
  expect((await simple(served.url, 1, { sequence_step: 1 })).error).toContain("sequence_step");
  expect(await add(served.url, { sequence: 3, value: 1 })).toMatchObject({ code: "sequence_start_required" });
});

it("tells a client of a step that was lost with a Redis that went back in time", { timeout: 90_000 }, async () => {
  const { fleet } = served;
  const data = join(fleet.folder, "redis");
  const copy = join(fleet.folder, "older");
  expect(await numbered({ sequence: 4, value: 20, start: true }, 1)).toMatchObject({ output: 20 });
  expect(await numbered({ sequence: 4, value: 1 }, 2)).toMatchObject({ output: 21 });
  cpSync(data, copy, { recursive: true });
  expect(await numbered({ sequence: 4, value: 1 }, 3)).toMatchObject({ output: 22 });

  await fleet.redis.kill();
  rmSync(data, { recursive: true });
  cpSync(copy, data, { recursive: true });
  await fleet.redis.restart();

  const answered = async () => {
    const said = await numbered({ sequence: 4, value: 1 }, 4);
    return said.code === "unavailable" || said.code === "outcome_unknown" ? undefined : said;
  };
  let next = await answered();
  await expect.poll(async () => (next ??= await answered())).toBeDefined();
  expect(next).toMatchObject({ status: 409, code: "ahead_of_state" });
  expect(next?.error).toMatch(/step 4 of sequence 4 .* next step .* is 3/);
  // The client does the lost step once more, and continues.
  expect(await numbered({ sequence: 4, value: 1 }, 3)).toMatchObject({ output: 22 });
  expect(await numbered({ sequence: 4, value: 1 }, 4)).toMatchObject({ output: 23 });
});
