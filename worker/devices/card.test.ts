import { describe, expect, it } from "vitest";
import { onCpu } from "../onnx/providers.js";
import { describeCard, parseCapabilities, parseNvidia, softwareDriver, visibleCards } from "./card.js";

const listed = `0, GPU-5f3c0a, NVIDIA H100 80GB HBM3, 81559, 4
1, GPU-77aa01, NVIDIA L4, 23034, [N/A]
`;
const cards = parseNvidia(listed);

describe("parseNvidia", () => {
  it("reads what nvidia-smi lists", () => {
    expect(cards).toEqual([
      {
        index: 0,
        uuid: "GPU-5f3c0a",
        name: "NVIDIA H100 80GB HBM3",
        memory: { total: 81559 * 1_048_576, used: 4 * 1_048_576 },
      },
      { index: 1, uuid: "GPU-77aa01", name: "NVIDIA L4", memory: { total: 23034 * 1_048_576, used: 0 } },
    ]);
  });

  it("takes no other text for a card", () => {
    expect(parseNvidia("No devices were found\n")).toEqual([]);
    expect(parseNvidia("NVIDIA-SMI has failed because it couldn't communicate, with, the driver, at all\n")).toEqual(
      [],
    );
  });
});

it.each([
  [undefined, ["NVIDIA H100 80GB HBM3", "NVIDIA L4"]],
  ["1", ["NVIDIA L4"]],
  ["1,0", ["NVIDIA L4", "NVIDIA H100 80GB HBM3"]],
  ["GPU-77", ["NVIDIA L4"]],
  ["0,7,1", ["NVIDIA H100 80GB HBM3"]],
  ["-1", []],
  ["", []],
])("with CUDA_VISIBLE_DEVICES=%s a process sees %j", (visible, names) => {
  expect(visibleCards(cards, visible).map(({ name }) => name)).toEqual(names);
});

it.each([
  [{ VK_DRIVER_FILES: "/usr/lib/chromium/vk_swiftshader_icd.json" }, "SwiftShader (software)"],
  [{ VK_ICD_FILENAMES: "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json" }, "llvmpipe (software)"],
  [{ VK_DRIVER_FILES: "/etc/vulkan/icd.d/nvidia_icd.json" }, undefined],
  [{}, undefined],
])("the drivers of %j compute in software: %s", (env, name) => {
  expect(softwareDriver(env)).toBe(name);
});

it("tells of the CPU what memory the process may have, and has", async () => {
  const { memory, ...rest } = await describeCard(onCpu, {});
  expect(rest).toEqual({ provider: "cpu" });
  expect(memory?.used).toBeGreaterThan(1_000_000);
  expect(memory?.total).toBeGreaterThan(memory?.used ?? Infinity);
});

it("reads the compute capabilities that nvidia-smi lists, and leaves out a card without one", () => {
  expect(parseCapabilities("0, GPU-5f3c, 9.0\n1, GPU-77aa, [N/A]\n2, GPU-81bb, 12.0\n")).toEqual([
    { index: 0, uuid: "GPU-5f3c", capability: "9.0" },
    { index: 2, uuid: "GPU-81bb", capability: "12.0" },
  ]);
  expect(parseCapabilities('Field "compute_cap" is not a valid field to query.')).toEqual([]);
});
