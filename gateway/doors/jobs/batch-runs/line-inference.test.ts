import { expect, it } from "vitest";
import type { Inference } from "../../../admission/inference.js";
import { asked, talker } from "../../../../test/fixtures/generation.js";
import { LineInference } from "./line-inference.js";
import { LineLimits } from "./line-limits.js";

const refuse = () => Promise.reject(new Error("no queue"));
const inner: Inference = { infer: refuse, inferLater: refuse, generate: refuse };
const place = { buckets: 1, secret: () => Buffer.alloc(32) };
const LINE = "batch_a:1";

it("counts the lines of a batch until they are released, and none that its run had given up before", async () => {
  const limits = new LineLimits({ takenAtOnce: () => 100, clientsWait: () => false });
  const discarded: string[] = [];
  const sweeper = { discard: (key: string) => void discarded.push(key) };
  const lines = new LineInference(limits, inner, place, sweeper);
  const ask = () => lines.generate(asked({ model: talker, idempotencyKey: LINE })).catch(() => undefined);
  const idle = limits.mostOf("batch_a");

  lines.begin(LINE);
  await ask();
  expect(limits.mostOf("batch_a")).toBeGreaterThan(idle);
  lines.release(LINE);
  expect(limits.mostOf("batch_a")).toBe(idle);
  expect(discarded).toHaveLength(2);

  lines.begin(LINE);
  lines.forget(LINE);
  await ask();
  expect(limits.mostOf("batch_a")).toBe(idle);
});
