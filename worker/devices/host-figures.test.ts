import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { expect, it } from "vitest";
import { cells } from "#shared/metrics/cells.js";
import { cardFigures, cpuTimes, hostMemory, showCards, showHost } from "./host-figures.js";

it("reads a line of nvidia-smi", () => {
  expect(cardFigures("0, GPU-5f3c, 37, 81559, 4, 71.5, 700.00")).toEqual({
    index: 0,
    uuid: "GPU-5f3c",
    utilization: 0.37,
    totalBytes: 81_559 * 1_048_576,
    usedBytes: 4 * 1_048_576,
    powerUsage: 71.5,
    powerLimit: 700,
  });
  expect(cardFigures("1, GPU-77aa, [N/A], 23034, [N/A], [N/A], [N/A]")).toEqual({
    index: 1,
    uuid: "GPU-77aa",
    totalBytes: 23_034 * 1_048_576,
  });
  expect(cardFigures("No devices were found")).toBeUndefined();
});

it("reads the time of the CPUs and the memory of the host", () => {
  expect(cpuTimes("cpu  10 1 20 100 5 2 3 4 50 0\ncpu0 1 2 3 4\n")).toEqual({ busy: 40, all: 145 });
  expect(cpuTimes("no such file")).toBeUndefined();
  const meminfo = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    600 kB\n";
  expect(hostMemory(meminfo)).toEqual({ total: 1_024_000, used: 409_600 });
  expect(hostMemory("")).toBeUndefined();
});

it("shows the host", async () => {
  await showHost();
  expect(cells.page()).toMatch(/^nv_cpu_memory_total_bytes [1-9]\d+$/m);
});

it("shows the cards that the process sees, for as long as nvidia-smi tells them", async () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-smi-"));
  const program = join(folder, "nvidia-smi");
  const lines = ["0, GPU-a, 50, 1, 1, 10.5, 20.00", "1, GPU-b, 25, 2, 1, [N/A], 20.00", "1, GPU-b, 75, 2, 1, 30, 40"];
  writeFileSync(program, `#!/bin/sh\n${lines.map((line) => `echo '${line}'`).join("\n")}\nexec sleep 60\n`);
  chmodSync(program, 0o755);
  const stop = showCards({ PATH: folder + delimiter + (process.env["PATH"] ?? ""), CUDA_VISIBLE_DEVICES: "1" });
  try {
    await expect.poll(() => cells.page()).toContain('nv_energy_consumption{gpu_uuid="GPU-b"} 60\n');
    const page = cells.page();
    expect(page).toContain('nv_gpu_utilization{gpu_uuid="GPU-b"} 0.75\n');
    expect(page).toContain('nv_gpu_power_limit{gpu_uuid="GPU-b"} 40\n');
    expect(page).not.toContain("GPU-a");
    stop();
    await expect.poll(() => cells.page()).not.toContain("nv_gpu_utilization{");
  } finally {
    stop();
    rmSync(folder, { recursive: true });
  }
});
