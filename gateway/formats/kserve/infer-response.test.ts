import { expect, it } from "vitest";
import type { Tensor } from "#shared/frame.js";
import { renderInfer } from "./infer-response.js";
import { rawToJson } from "./tensors-json.js";

const tensor = (name: string, ...values: number[]): Tensor => {
  return { name, datatype: "INT32", shape: [values.length], data: Buffer.from(new Int32Array(values).buffer) };
};
const [first, second, third] = [tensor("A", 1, 2), tensor("B", 3), tensor("C", 4, 5, 6)];
const binary = { name: "B", binary: true };
const whole = (body: readonly (string | Buffer)[]) => Buffer.concat(body.map((part) => Buffer.from(part)));

it.each([
  ["JSON alone", []],
  ["JSON and bytes", [binary]],
])("tensors that were printed ahead make the same answer: %s", (_, requested) => {
  const all = [first, second, third];
  const plain = renderInfer("7", { name: "m", version: "1" }, requested, all, 2);
  for (const some of [[first], [third], [first, third]]) {
    const printed = new Map(some.map((one) => [one, Buffer.from(rawToJson(one))]));
    const reply = renderInfer("7", { name: "m", version: "1" }, requested, all, 2, printed);
    expect(reply.headers).toEqual(plain.headers);
    expect(whole(reply.body).toString("latin1")).toBe(whole(plain.body).toString("latin1"));
  }
});
