import { expect, it } from "vitest";
import { servedModel } from "../../../../test/fixtures/served-models.js";
import { defaultLimits } from "../../limits.js";
import { parseGrpcInfer } from "./infer-request.js";
import type { GrpcInput } from "./read-infer.js";

const model = servedModel("m");
const limits = { ...defaultLimits, jsonBytes: 100 };

/** An input whose contents are so many packed integers of one byte each, which become four. */
function input(name: string, count: number): GrpcInput {
  const contents = [Buffer.concat([Buffer.from([0x12, count]), Buffer.alloc(count, 1)])];
  return { name, datatype: "INT32", shape: [count], parameters: new Map(), contents };
}

const parse = (...inputs: GrpcInput[]) =>
  parseGrpcInfer(
    { model: "m", version: "", id: "", parameters: new Map(), inputs, outputs: [], raw: [] },
    model,
    limits,
  );

it("limits the explicit contents of all inputs together", () => {
  expect(parse(input("a", 12), input("b", 13)).inputs.map(({ data }) => data.length)).toEqual([48, 52]);
  expect(() => parse(input("a", 13), input("b", 13))).toThrow(
    "with input 'b', explicit contents are larger than the limit of 100 bytes",
  );
});
