/** A connection to NATS over a line that was silent from the start. */
import { expect, it } from "vitest";
import { connectBus } from "#shared/nats/connect.js";
import { startNats } from "../support/brokers/nats.js";
import { Proxy } from "../support/fleet/proxy.js";
import { silentLog } from "../support/silent.js";
import { until } from "../support/until.js";

it("leaves none of the attempts open that were given up", async () => {
  const nats = await startNats();
  const line = await Proxy.start(nats.port);
  line.blackHole("toClient");
  const bus = connectBus({ url: `nats://127.0.0.1:${line.port}`, name: "x", log: silentLog });
  try {
    await until(() => line.counts.connections > 1);
    line.heal();
    await until(() => bus.isUp());
    await until(async () => (await nats.pendingBytes()).length === 1);
    expect(bus.connections()).toBe(1);
  } finally {
    await bus.close();
    await line.dispose();
    await nats.dispose();
  }
});
