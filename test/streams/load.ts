/** Keeps a number of streams running: each that ends is followed by the next ask at once, until it is enough; then the last ones are read to their ends. */
import type { StreamAsk } from "./ask.js";
import type { StreamClient } from "./client.js";
import type { Manner, Reading } from "./history.js";

export interface StreamLoad {
  readonly asks: readonly StreamAsk[];
  readonly client: StreamClient;
  /** How many run at a time. */
  readonly running: number;
  readonly manners: readonly Manner[];
  /** Makes keys differ between loads on one fleet. */
  readonly name: string;
  readonly onEnd: (reading: Reading) => Promise<void>;
  /** No stream is begun once this aborts, except that every ask is read once. */
  readonly enough: AbortSignal;
}

export async function keepRunning(load: StreamLoad): Promise<void> {
  const { asks, client, running, manners, name, onEnd, enough } = load;
  let next = 0;
  const one = async () => {
    while (!enough.aborted || next < asks.length) {
      const turn = next++;
      const ask = asks[turn % asks.length];
      const inTurn = manners[(turn + Math.floor(turn / asks.length)) % manners.length];
      if (ask === undefined || inTurn === undefined) throw new Error("a load needs asks and manners");
      // Records alone say all of several choices.
      const manner = ask.parameters["n"] === undefined || inTurn === "websocket" ? inTurn : "events";
      await onEnd(await client.read(ask, manner, `${name}-${turn}`));
    }
  };
  await Promise.all(Array.from({ length: running }, one));
}
