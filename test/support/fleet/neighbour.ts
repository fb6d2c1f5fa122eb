/** A client beside others, which asks for little, and how long it waits for each answer. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";

export interface Asked {
  /** The status of the right answer; or what came instead. */
  readonly said: string;
  readonly ms: number;
}

export interface Neighbour {
  /** What it has asked since it was last asked this. */
  tell(): Promise<readonly Asked[]>;
  /** The same; then it asks no more. */
  stop(): Promise<readonly Asked[]>;
}

/** @param headers with which it asks, in a thread of its own, these gateways in turn */
export function neighbour(urls: readonly string[], headers: Readonly<Record<string, string>>): Neighbour {
  const thread = new Worker(new URL("./neighbour-thread.mjs", import.meta.url), { workerData: { urls, headers } });
  const say = async (what: "tell" | "stop") => {
    const told = once(thread, "message");
    thread.postMessage(what, []);
    const [asked] = (await told) as [readonly Asked[]];
    return asked;
  };
  return { tell: () => say("tell"), stop: () => say("stop") };
}
