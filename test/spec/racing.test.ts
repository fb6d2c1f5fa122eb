/**
 * Row F30: requests of one sequence that begin and end it race at two gateways. Whatever their
 * order, there is one: that in which they were admitted, and every answer follows from it.
 */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";

const served = useFleet({ gateways: 2, workers: 2, models: ["accumulate"], direct: true });

interface Step {
  readonly value: number;
  readonly start: boolean;
  readonly end: boolean;
}

/** Duplicates of a START and of an END, and what comes between. All values differ. */
const racing: readonly Step[] = [
  { value: 100, start: true, end: false },
  { value: 100, start: true, end: false },
  { value: 3, start: false, end: false },
  { value: 7, start: false, end: true },
  { value: 7, start: false, end: true },
];
const REFUSED = "refused";

type Answer = number | typeof REFUSED;

async function send(url: string, sequence: number, { value, start, end }: Step): Promise<Answer> {
  const body = {
    parameters: { sequence_id: sequence, sequence_start: start, sequence_end: end },
    inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }],
  };
  const answer = await fetch(`${url}/v2/models/accumulate/infer`, { method: "POST", body: JSON.stringify(body) });
  const text = await answer.text();
  if (answer.status === 200) {
    const { outputs } = JSON.parse(text) as { outputs: { name: string; data: number[] }[] };
    return outputs.find(({ name }) => name === "OUTPUT")?.data[0] ?? Number.NaN;
  }
  if (answer.status === 400 && text.includes("must specify the START flag")) return REFUSED;
  throw new Error(`${answer.status} ${text}`);
}

/** What each is answered if they are admitted in this order. */
function answersIn(order: readonly number[], before: number | undefined): Answer[] {
  const answers: Answer[] = [];
  let sum = before;
  for (const i of order) {
    const { value, start, end } = racing[i] ?? { value: Number.NaN, start: false, end: false };
    if (sum === undefined && !start) {
      answers[i] = REFUSED;
      continue;
    }
    sum = start ? value : (sum ?? 0) + value;
    answers[i] = sum;
    if (end) sum = undefined;
  }
  return answers;
}

function permutations(items: readonly number[]): number[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item) => permutations(items.filter((one) => one !== item)).map((rest) => [item, ...rest]));
}

describe("F30: duplicates of START and END that race", () => {
  it("take effect in one order, and every answer follows from it", async () => {
    const orders = permutations(racing.map((_, i) => i));
    const possible = new Set(orders.map((order) => JSON.stringify(answersIn(order, 1))));
    expect(possible.size).toBeLessThan(orders.length);
    const seen = new Set<string>();
    for (let round = 0; round < 5; round++) {
      const sequences = Array.from({ length: 12 }, (_, i) => 1 + round * 12 + i);
      await Promise.all(
        sequences.map(async (sequence) => {
          const urls = served.fleet.urls;
          const first = { value: 1, start: true, end: false };
          expect(await send(served.url, sequence, first)).toBe(1);
          const answers = await Promise.all(
            racing.map((step, i) => send(urls[(i + sequence) % urls.length] ?? "", sequence, step)),
          );
          expect(possible).toContain(JSON.stringify(answers));
          seen.add(JSON.stringify(answers));
        }),
      );
    }
    expect(seen.size).toBeGreaterThan(1);
  });
});
