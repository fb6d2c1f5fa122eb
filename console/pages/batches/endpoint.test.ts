import { expect, it } from "vitest";
import { endpointIn } from "./endpoint.js";

it.each([
  ['{"custom_id":"a","url":"/v1/completions"}\n{"url":"/other"}', "/v1/completions"],
  ['\n  \n{"url":"/v2/models/simple/infer"}', "/v2/models/simple/infer"],
  ["", undefined],
  ["no JSON", undefined],
  ["[1]", undefined],
  ['{"url":7}', undefined],
])("the endpoint of %j is %j", (text, endpoint) => {
  expect(endpointIn(text)).toBe(endpoint);
});
