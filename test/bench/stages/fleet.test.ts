/** The steps of a fleet that was started with the recorder pass every stage, in order. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { root } from "../../support/fleet/root.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { readStages } from "./read.js";

const folder = mkdtempSync(join(tmpdir(), "stages-"));
afterAll(() => rmSync(folder, { recursive: true }));

const recorder = `--import=${join(root, "dist/test/bench/stages/record.js")}`;
const served = useFleet({ models: ["accumulate"], env: { STAGES_TO: folder, NODE_OPTIONS: recorder } });

it("is found by request, over all processes", async () => {
  for (const start of [true, false]) {
    const response = await fetch(`${served.url}/v2/models/accumulate/infer`, {
      method: "POST",
      body: JSON.stringify({
        parameters: { sequence_id: 7, sequence_start: start },
        inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
      }),
    });
    expect(response.status).toBe(200);
  }
  await expect.poll(() => readStages(folder)).toMatchObject({ steps: 2, irregular: 0 });
});
