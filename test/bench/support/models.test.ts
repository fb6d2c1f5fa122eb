import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { scanRepository } from "../../../worker/models/scan.js";
import { benchRepository, device, large, tiny, tinyAtOnce } from "./models.js";

const folder = mkdtempSync(join(tmpdir(), "baton-bench-models-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("makes a repository whose models ask for nothing in vain", async () => {
  const models = await scanRepository(benchRepository(folder));
  expect(models.map((model) => (model.kind === "found" ? [model.name, model.warnings] : model))).toEqual(
    [large, tiny, tinyAtOnce, device].map(({ name }) => [name, []]),
  );
});
