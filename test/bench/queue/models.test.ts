import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { scanRepository } from "../../../worker/models/scan.js";
import { configured, copiesOfAccumulate } from "./models.js";

const folder = mkdtempSync(join(tmpdir(), "baton-bench-copies-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("makes copies that a worker reads without a warning", async () => {
  const copies = [{ name: "one" }, { name: "two", delayMs: 600_000, batch: 512, idleMs: 5_000 }];
  const models = await scanRepository(copiesOfAccumulate(folder, copies));
  const facts = models.map((model) => {
    if (model.kind !== "found") return model;
    const { config, warnings } = model;
    const { max_sequence_idle_microseconds: idleUs, oldest } = config.sequence_batching ?? {};
    return [model.name, config.max_batch_size, Number(oldest?.max_queue_delay_microseconds), Number(idleUs), warnings];
  });
  expect(facts).toEqual([
    ["one", 32, 500, 60_000_000, []],
    ["two", 512, 600_000_000, 5_000_000, []],
  ]);
});

it("refuses a configuration that lacks a field", () => {
  expect(() => configured('name: "a"\nmax_batch_size: 4', { name: "b" })).toThrow(
    "the configuration has no max_candidate_sequences",
  );
});
