import { expect, it } from "vitest";
import { outcomeOf, storeOutcome } from "#shared/contract/outcome.js";
import { fixedError } from "#shared/errors.js";
import { carriedMeta } from "#shared/trace/carried.js";
import { newSpan } from "#shared/trace/context.js";
import type { Span } from "#shared/trace/span.js";
import { delivery } from "../../test/fixtures/deliveries.js";
import { StepTraces } from "./step-traces.js";
import type { TracedStep } from "./step-trace.js";

const outcome = storeOutcome(outcomeOf(fixedError("expired", "beforeResult")));

function sample() {
  const spans: string[] = [];
  const tracer = { record: ({ name }: Span) => void spans.push(name) };
  const traces = new StepTraces({ tracer, worker: "w.1", model: "m", version: "1" });
  const meta = carriedMeta({ admitted: newSpan(), state: undefined, level: undefined });
  const step: TracedStep = { delivery: delivery("1"), request: { meta }, admittedAt: 0, rows: 1 };
  return { spans, traces, step };
}

it("ends the trace of a step that leaves without a commit, before or after its run", () => {
  const { spans, traces, step } = sample();
  traces.beginBatch([step]);
  traces.left(step.delivery);
  expect(traces.committing([{ delivery: step.delivery, outcome }])).toBeUndefined();
  expect(spans).toEqual([]);
  traces.beginBatch([step])?.ran({ ranMs: 1, runs: 1 });
  traces.left(step.delivery);
  expect(traces.committing([{ delivery: step.delivery, outcome }])).toBeUndefined();
  expect(spans).toEqual(["queue", "run", "process"]);
});

it("leaves the trace of a committed step as the commit has ended it", () => {
  const { spans, traces, step } = sample();
  traces.beginBatch([step])?.ran({ ranMs: 1, runs: 1 });
  traces.committing([{ delivery: step.delivery, outcome }])?.(["committed"]);
  const ended = [...spans];
  traces.left(step.delivery);
  expect(spans).toEqual(ended);
  expect(spans).toContain("commit");
});
