import { expect, it } from "vitest";
import { warmUpBatch } from "./warm-up.js";

it("warmUpBatch makes zeros, initial states and the controls of no sequence, as many rows as the batch has", () => {
  const model = {
    states: [
      { input: "S", output: "S_OUT", datatype: "FP32", dims: [1], initialShape: [1, 1], initial: Buffer.from("abcd") },
    ],
    controls: [
      {
        kind: "start",
        tensor: "START",
        datatype: "INT32",
        values: { no: Buffer.from([5, 0, 0, 0]), yes: Buffer.from([9, 0, 0, 0]) },
      },
      { kind: "corrid", tensor: "CORRID", datatype: "BYTES" },
    ],
  } as const;
  const inputs = [{ name: "X", datatype: "INT64" as const, dims: [-1, 2] }];
  const made = warmUpBatch(model, inputs, 2).map(({ name, shape, data }) => [
    name,
    shape,
    Buffer.concat(data).toString("hex"),
  ]);
  expect(made).toEqual([
    ["X", [2, 1, 2], "00".repeat(2 * 2 * 8)],
    ["S", [2, 1], "6162636461626364"],
    ["START", [2, 1], "0500000005000000"],
    ["CORRID", [2, 1], "0000000000000000"],
  ]);
});
