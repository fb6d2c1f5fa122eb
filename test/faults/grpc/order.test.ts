/**
 * The steps of one sequence, sent on one stream without waiting, while the gateway of the stream is
 * killed again and again: each step is applied once, in the order in which the client sent it.
 */
import { expect, it } from "vitest";
import type { Member } from "../../support/fleet/member.js";
import { seededRandom } from "../../support/fleet/random.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { until } from "../../support/until.js";
import { int32s, type Message } from "../../protocols/grpc/client.js";
import { ResumingClient } from "../../protocols/grpc/resuming.js";
import { nth } from "../pace.js";
import { orderScale, seed } from "../scale.js";

const { steps, gatewayKills, timeoutMs } = orderScale;
const running = useFleet({ models: ["accumulate"], gateways: 3, workers: 2, grpc: true });

/** The number of a step, and the sum of all steps so far. */
interface Seen {
  readonly step: number;
  readonly sum: number;
}

/** The model in a bare loop. Its numbers have 32 bits. */
function bareLoop(values: readonly number[]): Seen[] {
  let sum = 0;
  return values.map((value, i) => ({ step: i + 1, sum: (sum = (sum + value) | 0) }));
}

function seenIn(message: Message): Seen {
  const { parameters, raw_output_contents: raw } = message["infer_response"] as {
    readonly parameters: Readonly<Record<string, { readonly int64_param?: string }>>;
    readonly raw_output_contents: readonly Buffer[];
  };
  return { step: Number(parameters["sequence_step"]?.int64_param), sum: raw[0]?.readInt32LE() ?? NaN };
}

it(
  "applies them in order, and each once",
  async () => {
    const { gateways } = running.fleet;
    const random = seededRandom(seed);
    const targets = gateways.map(({ grpc }) => grpc);
    const client = new ResumingClient(targets, 0);
    // With random values a step that is missing, doubled or out of order changes the sums.
    const values: number[] = [];
    const answers: Promise<Seen>[] = [];
    let answered = 0;
    const send = async (isLast: boolean): Promise<Seen> => {
      const value = random.between(-(2 ** 31), 2 ** 31 - 1);
      const isFirst = values.push(value) === 1;
      const [message = {}] = await client.ask({
        id: `step-${values.length}`,
        message: {
          model_name: "accumulate",
          inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1] }],
          raw_input_contents: [int32s(value)],
        },
        given: { sequence_id: 1, sequence_start: isFirst, sequence_end: isLast },
      });
      answered++;
      return seenIn(message);
    };
    const sendUpTo = (count: number) => {
      while (values.length < count) answers.push(send(false));
    };
    sendUpTo(steps - 1);
    const restarts = new Map<Member, Promise<void>>();
    for (let kills = 0; kills < gatewayKills; kills++) {
      const due = answered + random.between(1, steps / gatewayKills);
      // A kill needs steps that are under way.
      sendUpTo(2 * due - answered);
      await until(() => answered >= due);
      const { member } = nth(gateways, client.at);
      await restarts.get(member);
      const { resumed } = client;
      restarts.set(member, member.restart());
      await until(() => client.resumed > resumed);
    }
    answers.push(send(true));
    const seen = await Promise.all(answers);
    await Promise.all(restarts.values());
    client.close();
    const statuses = [...client.statuses];
    console.log(
      `grpc-order, seed ${seed}: ${JSON.stringify({ steps: seen.length, resumed: client.resumed, statuses })}`,
    );
    expect(seen).toEqual(bareLoop(values));
    // A stream that breaks is UNAVAILABLE, which every client repeats; a cancelled one is ours.
    expect(statuses.filter((status) => ![14, 1, 13].includes(status))).toEqual([]);
  },
  timeoutMs,
);
