import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { stages, type RequestStage } from "#shared/stages.js";
import { readStages, type Recorded } from "./read.js";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "stages-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const line = (stage: RequestStage, at: number, requests: string[], ranMs?: number): string =>
  `${JSON.stringify({ stage, at, requests, ranMs } satisfies Recorded)}\n`;

it("gives the mean time between two stages, of requests that passed each once", () => {
  const a = stages.map((stage, i) => line(stage, 1_000 + i * i, ["t:a"], stage === "ran" ? 4 : undefined));
  const b = stages.map((stage, i) => line(stage, 2_000 + i, ["t:b", "t:twice"]));
  const irregular = line("ran", 2_006, ["t:twice"]) + line("checked", 2_000, ["t:on-its-way"]);
  writeFileSync(join(folder, "1.jsonl"), a.join(""));
  writeFileSync(join(folder, "2.jsonl"), b.join("") + irregular);
  writeFileSync(join(folder, "3.jsonl"), line("checked", 1, ["t:early"]) + line("checked", 2_500, ["t:late"]));
  const means = [1, 3, 5, 7, 9, 11 - 4, 13, 15, 17].map((ms) => ((ms + 1) / 2) * 1_000);
  expect(readStages(folder, 1_000, 2_500)).toEqual({ steps: 2, irregular: 2, us: [...means, 2_000] });
});
