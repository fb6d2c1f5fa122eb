/**
 * Several conversations at once, turn by turn, so that a test can cause faults between the turns
 * and during the answers.
 */
import { seededRandom } from "../fleet/random.js";
import { planAsks, type StreamAsk } from "./ask.js";
import type { StreamLab } from "./lab.js";
import type { Manner, Reading } from "./history.js";

export interface Talk {
  readonly model: string;
  /** How many conversations there are. */
  readonly count: number;
  readonly turns: number;
  readonly seed: number;
  /** Talks with different names have the same texts, and share nothing else. */
  readonly name: string;
  readonly beforeTurn?: (turn: number) => Promise<unknown>;
  /** Called when half of the answers have begun. The turn is over when this call is over, too. */
  readonly duringTurn?: (turn: number) => Promise<unknown>;
}

export interface TalkFindings {
  /** The logs, by conversation and turn. */
  readonly turns: readonly (readonly (readonly string[])[])[];
  /** How many turns another worker took over in mid-answer. */
  readonly takenOver: number;
}

const manners: readonly Manner[] = ["completions", "generate_stream", "events", "websocket"];

export async function talk(lab: StreamLab, plan: Talk): Promise<TalkFindings> {
  const { model, count, turns, seed, name } = plan;
  let begun = new Set<Reading>();
  let halfBegan = () => undefined as void;
  const client = lab.client(name, (reading) => {
    begun.add(reading);
    if (begun.size >= count / 2) halfBegan();
  });
  const asks = Array.from({ length: count }, (_, i) => {
    const random = seededRandom(seed).fork(`conversation ${i}`);
    return planAsks({ count: turns, model, tokens: [80, 160], random });
  });
  const logs = asks.map((): string[][] => []);
  let takenOver = 0;

  const answer = async (conversation: number, turn: number, ask: StreamAsk) => {
    const place = {
      sequence_id: `${name}-${conversation}`,
      sequence_start: turn === 0,
      sequence_end: turn === turns - 1,
    };
    const manner = manners[(conversation + turn) % manners.length] ?? "events";
    const told = {
      ...ask,
      name: `${name}-${conversation}, turn ${turn}`,
      parameters: { ...ask.parameters, n: 1, ...place },
    };
    const reading = await client.read(told, manner, `${name}-${seed}-${conversation}-${turn}`);
    const { found, stored } = await lab.judge(reading);
    if (found.length > 0) throw new Error(JSON.stringify(found));
    logs[conversation]?.push([...stored.log]);
    if (stored.takenAt !== undefined && stored.takenAt > 0 && stored.takenAt < stored.log.length) takenOver++;
  };

  for (let turn = 0; turn < turns; turn++) {
    await plan.beforeTurn?.(turn);
    begun = new Set();
    const underWay = new Promise<void>((resolve) => (halfBegan = resolve));
    const answers = asks.flatMap((turnsOf, conversation) => {
      const ask = turnsOf[turn];
      return ask === undefined ? [] : [answer(conversation, turn, ask)];
    });
    await Promise.all([...answers, underWay.then(() => plan.duringTurn?.(turn))]);
  }
  return { turns: logs, takenOver };
}
