import { describe, expect, it } from "vitest";
import { external, initializer, input, nested, node } from "../../../infra/tutorial/onnx-file.mjs";
import { openInputs } from "./defaults.js";

const fileOf = (parts: readonly Buffer[]): Buffer => nested(7, Buffer.concat(parts));
const weight = [input("W", [1]), initializer("W", [1], Float32Array.of(1))];
const names = new Set(["W"]);

describe("openInputs", () => {
  it("takes a graph of many nodes", () => {
    const nodes = Array<Buffer>(200_000).fill(node("Abs", ["X"], ["Y"]));
    const { file, values } = openInputs(fileOf([...weight, ...nodes]), names);
    expect(values).toBeDefined();
    expect(file.length).toBeGreaterThan(200_000);
  });

  it("refuses external data, but only in a file that it would change", () => {
    const parts = [external("B", [1], "/etc/hostname"), node("Add", ["W", "B"], ["Y"])];
    expect(() => openInputs(fileOf([...weight, ...parts]), names)).toThrow(
      "a file with optional inputs ('W') must not have external data",
    );
    expect(openInputs(fileOf(parts), names).values).toBeUndefined();
  });
});
