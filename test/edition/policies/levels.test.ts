/** Priority levels, their limits, and their policies. */
import { describe, expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { buckets } from "../settings.js";
import { Backlog, echo, many, READY } from "./backlog.js";

const served = useFleet({
  models: ["echo-int32"],
  configs: echo(`
    priority_levels: 4
    default_priority_level: 2
    default_queue_policy { max_queue_size: 40 }
    priority_queue_policy { key: 3 value { timeout_action: DELAY default_timeout_microseconds: 1000 allow_timeout_override: true } }
    priority_queue_policy { key: 4 value { timeout_action: REJECT default_timeout_microseconds: 1500000 max_queue_size: 5 } }
  `),
  env: buckets(1),
  direct: true,
});
const at = (priority: number, more: Readonly<Record<string, unknown>> = {}) => ({
  name: String(priority),
  parameters: { priority, ...more },
});
/** Fills the ready stream before the judged requests come. */
const full = many(READY, () => ({ name: "first" }));

describe("priority levels", () => {
  it("are obeyed strictly, and 0 stands for the default level", { timeout: 60_000 }, async () => {
    const backlog = new Backlog(served);
    await backlog.freeze();
    await backlog.wait(full);
    for (const level of [3, 2, 0, 1, 2, 1]) await backlog.wait(many(2, () => at(level)));
    await backlog.run();
    const order = backlog.answered.slice(READY);
    expect(order.slice(0, 4)).toEqual(["1", "1", "1", "1"]);
    expect(order.slice(4, 10).sort()).toEqual(["0", "0", "2", "2", "2", "2"]);
    expect(order.slice(10)).toEqual(["3", "3"]);
  });

  it("are refused by name where the model has no such level", async () => {
    const backlog = new Backlog(served);
    const { status, code, error } = await backlog.ask(at(5));
    expect({ status, code, error }).toEqual({
      status: 400,
      code: "invalid_argument",
      error: expect.stringMatching(/priority 5 .*'echo-int32' .*1 to 4/) as unknown,
    });
    expect((await backlog.ask(at(4))).status).toBe(200);
  });

  it("have a limit each, past which a request is refused in Triton's words", { timeout: 60_000 }, async () => {
    const backlog = new Backlog(served);
    await backlog.freeze();
    await backlog.wait(full);
    await backlog.wait(many(40, () => at(2)));
    const refused = { status: 503, code: "queue_full", error: "Exceeds maximum queue size" };
    expect(await backlog.ask(at(2))).toMatchObject(refused);
    // Another level has its own room.
    await backlog.wait(many(2, () => at(1)));
    const said = await backlog.run();
    expect(said.filter(({ status }) => status === 200)).toHaveLength(READY + 42);
  });

  it("tell a request of a low level that it waits in vain", { timeout: 60_000 }, async () => {
    const backlog = new Backlog(served);
    await backlog.freeze();
    await backlog.wait(full);
    // Requests of a low level leave the queue by themselves, so they come after the last count.
    await backlog.wait(many(5, () => at(1)));
    const low = many(3, () => at(4)).map((one) => backlog.ask(one));
    // The worker is still frozen: the gateway answers.
    for (const one of low) {
      expect(await one).toMatchObject({ status: 503, code: "expired", error: "Request timeout expired" });
    }
    const said = await backlog.run();
    expect(said.filter(({ status }) => status === 200)).toHaveLength(READY + 5);
    expect(backlog.answered.filter((name) => name === "4")).toEqual([]);
  });

  it("let a request that has waited for too long go behind the others of its level", { timeout: 60_000 }, async () => {
    const backlog = new Backlog(served);
    await backlog.freeze();
    await backlog.wait(full);
    await backlog.wait([{ ...at(3), name: "late" }]);
    // The delay is a millisecond, and the next request comes later.
    await backlog.wait([{ ...at(2), name: "higher" }]);
    await backlog.wait([{ ...at(3), name: "late too" }]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const said = await backlog.run();
    expect(said.every(({ status }) => status === 200)).toBe(true);
    expect(backlog.answered.slice(READY)).toEqual(["higher", "late", "late too"]);
  });
});
