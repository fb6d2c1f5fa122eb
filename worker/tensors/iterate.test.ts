import { describe, expect, it } from "vitest";
import { encodeFrame, type Tensor } from "#shared/frame.js";
import { delivery } from "../../test/fixtures/deliveries.js";
import { hold, type Held } from "../lane/holdings.js";
import type { Iteration } from "../models/validate/iteration.js";
import { fromCheckpoint, lastAnswer, nextRun, type Part } from "./iterate.js";
import type { ServingModel } from "./serving.js";

const batching = { batched: true, shared: new Set<string>() };
const iteration: Iteration = {
  again: "MORE",
  feeds: [{ output: "Y", input: "X" }],
  most: 3,
  answersWhen: undefined,
  every: 1,
};
const model = { iteration, batching, decoupled: true, states: [{ input: "S" }] } as unknown as ServingModel;

const byte = (name: string, value: number, datatype: "UINT8" | "BOOL" = "UINT8"): Tensor => ({
  name,
  datatype,
  shape: [1, 1],
  data: Buffer.of(value),
});

function held(): Held {
  const frame = encodeFrame({ outputs: ["Y"] }, [byte("X", 1), byte("Z", 2)]);
  return hold(delivery("e", { frame }), 1_000, batching, Promise.resolve({ kind: "found", tensors: undefined }));
}

/** The rest of a run: its output, its state, and whether it asks for another run. */
function left(y: number, state: number, more: boolean): Part {
  const outputs = [byte("Y", y), byte("MORE", more ? 1 : 0, "BOOL")];
  const output = (name: string) => outputs.find((one) => one.name === name) ?? expect.fail(name);
  return { states: [byte("S", state)], output, wanted: ["Y"], begunAt: 5, ranMs: 4, shareMs: 2 };
}

async function taken({ request, state }: Held): Promise<Record<string, number | undefined>> {
  const lookup = await state;
  const states = lookup.kind === "found" ? (lookup.tensors ?? []) : [];
  return Object.fromEntries([...request.tensors, ...states].map(({ name, data }) => [name, data[0]]));
}

describe("the next run of a request", () => {
  it("takes all that the run before leaves, and the client's other inputs", async () => {
    const next = nextRun(held(), model, left(7, 9, true), 1_000) ?? expect.fail("it runs again");
    expect(await taken(next.held)).toEqual({ X: 7, Z: 2, S: 9 });
    const before = { runs: 1, answers: 1, bytes: 1, shareMs: 2, ranMs: 4, begunAt: 5 };
    expect([next.held.before, next.held.expiresAt]).toEqual([before, Infinity]);
    expect(JSON.parse(next.answer ?? "")).toMatchObject({ index: 0, outputs: [{ name: "Y", raw: "Bw==" }] });
  });

  it("is the same at a worker that has only the checkpoint", async () => {
    const second = nextRun(held(), model, left(7, 9, true), 1_000)?.held ?? expect.fail("it runs again");
    const third = nextRun(second, model, left(8, 10, true), 1_000) ?? expect.fail("it runs again");
    const elsewhere = fromCheckpoint(held(), third.checkpoint ?? expect.fail("it is kept"), model);
    expect(elsewhere.before).toEqual({ ...third.held.before, ranMs: 0, begunAt: undefined });
    expect(await taken(elsewhere)).toEqual(await taken(third.held));
    expect(elsewhere.shapeKey).toBe(third.held.shapeKey);
  });

  it("copies all that it needs, because the memory of a run is used again", async () => {
    const part = left(7, 9, true);
    const next = nextRun(held(), model, part, 1_000) ?? expect.fail("it runs again");
    part.output("Y").data[0] = 0;
    for (const { data } of part.states) data[0] = 0;
    expect(await taken(next.held)).toMatchObject({ X: 7, S: 9 });
  });

  it("is not there if the model does not ask for it", () => {
    expect(nextRun(held(), model, left(7, 9, false), 1_000)).toBeUndefined();
    expect(JSON.parse(lastAnswer(held(), model, left(7, 9, false)))).toMatchObject({ index: 0, final: true });
  });

  it.each([
    [
      "more runs than the model may have",
      { ...held(), before: { ...held().before, runs: 2 } },
      1_000,
      /another run after 3 runs, which is max_iter/,
    ],
    [
      "more bytes of answers than a log may have",
      { ...held(), before: { ...held().before, bytes: 16 << 20 } },
      1_000,
      /^the answers to the request would exceed 16777216 bytes$/,
    ],
    ["a checkpoint too large", held(), 10, /^what the request keeps between two runs would exceed 10 bytes$/],
  ])("is refused: %s", (_, request, mostBytes, message) => {
    expect(() => nextRun(request, model, left(7, 9, true), mostBytes)).toThrow(message);
  });

  it("has no answer before it if the output that says so is false", () => {
    const silent = { ...model, iteration: { ...iteration, answersWhen: "SAYS" } };
    const part = left(7, 9, true);
    const output = (name: string) => (name === "SAYS" ? byte("SAYS", 0, "BOOL") : part.output(name));
    const next = nextRun(held(), silent, { ...part, output }, 1_000) ?? expect.fail("it runs again");
    expect([next.answer, next.held.before.answers]).toEqual([undefined, 0]);
  });
});
