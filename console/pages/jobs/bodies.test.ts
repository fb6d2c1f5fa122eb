import { describe, expect, it } from "vitest";
import { jobText, scheduleText, type Target } from "./bodies.js";

const tensors: Target = {
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 2] }],
  isGenerator: false,
  remembers: false,
};

describe("the text of a job", () => {
  it("has the inputs of the model", () => {
    const input = { name: "INPUT", datatype: "INT32", shape: [1, 2], data: [expect.any(Number), expect.any(Number)] };
    expect(JSON.parse(jobText(tensors))).toEqual({ infer: { inputs: [input] } });
    const { infer } = JSON.parse(jobText({ ...tensors, remembers: true })) as { readonly infer: object };
    expect(infer).toMatchObject({ parameters: { sequence_id: 1, sequence_start: true } });
  });

  it("has a prompt for a model that writes text", () => {
    const text = jobText({ ...tensors, isGenerator: true });
    expect(JSON.parse(text)).toMatchObject({ generate: { text_input: expect.any(String) } });
  });

  it("is a part of the text of a schedule", () => {
    expect(JSON.parse(scheduleText(tensors, "Europe/Berlin"))).toMatchObject({
      cron: expect.any(String),
      timezone: "Europe/Berlin",
      job: { infer: { inputs: [{ name: "INPUT" }] } },
    });
  });
});
