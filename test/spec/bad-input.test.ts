import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { ask, input, step } from "./ask.js";

const broken = ["broken-onnx", "broken-config", "broken-shape"];
const models = ["picky", "grow", "chain", "accumulate", "simple", "bytes-memory", "rnn-mixed", ...broken];

describe("bad input costs its sender an error, and nobody else anything", () => {
  const served = useFleet({
    models,
    serving: models.filter((model) => !model.startsWith("broken-")),
    env: { BATON_MAX_STATE_BYTES: "2000", BATON_SEQUENCE_BACKLOG: "4" },
  });

  it("fails the one bad row of a batch, and answers its 15 neighbours", async () => {
    const rows = Array.from({ length: 16 }, (_, i) => (i === 7 ? 1_000_000 : i % 4));
    const answers = await Promise.all(
      rows.map((row) => ask(served.url, "picky", { inputs: [input("INPUT", "INT64", [1, 1], [row])] })),
    );
    expect(answers.map(({ status }) => status)).toEqual(rows.map((_, i) => (i === 7 ? 500 : 200)));
    const failed = answers[7];
    expect(failed?.code).toBe("model_error");
    expect(failed?.error).toMatch(/^onnx runtime error: /);
    expect(failed?.error).not.toMatch(/\/\w+\/\w+/);
  });

  it("refuses an output that no memory could hold, and goes on", async () => {
    const monster = await ask(served.url, "grow", { inputs: [input("N", "INT64", [1], [1e15])] });
    expect(monster).toMatchObject({ status: 500, code: "model_error" });
    const modest = await ask(served.url, "grow", { inputs: [input("N", "INT64", [1], [3])] });
    expect(modest.outputs["OUTPUT"]).toHaveLength(3);
  });

  it("leaves a sequence unharmed by requests that never were steps of it", async () => {
    const first = await ask(served.url, "chain", step(5, 1, { start: true }));
    const bad = [
      await ask(served.url, "chain", { ...step(5, 2), inputs: [input("INPUT", "INT32", [1, 1], [2])] }),
      await ask(served.url, "chain", { ...step(5, 2), inputs: [input("INPUT", "INT64", [1, 2], [2, 2])] }),
      await ask(served.url, "chain", { ...step(5, 2), inputs: [input("INPUT", "INT64", [2, 1], [2, 2])] }),
      await ask(served.url, "chain", { ...step(5, 2), inputs: [input("WRONG", "INT64", [1, 1], [2])] }),
      await ask(served.url, "chain", { ...step(5, 2), inputs: [input("INPUT", "INT64", [1, 1], [2, 3])] }),
      await ask(served.url, "chain", JSON.stringify(step(5, 2)).slice(0, -1)),
      await ask(served.url, "chain", JSON.stringify(step(5, 2)), { "Inference-Header-Content-Length": "1000000" }),
    ];
    expect(bad.map(({ status }) => status)).toEqual([400, 400, 400, 400, 500, 400, 400]);
    const undisturbed = await ask(served.url, "chain", step(6, 1, { start: true }));
    expect(undisturbed.outputs).toEqual(first.outputs);
    const second = await ask(served.url, "chain", step(5, 2, { end: true }));
    expect(second.outputs).toEqual((await ask(served.url, "chain", step(6, 2, { end: true }))).outputs);
  });

  it("keeps the old state of a sequence whose step leaves one that is too large", async () => {
    const remember = (text: string, start = false) =>
      ask(served.url, "bytes-memory", {
        parameters: { sequence_id: "s", sequence_start: start },
        inputs: [input("TEXT", "BYTES", [1, 1], [text]), input("PICK", "BOOL", [1, 1], [false])],
      });
    await remember("first", true);
    expect(await remember("x".repeat(2_000))).toMatchObject({ status: 500, code: "state_too_large" });
    expect((await remember("second")).outputs["PREVIOUS"]).toEqual(["first"]);
  });

  it("keeps a state that is not a number to its own sequence", async () => {
    /** The answer as it is printed, since JSON proper has no NaN. */
    const hear = async (id: number, value: string, start = false) => {
      const parameters = JSON.stringify({ sequence_id: id, sequence_start: start });
      const x = `{"name":"x","datatype":"FP32","shape":[1,6],"data":[${Array(6).fill(value).join()}]}`;
      const body = `{"parameters":${parameters},"inputs":[${x}]}`;
      const answer = await fetch(`${served.url}/v2/models/rnn-mixed/infer`, { method: "POST", body });
      const [, heard] = /"name":"y".*?"data":\[([^\]]+)\]/.exec(await answer.text()) ?? [];
      return Number.isFinite(Number(heard)) ? "a number" : heard;
    };
    const both = (own: string, start = false) => Promise.all([hear(1, own, start), hear(2, "0.5", start)]);
    expect(await both("0.5", true)).toEqual(["a number", "a number"]);
    expect(await both("NaN")).toEqual(["NaN", "a number"]);
    expect(await both("0.5")).toEqual(["NaN", "a number"]);
    expect(await both("0.5", true)).toEqual(["a number", "a number"]);
  });

  it("lets as many steps of a sequence wait as may, and refuses more", async () => {
    await ask(served.url, "chain", step(41, 1, { start: true }));
    for (const worker of served.fleet.workers) worker.freeze();
    // One step is with the worker, and four wait behind it.
    const asked = Array.from({ length: 10 }, () => ask(served.url, "chain", step(41, 1)));
    let refused = 0;
    for (const one of asked) void one.then(({ status }) => (refused += Number(status === 429)));
    try {
      await expect.poll(() => refused).toBe(5);
    } finally {
      for (const worker of served.fleet.workers) worker.thaw();
    }
    const codes = (await Promise.all(asked)).map(({ code }) => code ?? "answered");
    expect(codes.filter((code) => code === "answered")).toHaveLength(5);
    expect(codes.filter((code) => code === "sequence_backlog")).toHaveLength(5);
  });

  it("wants START on the first step, and after END", async () => {
    const text = "must specify the START flag on the first request of the sequence";
    expect((await ask(served.url, "chain", step(77, 1))).error).toContain(text);
    await ask(served.url, "chain", step(77, 1, { start: true, end: true }));
    expect(await ask(served.url, "chain", step(77, 1))).toMatchObject({
      status: 400,
      error: `inference request for sequence 77 to model 'chain' ${text}`,
    });
  });

  it("tells integer ids from strings", async () => {
    await ask(served.url, "chain", step(9, 1, { start: true }));
    expect((await ask(served.url, "chain", step("9", 1))).status).toBe(400);
    expect((await ask(served.url, "chain", step(9, 1, { end: true }))).status).toBe(200);
  });

  it("answers a retry under its key with the same outcome, and a misuse of the key with a refusal", async () => {
    const key = { "Idempotency-Key": "one" };
    const first = await ask(served.url, "chain", step(31, 1, { start: true }), key);
    expect(await ask(served.url, "chain", step(31, 1, { start: true }), key)).toEqual(first);
    expect(await ask(served.url, "chain", step(31, 2), key)).toMatchObject({
      status: 422,
      code: "idempotency_mismatch",
    });
    const reference = [
      await ask(served.url, "chain", step(32, 1, { start: true })),
      await ask(served.url, "chain", step(32, 2)),
    ];
    expect((await ask(served.url, "chain", step(31, 2))).outputs).toEqual(reference[1]?.outputs);
  });

  it("ends a request whose deadline is over without running it", async () => {
    for (const worker of served.fleet.workers) worker.freeze();
    const late = ask(served.url, "simple", {
      parameters: { timeout: 300_000 },
      inputs: ["INPUT0", "INPUT1"].map((name) => input(name, "INT32", [1, 16], Array<number>(16).fill(1))),
    });
    expect(await late).toMatchObject({ status: 503, code: "expired", error: "Request timeout expired" });
    for (const worker of served.fleet.workers) worker.thaw();
  });

  it("names the models that could not be loaded, with the reason", async () => {
    const index = await fetch(`${served.url}/v2/repository/index`, { method: "POST" });
    const rows = (await index.json()) as { name: string; state?: string; reason?: string }[];
    const broken = rows.filter(({ name }) => name.startsWith("broken"));
    expect(broken.map(({ name, state }) => [name, state])).toEqual([
      ["broken-config", "UNAVAILABLE"],
      ["broken-onnx", "UNAVAILABLE"],
      ["broken-shape", "UNAVAILABLE"],
    ]);
    expect(broken[0]?.reason).toContain('has no field named "no_such_field"');
    expect((await ask(served.url, "broken-onnx", { inputs: [] })).status).toBe(404);
  });
});
