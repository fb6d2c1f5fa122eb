/**
 * The receiver of webhooks and the client of the gateway that a test file about webhooks has beside
 * its fleet.
 */
import type { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import type { RunningFleet } from "../fleet/use-fleet.js";
import { Receiver, WebhookClient } from "./webhooks.js";

/** Filled before the first test of the file. */
export interface Receiving {
  receiver: Receiver;
  redis: Redis;
  client: WebhookClient;
  /** The states of the deliveries to a webhook. */
  states: (webhook: string) => Promise<readonly string[]>;
}

export function useReceiver(served: RunningFleet): Receiving {
  const receiving = {} as Receiving;
  receiving.states = async (webhook) =>
    (await receiving.client.deliveries(`?webhook=${webhook}&limit=100`)).map(({ state }) => state);
  beforeAll(async () => {
    receiving.receiver = await Receiver.start();
    receiving.redis = served.fleet.redis.connect();
    receiving.client = new WebhookClient(served.url);
  });
  afterAll(async () => {
    receiving.redis.disconnect();
    await receiving.receiver.dispose();
  });
  return receiving;
}
