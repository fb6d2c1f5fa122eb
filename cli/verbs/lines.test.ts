/** The lines that verbs print for answers. */
import { describe, expect, it } from "vitest";
import type { Sequence } from "../../gateway/answers.js";
import { readAnswer } from "../client/answers.js";
import { fleetLines } from "./fleet.js";
import { Collected } from "./generate.js";
import { answerTables, readOutputs } from "./infer.js";
import { modelLines } from "./models.js";
import { listLines, sequenceLines } from "./sequences.js";

it("models, with reasons on one line", () => {
  const reason = "no\nfile";
  expect(modelLines([{ name: "a", version: "1", state: "UNAVAILABLE", reason }])).toEqual([
    "MODEL  VERSION  STATE        REASON",
    "a      1        UNAVAILABLE  no file",
  ]);
});

describe("an answer to infer", () => {
  const output = (datatype: string, data: string) =>
    `{"outputs":[{"name":"OUT","datatype":"${datatype}","shape":[1,2],"data":${data}}]}`;
  it.each([
    ["INT64", "[9007199254740993,-1]", "9007199254740993 -1"],
    ["FP32", "[1.5,NaN]", "1.5 NaN"],
    ["BOOL", "[true,false]", "true false"],
    ["BYTES", String.raw`["a \u001b[31mb","\n"]`, String.raw`"a \u001b[31mb" "\n"`],
    ["INT8", "[]", ""],
  ])("shows %s", (datatype, data, shown) => {
    const [lines] = answerTables(readOutputs(output(datatype, data)));
    expect(lines?.[1]).toBe(`OUT     ${datatype.padEnd(8)}  [1,2]  ${shown}`.trimEnd());
  });

  it("shows the first elements of many, and parameters", () => {
    const data = JSON.stringify(Array.from({ length: 100_000 }, (_, i) => i));
    const [lines, parameters] = answerTables(
      readOutputs(`{"parameters":{"sequence_step":2},${output("INT32", data).slice(1)}`),
    );
    expect(lines?.[1]).toMatch(/ 0 1 2 .* 15 … 99984 more$/);
    expect(parameters).toEqual(["PARAMETER      VALUE", "sequence_step  2"]);
  });
});

describe("an answer in tokens", () => {
  const record = (index: number, text: string) => ({ index, choices: [{ index: 0, text, tokens: [1] }] });
  it("adds up", () => {
    const answer = new Collected("r", "m");
    expect([record(0, "a"), record(1, ""), record(2, "b")].map((one) => answer.add(one))).toEqual(["a", "", "b"]);
    const usage = { prompt_tokens: 1, completion_tokens: 3 };
    const end = { index: 0, text: "c", tokens: [2], finish_reason: "stop" as const };
    answer.add({ index: 3, choices: [end], final: true, reason: "finished", usage });
    expect(answer).toMatchObject({ id: "r", model: "m", text: "abc", finish_reason: "stop", usage, error: null });
    expect(answer.failure()).toBeUndefined();
  });

  it.each([
    ["cancelled" as const, undefined, 1],
    ["expired" as const, { code: "expired" as const, message: "late" }, 1],
    ["error" as const, { code: "poison_request" as const, message: "set aside" }, 1],
    ["error" as const, { code: "invalid_argument" as const, message: "too long" }, 4],
  ])("that ends as %s %j exits with its code", (reason, error, exit) => {
    const answer = new Collected("r", "m");
    answer.add({ index: 0, choices: [], final: true, reason, ...(error && { error }) });
    expect(answer.failure()).toMatchObject({ exit });
  });
});

it("sequences, in a list and one by one", () => {
  const one = readAnswer<Sequence>(
    '{"sequence_id":18446744073709551615,"state":"busy","step":2,"idle_deadline":null,"checkpoints":[1,2],"version":"1"}',
  );
  expect(listLines([one])[1]).toBe("18446744073709551615  busy   2     1        -            -           -");
  expect(sequenceLines(one)).toEqual([
    "sequence_id    18446744073709551615",
    "state          busy",
    "step           2",
    "idle_deadline  -",
    "checkpoints    1 2",
    "version        1",
  ]);
});

it("a fleet, and what it could not load", () => {
  const model = {
    name: "m",
    version: "1",
    digest: "d",
    kind: "tensor" as const,
    workers: 1,
    queued: 2,
    running: 1,
    set_aside: 0,
  };
  const failed = [{ name: "f", version: "1", reason: "no\nfile" }];
  const worker = { name: "w", host: "h", pid: 7, started_at: "now", models: [{ name: "m", version: "1" }], failed };
  expect(fleetLines({ workers: [worker], models: [model] })).toEqual([
    ["WORKER  HOST  PID  SINCE  MODELS", "w       h     7    now    m"],
    [
      "MODEL  VERSION  WORKERS  QUEUED  RUNNING  SEQUENCES  SET ASIDE",
      "m      1        1        2       1        -          0",
    ],
    ["WORKER  FAILED MODEL  VERSION  REASON", "w       f             1        no file"],
  ]);
});
