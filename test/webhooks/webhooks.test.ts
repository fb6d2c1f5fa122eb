/**
 * A sequence that idles out sends a signed message to the webhooks of its tenant that want the
 * event.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ownConfig } from "../support/fleet/repository.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { Receiver, verified, WebhookClient } from "../support/jobs/webhooks.js";
import { step, TENANT_HEADER } from "../edition/sequences/ask.js";

const IDLE_US = 300_000;
const served = useFleet({
  jobs: 1,
  models: ["chain"],
  configs: {
    chain: (ownConfig("chain") ?? "").replace(
      /max_sequence_idle_microseconds: \d+/,
      `max_sequence_idle_microseconds: ${IDLE_US}`,
    ),
  },
  env: { BATON_TENANT_HEADER: TENANT_HEADER },
  direct: true,
});
const client = (tenant = "acme") => new WebhookClient(served.url, { [TENANT_HEADER]: tenant });

describe("a sequence that idles out", () => {
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await Receiver.start();
  });
  afterAll(() => receiver.dispose());

  it("is told of to its tenant's webhook, once, signed", async () => {
    const { id, secret } = await client().register(receiver.url("/acme"));
    await client("other").register(receiver.url("/other"));
    const begunAt = Date.now();
    await step(served.url, "chain", 7, 1, { start: true });
    await step(served.url, "chain", 7, 1);
    await expect.poll(() => receiver.at("/acme").length).toBe(1);
    const [received] = receiver.at("/acme");
    if (received === undefined) throw new Error("nothing came");
    const { type, data } = verified(received, secret);
    expect(type).toBe("sequence.expired");
    expect(data).toEqual({ model: "chain", version: "1", sequence_id: 7, steps: 2, last_step_at: expect.any(String) });
    expect(Date.parse(String(data["last_step_at"]))).toBeGreaterThanOrEqual(begunAt - 5_000);
    expect(received.headers["content-type"]).toBe("application/json");
    await expect.poll(async () => (await client().deliveries())[0]?.state).toBe("delivered");
    const [delivery, ...more] = await client().deliveries();
    expect(more).toEqual([]);
    expect(delivery).toMatchObject({ id: received.id, event: "sequence.expired", webhook: id, next_attempt_at: null });
    expect(delivery?.attempts).toMatchObject([{ status: 204, error: null }]);
    expect(receiver.at("/other")).toEqual([]);
    expect(await client("other").deliveries()).toEqual([]);
  });
});
