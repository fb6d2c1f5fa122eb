/**
 * Silero VAD as published, in all its versions: many streams of audio at a time, batched across
 * sequences, get the same answers as each stream alone in a bare loop.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startFleet, type Fleet } from "../support/fleet/fleet.js";
import { difference } from "../support/recurrent/bare-loop.js";
import { bareSpeech, bareSpeechInPairs, sileroRepository, sileros, streamAudio } from "../support/recurrent/silero.js";

/** A configuration without batches and without the sampling rate. */
const ALONE = "sequence_batching { max_sequence_idle_microseconds: 600000000 }";

const full = process.env["BATON_FULL"] === "1";
type Speech = readonly (readonly number[])[];

const SEQUENCES = 64;
const STEPS = full ? 1_000 : 12;

describe("Silero VAD", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-silero-"));
  let fleet: Fleet;
  beforeAll(async () => {
    const repository = sileroRepository(folder);
    const env = { BATON_LOG_LEVEL: "debug" };
    fleet = await startFleet({ models: Object.keys(sileros), repository, env });
    await fleet.whenServing();
  });
  afterAll(async () => {
    await fleet.dispose();
    rmSync(folder, { recursive: true });
  });

  /** The rows of each run of the model so far. */
  const runs = (model: string): number[] =>
    fleet.workers[0]?.process.lines.flatMap(({ fields }) => {
      if (fields["msg"] !== "batch" || fields["model"] !== model) return [];
      return Array.from({ length: Number(fields["runs"]) }, () => Number(fields["rows"]) / Number(fields["runs"]));
    }) ?? [];

  it.each(Object.keys(sileros))(
    "%s hears 64 streams at once as a bare loop hears each alone, and a bad chunk harms none",
    async (model) => {
      const expected = await bareSpeech(model, SEQUENCES, STEPS);
      const bad = { sequence: 5, step: 6 };
      const { speech, refused } = await streamAudio({
        urls: fleet.urls,
        model,
        sequences: SEQUENCES,
        steps: STEPS,
        bad,
      });
      expect(refused).toBe(500);
      const pairs = await bareSpeechInPairs(model, SEQUENCES, STEPS);
      const apart = (some: Speech, others: Speech) =>
        Math.max(...some.map((one, i) => difference(one, others[i] ?? [])));
      const [alone, inPairs, bare] = [apart(speech, expected), apart(speech, pairs), apart(expected, pairs)];
      expect(inPairs).toBeLessThan(1e-5);
      expect(alone).toBeLessThan(bare + 1e-5);
      const rows = runs(model);
      const mean = rows.reduce((sum, count) => sum + count, 0) / rows.length;
      console.log(
        `${model}: ${rows.length} runs of ${mean.toFixed(1)} rows; off by ${alone}, by ${inPairs} from pairs`,
      );
      expect(mean).toBeGreaterThan(8);
    },
    full ? 900_000 : 120_000,
  );
});

describe("Silero VAD with a line of configuration", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-silero-"));
  const models = ["silero-legacy", "silero-v5"];
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startFleet({ models, repository: sileroRepository(folder, ALONE) });
    await fleet.whenServing();
  });
  afterAll(async () => {
    await fleet.dispose();
    rmSync(folder, { recursive: true });
  });

  it.each(models)("%s is told the sampling rate by each request, and batches only those that agree", async (model) => {
    const rates = [16_000, 8_000];
    const { speech } = await streamAudio({ urls: fleet.urls, model, sequences: 8, steps: 6, rates });
    const expected = await bareSpeech(model, 8, 6, rates);
    for (const [i, heard] of speech.entries()) expect(difference(heard, expected[i] ?? [])).toBeLessThan(1e-5);
  });
});
