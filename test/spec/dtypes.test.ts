import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { ask, input } from "./ask.js";

const samples: Readonly<Record<string, readonly unknown[]>> = {
  bool: [true, false, true],
  uint8: [0, 255, 7],
  uint16: [0, 65_535, 7],
  uint32: [0, 4_294_967_295, 7],
  int8: [-128, 127, 0],
  int16: [-32_768, 32_767, 0],
  int32: [-2_147_483_648, 2_147_483_647, 0],
  fp32: [0.5, -1.25, 3],
  fp64: [0.1, -1e300, 3],
  bytes: ["", "a", "gr\u00fc\u00dfe \ud83c\udf0a"],
};
const models = Object.keys(samples).map((name) => `echo-${name}`);
const wide = ["echo-int64", "echo-uint64", "echo-fp16"];

describe("every datatype goes through queue, model and back", () => {
  const served = useFleet({ models: [...models, ...wide] });

  it.each(Object.entries(samples))("%s as JSON", async (name, data) => {
    const answer = await ask(served.url, `echo-${name}`, {
      inputs: [input("INPUT", name.toUpperCase(), [1, 3], data)],
    });
    expect(answer.outputs["OUTPUT"]).toEqual(data);
  });

  it.each([
    ["int64", "-9223372036854775808,9223372036854775807,9007199254740993"],
    ["uint64", "0,18446744073709551615,9007199254740993"],
  ])("%s as JSON, exact beyond 2^53", async (name, data) => {
    const body = `{"inputs":[{"name":"INPUT","datatype":"${name.toUpperCase()}","shape":[1,3],"data":[${data}]}]}`;
    const response = await fetch(`${served.url}/v2/models/echo-${name}/infer`, { method: "POST", body });
    expect(await response.text()).toContain(`"data":[${data}]`);
  });

  it("FP16 as binary", async () => {
    const raw = Buffer.from([0x00, 0x3c, 0x00, 0xc0, 0xff, 0x7b]);
    const header = JSON.stringify({
      inputs: [{ name: "INPUT", datatype: "FP16", shape: [1, 3], parameters: { binary_data_size: raw.length } }],
      parameters: { binary_data_output: true },
    });
    const response = await fetch(`${served.url}/v2/models/echo-fp16/infer`, {
      method: "POST",
      headers: { "Inference-Header-Content-Length": String(header.length) },
      body: Buffer.concat([Buffer.from(header), raw]),
    });
    const answer = Buffer.from(await response.arrayBuffer());
    expect(answer.subarray(Number(response.headers.get("Inference-Header-Content-Length")))).toEqual(raw);
  });
});
