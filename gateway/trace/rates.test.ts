import { describe, expect, it } from "vitest";
import { TraceRates } from "./rates.js";

function ratesWith(fields: Readonly<Record<string, string>>, sample = 0.01, isSetUp = true): TraceRates {
  const rates = new TraceRates(isSetUp, sample);
  rates.take(new Map(Object.entries(fields)));
  return rates;
}

describe("the share of requests to trace", () => {
  it.each([
    ["the setting's without a change", {}, 0.01],
    ["the deployment's", { ":rate": "4" }, 0.25],
    ["the model's before the deployment's", { ":rate": "4", "a:rate": "2" }, 0.5],
    ["not another model's", { "b:rate": "2" }, 0.01],
    ["0 for the rate 0", { "a:rate": "0" }, 0],
    ["none if the deployment is off", { ":level": "OFF", "a:rate": "2" }, undefined],
    ["none if the model is off", { "a:level": "OFF" }, undefined],
    ["the model's if it is on and the deployment off", { ":level": "OFF", "a:level": "TIMESTAMPS" }, 0.01],
  ])("is %s", (_, fields, share) => {
    expect(ratesWith(fields).sampleOf("a")).toBe(share);
  });

  it("of a request that names no model is the deployment's", () => {
    for (const none of [undefined, ""]) {
      expect(ratesWith({ ":rate": "5", "a:rate": "2" }).sampleOf(none)).toBe(0.2);
      expect(ratesWith({ ":level": "OFF" }).sampleOf(none)).toBeUndefined();
    }
  });
});

describe("a request that was sampled before", () => {
  it("is traced unless an operator has switched traces off", () => {
    const tracer = {} as Parameters<TraceRates["tracerOf"]>[1];
    expect(ratesWith({ ":rate": "0" }).tracerOf("a", tracer)).toBe(tracer);
    expect(ratesWith({ ":level": "OFF" }).tracerOf("a", tracer)).toBeUndefined();
    expect(ratesWith({ "b:level": "OFF" }).tracerOf("a", tracer)).toBe(tracer);
  });
});

describe("the shown values", () => {
  it.each([
    [0.01, "100"],
    [1, "1"],
    [0.3, "3"],
    [0, "0"],
  ])("of the share %d have the rate %s", (sample, rate) => {
    expect(ratesWith({}, sample).rate(undefined)).toBe(rate);
  });

  it("are off without an address for traces", () => {
    expect(ratesWith({ ":level": "TIMESTAMPS" }, 1, false).level("a")).toBe("OFF");
  });
});
