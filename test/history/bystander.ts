/** The well-behaved client of invariant I13: steady stateless requests beside the load, none of which may fail. */
import { delay } from "#shared/retry.js";
import type { Call, RecordingClient } from "./client.js";

const WIDTH = 16;

/** Asks again and again until the signal aborts. */
export async function runBystander(client: RecordingClient, everyMs: number, until: AbortSignal): Promise<void> {
  for (let i = 1; !until.aborted; i++) {
    await client.ask(simpleCall(`bystander-${i}`, i));
    await delay(everyMs, until);
  }
}

/** For the model `simple`: two vectors, of which it gives sum and difference. */
export function simpleCall(request: string, n: number): Call {
  const [a, b] = [Array.from({ length: WIDTH }, (_, i) => i + n), Array.from({ length: WIDTH }, (_, i) => 3 * i)];
  const input = (name: string, data: readonly number[]) => ({ name, datatype: "INT32", shape: [1, WIDTH], data });
  const combine = (sign: 1 | -1) => a.map((x, i) => x + sign * (b[i] ?? 0)).join(",");
  return {
    request,
    model: "simple",
    answer: `${combine(1)}|${combine(-1)}`,
    body: JSON.stringify({ id: request, inputs: [input("INPUT0", a), input("INPUT1", b)] }),
  };
}
