import { expect, it } from "vitest";
import { generationShare } from "#shared/contract/generation.js";
import { decodeFrame } from "#shared/frame.js";
import type { EnqueueSettings } from "./enqueue.js";
import { generationFrames } from "./generate.js";
import type { GenerationRequest } from "./inference.js";

const settings = (weights?: ReadonlyMap<string, number>) => ({ weights }) as unknown as EnqueueSettings;
const asks = (weight?: number, level?: number) => {
  const spec = { prompt: { kind: "tokens", tokens: [1] } };
  return { tenant: "acme", spec, budget: { weight }, queue: level && { level } } as unknown as GenerationRequest;
};

it.each([
  ["the weight that the tenant's record has", settings(new Map([["acme", 2]])), asks(7), { level: 1, weight: 7 }],
  ["the weight that the setting has", settings(new Map([["acme", 2]])), asks(), { level: 1, weight: 2 }],
  ["the level of a job", settings(), asks(undefined, 9), { level: 9, weight: 1 }],
  ["nothing that is as usual", settings(new Map([["other", 2]])), asks(), undefined],
])("tells workers %s, and two uses of one key may differ in it", (_, queue, request, share) => {
  const { encode, digested } = generationFrames(queue);
  const told = decodeFrame(encode(request)).meta["share"];
  expect(told).toEqual(share);
  expect(generationShare.parse(told)).toEqual(share ?? { level: 1, weight: 1 });
  expect(digested(request).equals(generationFrames(settings()).encode(asks()))).toBe(true);
});
