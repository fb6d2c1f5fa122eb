/**
 * States that clients bring: each model takes back the very bytes that it gave out, and a forged
 * state changes nothing for any other sequence, whether a gateway or only a worker notices.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { encodeCheckpoint } from "#shared/contract/checkpoint.js";
import { decodeSequenceFrame, encodeSequenceFrame, type SequenceFrame } from "#shared/contract/sequence-frame.js";
import type { Tensor } from "#shared/frame.js";
import { ownConfig } from "../../support/fleet/repository.js";
import { root } from "../../support/fleet/root.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { ask, exported, step, steps, TENANT_HEADER } from "./ask.js";

/** The names of all models of the tests that keep a state between two requests. */
function remembering(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}
const all = [...remembering("infra/models"), ...remembering("test/fixtures/models")];
const isGenerator = (name: string): boolean => /^gen-|^tale-/.test(name);
/** Not those with many answers, which `infer` refuses. */
const sequenceModels = all.filter((name) => {
  const config = ownConfig(name) ?? "";
  return config.includes("sequence_batching") && !config.includes("decoupled: true");
});
const generators = all.filter(isGenerator);

const served = useFleet({
  models: [...sequenceModels, ...generators, "rows-twice", "rows-twice-free"],
  // Long enough that all steps of a round share a batch.
  configs: { accumulate: (ownConfig("accumulate") ?? "").replace("_microseconds: 500 ", "_microseconds: 50000 ") },
  env: { BATON_TENANT_HEADER: TENANT_HEADER },
  direct: true,
});

interface Metadata {
  readonly inputs: readonly { readonly name: string; readonly datatype: string; readonly shape: readonly number[] }[];
}

/** Values of the right kind, one for each element, different from step to step. */
function valuesOf(datatype: string, count: number, seed: number): (number | string | boolean)[] {
  return Array.from({ length: count }, (_, i) => {
    if (datatype === "BYTES") return `text ${seed}.${i}`;
    if (datatype === "BOOL") return false;
    return datatype.startsWith("FP") ? ((seed * 7 + i) % 13) / 13 : seed;
  });
}

/** A step with made-up inputs of the shapes that the model's metadata names. */
async function madeUpStep(model: string, { inputs }: Metadata, seed: number, start: boolean) {
  const given = inputs.map(({ name, datatype, shape }) => {
    const own = shape.map((dim) => (dim === -1 ? 1 : dim));
    const count = own.reduce((product, dim) => product * dim, 1);
    // The one model with a rate takes only two rates.
    const data = name === "rate" ? [16_000] : valuesOf(datatype, count, seed);
    return { name, datatype, shape: own, data };
  });
  return ask("POST", served.url, `${model}/infer`, {
    body: { parameters: { sequence_id: idOf(model), sequence_start: start }, inputs: given },
  });
}

/** A turn of a conversation, with the most likely tokens. */
function turn(model: string, seed: number, start: boolean) {
  return ask("POST", served.url, `${model}/generate`, {
    body: {
      text_input: `Once ${seed}`,
      parameters: { sequence_id: idOf(model), sequence_start: start, temperature: 0, max_tokens: 5 },
    },
  });
}

/** An id of each type: models with a correlation id take one type only. */
const idOf = (model: string): number | string => (model === "bytes-memory" ? "seventy" : 77);

describe("the bytes of a state that a model gave out", () => {
  it.each([...sequenceModels, ...generators])("are taken back by %s, which goes on as before", async (model) => {
    const metadata = (await (await fetch(`${served.url}/v2/models/${model}`)).json()) as Metadata;
    const take = (seed: number, start = false) =>
      isGenerator(model) ? turn(model, seed, start) : madeUpStep(model, metadata, seed, start);
    const path = `${model}/sequences/${idOf(model)}`;
    // A client reads the last token of a turn before the worker commits the turn.
    const atRest = (step: number) =>
      expect
        .poll(async () => (await ask("GET", served.url, path)).body)
        .toMatchObject({ step, idle_deadline: expect.any(String) as string });
    expect(await take(1, true)).toMatchObject({ status: 200 });
    await atRest(1);
    expect(await take(2)).toMatchObject({ status: 200 });
    await atRest(2);
    const frame = await exported(served.url, `${path}/state`);
    const undisturbed = await take(3);
    expect(undisturbed.status).toBe(200);
    await atRest(3);
    await ask("DELETE", served.url, path);
    const put = await ask("PUT", served.url, `${path}/state`, { body: frame });
    expect(put).toMatchObject({ status: 200, body: { step: 2 } });
    expect(await exported(served.url, `${path}/state`)).toEqual(frame);
    const { id: _, ...again } = (await take(3)).body as Record<string, unknown>;
    const { id: __, ...before } = undisturbed.body as Record<string, unknown>;
    expect(again).toEqual(before);
  });
});

/** A frame with other tensors and a fitting checksum. */
function forged(frame: Buffer, tensors: readonly Tensor[]): Buffer {
  return encodeSequenceFrame({ ...decodeSequenceFrame(frame), tensors } satisfies SequenceFrame);
}

function ofRows(rows: number): Tensor {
  const data = Buffer.from(Int32Array.from({ length: rows }, () => 2_000_000).buffer);
  return { name: "INPUT_STATE", datatype: "INT32", shape: [rows, 1], data };
}

const one = ofRows(1);

describe("a forged state", () => {
  const at = (id: number, rest = "") => `accumulate/sequences/${id}${rest}`;
  let frame: Buffer;
  beforeAll(async () => {
    await steps(served.url, 1, 5);
    frame = await exported(served.url, at(1, "/state"));
  });

  it.each<[string, readonly Tensor[]]>([
    ["two rows", [ofRows(2)]],
    ["no row", [ofRows(0)]],
    ["no batch dimension", [{ ...one, shape: [1] }]],
    ["another dimension", [{ ...one, shape: [1, 2], data: Buffer.alloc(8) }]],
    ["another rank", [{ ...one, shape: [1, 1, 1] }]],
    ["another name", [{ ...one, name: "INPUT" }]],
    ["another datatype", [{ ...one, datatype: "FP32" }]],
    ["no tensor", []],
    ["its tensor twice", [one, one]],
  ])("with %s is refused, and no sequence is made", async (_, tensors) => {
    const told = await ask("PUT", served.url, at(2, "/state"), { body: forged(frame, tensors) });
    expect(told).toMatchObject({ status: 409, body: { code: "frame_mismatch", error: expect.any(String) as string } });
    expect(await ask("GET", served.url, at(2))).toMatchObject({ status: 404 });
  });

  it("is refused where a conversation has tokens that its model does not know", async () => {
    const [model = ""] = generators;
    await turn(model, 1, true);
    await expect.poll(async () => (await ask("GET", served.url, `${model}/sequences/77`)).body.step).toBe(1);
    const talk = await exported(served.url, `${model}/sequences/${idOf(model)}/state`);
    const strange: Tensor = { name: "history", datatype: "INT32", shape: [1], data: Buffer.alloc(4, 0x7f) };
    for (const tensors of [[strange], [{ ...strange, shape: [1, 1], data: Buffer.alloc(4) }], [one]]) {
      expect(
        await ask("PUT", served.url, `${model}/sequences/78/state`, { body: forged(talk, tensors) }),
      ).toMatchObject({ status: 409, body: { code: "frame_mismatch" } });
    }
  });

  const HONEST = 24;
  const ROUNDS = 25;
  const FORGED = 4;

  /**
   * Runs rounds of one step for each honest sequence, all at once with forged sequences.
   * @param forge makes the forged sequences of a round, which belong to the attacker's tenant
   * @returns how many honest steps gave a wrong sum, and how many forged steps gave a sum
   */
  async function wrongSteps(attacker: string, first: number, forge: (ids: readonly number[]) => Promise<void>) {
    const honest = Array.from({ length: HONEST }, (_, i) => first + i);
    await Promise.all(honest.map((id) => steps(served.url, id, 0)));
    let wrong = 0;
    let answered = 0;
    for (let round = 1; round <= ROUNDS; round++) {
      const ids = Array.from({ length: 2 * FORGED }, (_, i) => first + 1_000 * round + i);
      await forge(ids);
      // Forged steps of two rows come before the honest steps, and forged steps of no row behind.
      const attack = (some: readonly number[]) =>
        some.map((id) => step(served.url, "accumulate", id, 1, { tenant: attacker }));
      const before = attack(ids.filter((_, i) => i % 2 === 0));
      const asked = honest.map((id) => step(served.url, "accumulate", id, id));
      const attacks = [...before, ...attack(ids.filter((_, i) => i % 2 === 1))];
      const sums = await Promise.all(asked);
      wrong += sums.filter(({ output }, i) => output !== round * (honest[i] ?? 0)).length;
      answered += (await Promise.all(attacks)).filter(({ status }) => status === 200).length;
    }
    return { wrong, answered };
  }

  it.each([
    ["the same tenant", "acme", 100_000],
    ["another tenant", "eve", 200_000],
  ])("of %s makes no honest step wrong", async (_, attacker, first) => {
    const forge = async (ids: readonly number[]) => {
      await Promise.all(
        ids.map((id, i) => {
          const body = forged(frame, [ofRows(i % 2 === 0 ? 2 : 0)]);
          return ask("PUT", served.url, at(id, "/state"), { body, tenant: attacker });
        }),
      );
    };
    expect(await wrongSteps(attacker, first, forge)).toEqual({ wrong: 0, answered: 0 });
  });

  describe("that no gateway has seen", () => {
    let redis: Redis;
    beforeAll(() => {
      redis = new Redis(served.fleet.redis.port, { lazyConnect: false });
    });
    afterAll(() => redis.disconnect());

    it("makes no honest step wrong, and ends its own sequence alone", async () => {
      const forge = async (ids: readonly number[]) => {
        for (const [i, id] of ids.entries()) {
          await ask("PUT", served.url, at(id, "/state"), { body: frame, tenant: "eve" });
          const [key = ""] = await redis.keys(`state:*:eve:u${id}@*`);
          const version = key.slice(key.indexOf("@") + 1);
          const { frame: checkpoint } = encodeCheckpoint(version, [ofRows(i % 2 === 0 ? 2 : 0)]);
          await redis.set(key, checkpoint, "KEEPTTL", "XX");
        }
      };
      expect(await wrongSteps("eve", 300_000, forge)).toEqual({ wrong: 0, answered: 0 });
      await forge([400_000]);
      const told = () => step(served.url, "accumulate", 400_000, 1, { tenant: "eve" });
      expect(await told()).toMatchObject({ status: 500, body: { code: "state_corrupt" } });
      expect(await told()).toMatchObject({ status: 400, body: { code: "sequence_start_required" } });
    });
  });
});

describe("a graph that gives another number of rows than its batch has", () => {
  it.each(["rows-twice", "rows-twice-free"])("fails in words (%s)", async (model) => {
    const inputs = (rows: number) => {
      return [{ name: "INPUT", datatype: "FP32", shape: [rows, 2], data: Array<number>(2 * rows).fill(rows) }];
    };
    const asked = [1, 2, 1, 3].map((rows) =>
      ask("POST", served.url, `${model}/infer`, { body: { inputs: inputs(rows) } }),
    );
    for (const told of await Promise.all(asked)) {
      const error = expect.stringMatching(/ \d+ rows, expected \d+$|shape \{\d,2\}/) as string;
      expect(told).toMatchObject({ status: 500, body: { code: "model_error", error } });
    }
  });
});
