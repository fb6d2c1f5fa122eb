import { expect, it } from "vitest";
import { curlText } from "../view/curl.js";
import { fill, tensorsText } from "./filling.js";

it.each([
  ["INT32", [-1, 2], [1, 2], [50, 50]],
  ["FP32", [1], [1], [0]],
  ["BOOL", [2], [2], [true, true]],
  ["BYTES", [-1, 1], [1, 1], ["text 50"]],
  ["FP32", [5_000], [5_000], undefined],
])("an input of %s %j has shape %j and values %j", (datatype, given, shape, data) => {
  const filled = fill({ name: "X", datatype, shape: given }, () => 0.5);
  expect(filled).toMatchObject({ name: "X", datatype, shape, ...(data !== undefined && { data }) });
  expect(filled.data).toHaveLength(shape.reduce((product, size) => product * size, 1));
});

it("a request for a terminal quotes its text, and has no key in it", () => {
  expect(curlText("http://h", "/v2/x", `{"a":"it's"}`, true)).toBe(
    `curl 'http://h/v2/x' -H "Authorization: Bearer $BATON_API_KEY" -H 'Content-Type: application/json' -d '{"a":"it'\\''s"}'`,
  );
});

it("tensors are a short text, which means the same", () => {
  const tensors = [
    fill({ name: 'a":[b', datatype: "BYTES", shape: [2] }, () => 0),
    fill({ name: "B", datatype: "INT8", shape: [] }, () => 0),
  ];
  expect(JSON.parse(tensorsText(tensors))).toEqual(tensors);
});
