/** The jobs process does the upkeep after the last worker is gone. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { Receiver, verified, WebhookClient } from "../support/jobs/webhooks.js";
import { ask } from "./ask.js";

const served = useFleet({
  jobs: 1,
  models: ["accumulate"],
  configs: { accumulate: "max_batch_size: 8 sequence_batching { max_sequence_idle_microseconds: 2000000 }" },
  direct: true,
});

describe("a sequence that idles out", () => {
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await Receiver.start();
  });
  afterAll(() => receiver.dispose());

  it(
    "is told of although no worker is left that serves its model, and nobody asks for it again",
    { timeout: 90_000 },
    async () => {
      const client = new WebhookClient(served.url);
      const { secret } = await client.register(receiver.url("/expired"));
      const step = {
        parameters: { sequence_id: 7, sequence_start: true },
        inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
      };
      expect(await ask(`${served.url}/v2/models/accumulate/infer`, { body: step })).toMatchObject({ status: 200 });
      await served.fleet.workers[0]?.kill();
      await expect.poll(() => receiver.at("/expired").length, { timeout: 60_000 }).toBe(1);
      const [received] = receiver.at("/expired");
      if (received === undefined) return;
      expect(verified(received, secret)).toMatchObject({
        type: "sequence.expired",
        data: { model: "accumulate", sequence_id: 7, steps: 1 },
      });
    },
  );
});
