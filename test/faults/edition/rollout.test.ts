/**
 * A sequence keeps its first version and file to its end while its model is rolled out. The answers
 * of the second file are a hundred times the sum, so each answer shows its file.
 */
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { registryKeys } from "#shared/queue/keys.js";
import {
  configWith,
  makeRepository,
  makeSecondRepository,
  ownConfig,
  withParameter,
} from "../../support/fleet/repository.js";
import type { Member } from "../../support/fleet/member.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { queued } from "../../support/queued.js";
import { until } from "../../support/until.js";
import { add, ask, type Said } from "../../edition/ask.js";
import { buckets, patient } from "../../edition/settings.js";

const models = ["accumulate"];
const plan = { gateways: 2, workers: 1, models, env: buckets(16), direct: true } as const;
const sequences = Array.from({ length: 10 }, (_, i) => 100 + i);
const outputs = (said: readonly Said[]) => said.map(({ output, error }) => output ?? error);

describe("a new version that joins while sequences live", () => {
  const served = useFleet(plan);
  const others = () => served.fleet.urls.at(-1) ?? "";
  let newcomer: Member;
  const step = (sequence: number, more: { start?: boolean; end?: boolean; key?: string } = {}) =>
    add(served.url, { sequence, value: 1, ...more });

  beforeAll(async () => {
    const started = await Promise.all(sequences.map((sequence) => step(sequence, { start: true })));
    expect(outputs(started)).toEqual(sequences.map(() => 1));
    expect((await step(1, { start: true, key: "before" })).output).toBe(1);
    const second = makeSecondRepository(join(served.fleet.folder, "second"), models, { as: "2" });
    newcomer = await served.fleet.addWorker({ BATON_MODEL_REPOSITORY: second });
    for (const url of served.fleet.urls)
      await until(async () => (await fetch(`${url}/v2/models/accumulate/versions/2/ready`)).status === 200);
  });

  it("leaves them to their own version, whose answers they get to their end", async () => {
    for (const [sum, end] of [
      [2, false],
      [3, true],
    ] as const) {
      const said = await Promise.all(sequences.map((sequence) => step(sequence, { end })));
      expect(outputs(said)).toEqual(sequences.map(() => sum));
      expect(new Set(said.map(({ version }) => version))).toEqual(new Set(["1"]));
    }
  });

  it("leaves nothing to clear up while both are served", async () => {
    const { redis } = served;
    const { settled, version } = registryKeys;
    await expect.poll(async () => (await redis.get(settled)) === (await redis.get(version))).toBe(true);
  });

  it("serves those that start now", async () => {
    expect(await step(2, { start: true })).toMatchObject({ output: 100, version: "2" });
    expect(await step(2)).toMatchObject({ output: 200, version: "2" });
  });

  it("does not run a request anew whose Idempotency-Key was used before", async () => {
    const again = await add(others(), { sequence: 1, value: 1, start: true, key: "before" });
    expect(again).toMatchObject({ status: 200, output: 1, version: "1" });
    expect((await step(1)).output).toBe(2);
  });

  it("ends the sequences of a version that nobody serves any more, in words", { timeout: 90_000 }, async () => {
    expect((await step(3, { start: true })).output).toBe(100);
    await newcomer.terminate();
    const retired = async () => {
      const { status, code, error } = await step(3);
      return { status, code, inWords: /\w+ \w+ \w+/.test(error ?? "") };
    };
    const status = expect.toBeOneOf([400, 409, 410]) as unknown;
    await expect.poll(retired).toEqual({ status, code: "version_retired", inWords: true });
    // A client can use the id again, with the version that is served now.
    expect(await step(3, { start: true })).toMatchObject({ output: 1, version: "1" });
  });
});

describe("a version that takes the states of the one before", () => {
  const served = useFleet(plan);
  const step = (sequence: number, start = false) => add(served.url, { sequence, value: 1, start });
  it("goes on with its sequences once nobody serves theirs", { timeout: 90_000 }, async () => {
    const config = configWith("accumulate", "takes_states_of", "1");
    const repository = { as: "2", configs: { accumulate: config } } as const;
    const second = makeSecondRepository(join(served.fleet.folder, "second"), models, repository);
    await Promise.all(sequences.map((sequence) => step(sequence, true)));
    await served.fleet.addWorker({ BATON_MODEL_REPOSITORY: second });
    for (const url of served.fleet.urls)
      await until(async () => (await fetch(`${url}/v2/models/accumulate/versions/2/ready`)).status === 200);
    const before = await Promise.all(sequences.map((sequence) => step(sequence)));
    expect(before.map(({ output, version }) => [output, version])).toEqual(sequences.map(() => [2, "1"]));

    await served.fleet.workers[0]?.terminate();
    const [first = 0, ...others] = sequences;
    await expect.poll(async () => (await step(first)).version).toBe("2");
    // The second version adds a hundred times the input, so its answers show both states.
    const after = await Promise.all(others.map((sequence) => step(sequence)));
    expect(after.map(({ output, version }) => [output, version])).toEqual(others.map(() => [300, "2"]));
  });
});

describe("files that say so without ground", () => {
  const model = "lstm-128";
  const served = useFleet({ ...plan, models: [model] });
  const inputs = [{ name: "X", datatype: "FP32", shape: [1, 128], data: Array(128).fill(1) }];
  const step = (start = false) => {
    const parameters = { sequence_id: 1, sequence_start: start };
    return ask(`${served.url}/v2/models/${model}/infer`, { parameters, inputs });
  };
  /** The two states in the other order. */
  const swapped = (config: string) =>
    config.replaceAll(/"([HC])(_OUT)?"/g, (_, name: string, out = "") => `"${name === "H" ? "C" : "H"}${String(out)}"`);

  it("end the sequences in words, and serve those that start now", { timeout: 90_000 }, async () => {
    expect((await step(true)).status).toBe(200);
    const config = withParameter(swapped(ownConfig(model) ?? ""), "takes_states_of", "*");
    const second = makeRepository(join(served.fleet.folder, "second"), [model], { [model]: config });
    await served.fleet.addWorker({ BATON_MODEL_REPOSITORY: second });
    await served.fleet.workers[0]?.terminate();
    const refused = async () => {
      const { status, code, error } = await step();
      return { status, code, error };
    };
    const error = "the sequence's state is not of the kind that this version of the model takes";
    await expect.poll(refused).toEqual({ status: 500, code: "state_corrupt", error });
    expect((await step(true)).status).toBe(200);
    expect((await step()).status).toBe(200);
  });
});

describe("a version whose last worker leaves work behind", () => {
  const served = useFleet({ ...plan, configs: { accumulate: patient } });

  it("gets all of it answered at once, in words", { timeout: 90_000 }, async () => {
    const { redis } = served;
    const waiting = sequences.map((sequence) => add(served.url, { sequence, value: 1, start: true }, 50_000));
    await expect.poll(() => queued(redis)).toBe(sequences.length);
    const second = makeSecondRepository(join(served.fleet.folder, "second"), models, { as: "2" });
    await served.fleet.addWorker({ BATON_MODEL_REPOSITORY: second });
    await served.fleet.workers[0]?.terminate();
    const error = "the version of the model that took the request is served no longer: send it again";
    const refused = { status: 503, code: "unavailable", error };
    expect(await Promise.all(waiting)).toEqual(sequences.map(() => refused));
    const again = await Promise.all(sequences.map((sequence) => add(served.url, { sequence, value: 1, start: true })));
    expect(again.map(({ output, version }) => [output, version])).toEqual(sequences.map(() => [100, "2"]));
    expect(await queued(redis)).toBe(0);
  });
});

describe("the same version with another file", () => {
  const served = useFleet(plan);

  it("never serves a sequence in turn with the first", { timeout: 60_000 }, async () => {
    const second = makeSecondRepository(join(served.fleet.folder, "second"), models, { as: "1" });
    const step = (sequence: number, start = false) => add(served.url, { sequence, value: 1, start });
    const early = await Promise.all(sequences.map((sequence) => step(sequence, true)));
    expect(outputs(early)).toEqual(sequences.map(() => 1));
    await served.fleet.addWorker({ BATON_MODEL_REPOSITORY: second });
    for (let sum = 2; sum <= 9; sum++) {
      const said = await Promise.all(sequences.map((sequence) => step(sequence)));
      expect(outputs(said)).toEqual(sequences.map(() => sum));
    }
    const late = sequences.map((sequence) => sequence + 100);
    const first = await Promise.all(late.map((sequence) => step(sequence, true)));
    expect(first.map(({ status }) => status)).toEqual(late.map(() => 200));
    for (let sum = 2; sum <= 5; sum++) {
      const said = await Promise.all(late.map((sequence) => step(sequence)));
      expect(outputs(said)).toEqual(first.map(({ output = NaN }) => output * sum));
    }
  });
});
