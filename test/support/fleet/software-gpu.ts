/**
 * A GPU in software: SwiftShader, a Vulkan driver that computes on the CPU. ONNX Runtime's WebGPU
 * uses SwiftShader like any card, so its results hold for the program, but not its speed.
 */
import { existsSync } from "node:fs";

/** Path of the driver in Debian's `chromium`. */
const DRIVER = "/usr/lib/chromium/vk_swiftshader_icd.json";
/** Path of the loader of drivers in Debian's `libvulkan1`. */
const LOADER = "/usr/lib/x86_64-linux-gnu/libvulkan.so.1";

/** The environment of a worker that uses the driver; undefined on a machine without the driver. */
export const softwareGpu: Readonly<Record<string, string>> | undefined =
  existsSync(DRIVER) && existsSync(LOADER) ? { VK_DRIVER_FILES: DRIVER } : undefined;

/** For the titles of tests that need the driver: the reason why a machine skips such a test. */
export const unlessSkipped = softwareGpu === undefined ? " (skipped: needs Debian's chromium and libvulkan1)" : "";

/** A worker with this environment finds no GPU, even on a machine that has GPUs. */
export const noGpu: Readonly<Record<string, string>> = { VK_DRIVER_FILES: "/nonexistent", CUDA_VISIBLE_DEVICES: "-1" };
