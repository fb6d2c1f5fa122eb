/**
 * A GPU in software: SwiftShader, a Vulkan driver that computes on the CPU. ONNX Runtime's WebGPU
 * takes it as any card, so what is true there is true of the program, if not of its speed.
 */
import { existsSync } from "node:fs";

/** Where Debian's `chromium` has the driver. */
const DRIVER = "/usr/lib/chromium/vk_swiftshader_icd.json";
/** Where Debian's `libvulkan1` has what loads drivers. */
const LOADER = "/usr/lib/x86_64-linux-gnu/libvulkan.so.1";

/** What a worker needs in its environment; undefined on a machine that has no such driver. */
export const softwareGpu: Readonly<Record<string, string>> | undefined =
  existsSync(DRIVER) && existsSync(LOADER) ? { VK_DRIVER_FILES: DRIVER } : undefined;

/** For the title of tests that need it: why they are skipped, where they are. */
export const unlessSkipped = softwareGpu === undefined ? " (skipped: needs Debian's chromium and libvulkan1)" : "";

/** A worker with this environment finds no GPU, whatever there is. */
export const noGpu: Readonly<Record<string, string>> = { VK_DRIVER_FILES: "/nonexistent", CUDA_VISIBLE_DEVICES: "-1" };
