import { describe, expect, it } from "vitest";
import { parseProviders, placementText } from "./providers.js";

describe("parseProviders", () => {
  it.each([
    ["cpu", ["cpu"]],
    [" tensorrt , cuda,cpu", ["tensorrt", "cuda", "cpu"]],
    ["webgpu", ["webgpu"]],
  ])("reads %j", (text, names) => {
    expect(parseProviders(text)).toEqual({ names });
  });

  it.each([
    ["gpu", /^there is no execution provider 'gpu'; there are cuda, tensorrt, webgpu, cpu$/],
    ["cuda,", /^there is no execution provider ''/],
    ["CUDA", /^there is no execution provider 'CUDA'/],
    ["cuda,webgpu,cuda", /^'cuda' stands there twice$/],
    ["cpu,cuda", /^'cpu' is always there, so 'cuda' after it would never be used$/],
  ])("refuses %j", (text, fault) => {
    expect(parseProviders(text)).toEqual({ fault: expect.stringMatching(fault) as string });
  });
});

it("names a place", () => {
  expect(placementText({ providers: ["tensorrt", "cuda"], gpu: 1 })).toBe("tensorrt, cuda on GPU 1");
  expect(placementText({ providers: ["cpu"], gpu: undefined })).toBe("cpu");
});
