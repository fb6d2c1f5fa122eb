/** A client that asks for little beside other clients, and measures how long each answer takes. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";

export interface Asked {
  /** "200" for the right answer; else another status, the wrong answer, or the error. */
  readonly said: string;
  readonly ms: number;
}

export interface Neighbour {
  /** The requests since the last call. */
  tell(): Promise<readonly Asked[]>;
  /** The requests since the last call. Then the client stops. */
  stop(): Promise<readonly Asked[]>;
}

/**
 * Starts a client in a thread of its own, which asks these gateways in turn.
 * @param headers of each request
 */
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
