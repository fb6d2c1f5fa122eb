/**
 * Rows F29 and F30: clients that do the same at the same time, at two gateways. One key has one
 * effect and one answer, and the answers of racing requests on one sequence fit some order of the
 * requests.
 */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { nth } from "../pace.js";

const served = useFleet({ gateways: 2, workers: 2, models: ["accumulate"], direct: true });

interface Step {
  readonly value: number;
  readonly start?: boolean;
  readonly end?: boolean;
}

/** The answer to a step: its sum, or undefined if there was no sequence. */
interface Answered {
  readonly status: number;
  readonly sum: number | undefined;
  readonly replayed: boolean;
  readonly text: string;
}

let sequences = 0;

async function send(gateway: number, sequence: number, step: Step, key?: string): Promise<Answered> {
  const { value, start = false, end = false } = step;
  const answer = await fetch(`${nth(served.fleet.urls, gateway)}/v2/models/accumulate/infer`, {
    method: "POST",
    headers: key === undefined ? {} : { "idempotency-key": key },
    body: JSON.stringify({
      parameters: { sequence_id: sequence, sequence_start: start, sequence_end: end },
      inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }],
    }),
  });
  const text = await answer.text();
  const { outputs } = JSON.parse(text) as { outputs?: { data: number[] }[] };
  const replayed = answer.headers.get("idempotent-replayed") === "true";
  return { status: answer.status, sum: outputs?.[0]?.data[0], replayed, text };
}

describe("the same Idempotency-Key at two gateways at the same time", () => {
  it("is one step with one answer, and another body under it is refused", async () => {
    for (let round = 0; round < 10; round++) {
      const sequence = ++sequences;
      await send(0, sequence, { value: 1, start: true });
      const key = randomUUID();
      const tries = await Promise.all([0, 1, 0, 1].map((gateway) => send(gateway, sequence, { value: 10 }, key)));
      expect(tries.map(({ status, sum }) => [status, sum])).toEqual(tries.map(() => [200, 11]));
      const other = await send(round, sequence, { value: 11 }, key);
      expect(other).toMatchObject({ status: 422, text: expect.stringContaining("idempotency_mismatch") as string });
      expect((await send(1, sequence, { value: 0 })).sum).toBe(11);
    }
  });
});

/** The answers to these steps in this order; undefined if there is no sequence. */
function inOrder(steps: readonly Step[]): (number | undefined)[] {
  let sum: number | undefined;
  return steps.map(({ value, start = false, end = false }) => {
    if (start) sum = 0;
    if (sum === undefined) return undefined;
    const now = sum + value;
    sum = end ? undefined : now;
    return now;
  });
}

function* ordersOf<T>(items: readonly T[]): Generator<readonly T[]> {
  if (items.length === 0) yield [];
  for (const [i, item] of items.entries()) {
    for (const rest of ordersOf(items.toSpliced(i, 1))) yield [item, ...rest];
  }
}

/** Whether some order of the steps explains all answers. */
function isExplained(steps: readonly Step[], sums: readonly (number | undefined)[]): boolean {
  const positions = [...steps.keys()];
  for (const order of ordersOf(positions)) {
    const told = inOrder(order.map((i) => nth(steps, i)));
    if (order.every((i, at) => told[at] === sums[i])) return true;
  }
  return false;
}

describe("START and END that race on one sequence", () => {
  // Each sum shows which values are in it.
  const steps: Step[] = [
    { value: 1, start: true },
    { value: 10, start: true },
    { value: 100 },
    { value: 1_000, end: true },
    { value: 10_000, end: true },
    { value: 100_000, start: true, end: true },
  ];

  it("is told from answers that no order explains", () => {
    expect(isExplained(steps, inOrder(steps))).toBe(true);
    expect(isExplained(steps, [1, 10, 110, 1_110, 10_110, 100_000])).toBe(false);
    expect(isExplained(steps, [1, 11, 111, 1_111, undefined, 100_000])).toBe(false);
  });

  it("are answered in the order of their admission, whatever that is", async () => {
    for (let round = 0; round < 20; round++) {
      const sequence = ++sequences;
      const answers = await Promise.all(steps.map((step, i) => send(i + round, sequence, step)));
      expect(answers.filter(({ status }) => status !== 200 && status !== 400)).toEqual([]);
      for (const { status, text } of answers) if (status === 400) expect(text).toContain("sequence_start_required");
      const sums = answers.map(({ sum }) => sum);
      expect([sums, isExplained(steps, sums)]).toEqual([sums, true]);
    }
  });
});
