/** A worker dies after a record is in the log, and before it has published the record. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { submitInBackground } from "../../support/streams/front-doors.js";
import { subjectOfLabel, submitLabelled, tokenOf } from "../../support/streams/labels.js";
import {
  askToSubscribe,
  listen,
  readCaptured,
  readCapturedOfMany,
  subscribe,
  subscription,
} from "../../support/streams/subscriber.js";
import { seed, streamScale } from "../scale.js";

const { timeoutMs } = streamScale;
const folder = mkdtempSync(join(tmpdir(), "baton-unpublished-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const program = new URL("../../support/streams/die-before-publish.mjs", import.meta.url);
const TOKENS = 120;
const ask = {
  name: "unpublished",
  model: "gen-mha",
  prompt: "the baton",
  parameters: { max_tokens: TOKENS, temperature: 1, seed },
};

async function log(url: string, id: string): Promise<string[]> {
  for (;;) {
    const answer = await fetch(`${url}/v2/requests/${id}/stream`);
    const records = ((await answer.json()) as unknown[]).map((record) => JSON.stringify(record));
    if (answer.headers.get("stream-closed") === "true") return records;
  }
}

describe.each([
  ["without capture", "0"],
  ["with capture", "600000"],
])("a record that its worker did not live to publish, %s", (_, captureMs) => {
  const dieBefore = join(folder, `die-before-${captureMs}`);
  const served = useFleet({
    models: ["gen-mha"],
    direct: true,
    guarded: true,
    env: { BATON_CAPTURE_TTL_MS: captureMs },
    workerEnv: { NODE_OPTIONS: `--import=${program.href}`, DIE_BEFORE: dieBefore },
  });

  it(
    "is published by who goes on: the first, one in the middle, and the last",
    async () => {
      const { url, fleet } = served;
      expect((await askToSubscribe(url, "/v2/subscriptions")).status).toBe(200);
      const undisturbed = await log(url, await submitInBackground(url, ask));
      const last = undisturbed.length - 1;
      expect(last).toBeGreaterThan(40);
      let deaths = 0;
      for (const index of [0, 37, last]) {
        // These subscriptions exist before the request, and read from NATS alone.
        const plain = await listen(await subscribe(url, "/v2/subscriptions", { model: "gen-mha" }));
        const toLabel = await subscribe(url, "/v2/subscriptions", { label: `dies:${index}` });
        const byLabel = await listen(toLabel);
        writeFileSync(dieBefore, String(index));
        const generate = { text_input: ask.prompt, parameters: ask.parameters };
        const { request: id } = await submitLabelled(url, ask.model, generate, { labels: { dies: String(index) } });
        const told = await subscription(url, id, captureMs === "0" ? {} : { from: 0 });
        expect((await plain.of(told.subject)).texts).toEqual(undisturbed);
        const labelled = subjectOfLabel("default", `dies:${index}`, ask.model, tokenOf(id));
        expect((await byLabel.of(labelled)).texts).toEqual(undisturbed);
        expect(existsSync(dieBefore)).toBe(false);
        expect(fleet.workers[0]?.logged("worker process died")).toBe(++deaths);
        expect(await log(url, id)).toEqual(undisturbed);
        if (captureMs === "0") continue;
        expect((await readCaptured(told)).texts).toEqual(undisturbed);
        expect((await readCapturedOfMany(toLabel, 1)).get(labelled)?.texts).toEqual(undisturbed);
      }
    },
    timeoutMs,
  );
});
