/** Audio through Silero VAD gets the same answers while its workers are killed. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { startFleet } from "../../support/fleet/fleet.js";
import { difference } from "../../support/recurrent/bare-loop.js";
import { bareSpeechInPairs, sileroRepository, sileros, streamAudio } from "../../support/recurrent/silero.js";
import { nth, repeatedly } from "../pace.js";
import { scale } from "../scale.js";

const full = process.env["BATON_FULL"] === "1";
const SEQUENCES = 64;
const STEPS = full ? 1_000 : 40;

describe("Silero VAD while workers are killed", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-silero-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each(full ? Object.keys(sileros) : ["silero-v5"])(
    "%s: 64 streams hear what a bare loop hears, and a bad chunk harms none",
    async (model) => {
      const repository = sileroRepository(join(folder, model));
      const fleet = await startFleet({ gateways: 2, workers: 3, models: [model], repository });
      try {
        await fleet.whenServing();
        const kills = full ? 12 : 3;
        const bad = { sequence: 9, step: 20 };
        const streaming = streamAudio({ urls: fleet.urls, model, sequences: SEQUENCES, steps: STEPS, bad });
        let streams = "under way";
        let struck = 0;
        const blow = async (i: number) => {
          if (streams === "under way") struck += 1;
          await nth(fleet.workers, i).restart();
        };
        const [{ speech, refused }] = await Promise.all([
          streaming.finally(() => (streams = "over")),
          repeatedly(kills, full ? 4_000 : 300, blow),
        ]);
        expect(struck).toBeGreaterThan(0);
        expect(refused).toBe(500);
        const expected = await bareSpeechInPairs(model, SEQUENCES, STEPS);
        for (const [i, heard] of speech.entries()) expect(difference(heard, expected[i] ?? [])).toBeLessThan(1e-5);
        expect(fleet.workers.flatMap(({ lives }) => lives)).toHaveLength(3 + kills);
      } finally {
        await fleet.dispose();
      }
    },
    full ? 900_000 : scale.timeoutMs,
  );
});
