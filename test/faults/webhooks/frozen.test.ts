/**
 * A jobs process freezes past its locks, and wakes after the other process did its work: the work
 * is not repeated.
 */
import { expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { useReceiver } from "../../support/jobs/use-receiver.js";
import { noteExpiries } from "../../support/jobs/webhooks.js";

/** A lock without renewal and an outbox entry without acknowledgement each take up to 15 s. */
const TAKEN_OVER = { timeout: 60_000 };

const served = useFleet({
  workers: 0,
  jobs: 2,
  models: [],
  jobsEnv: { BATON_WEBHOOK_RETRY_MS: "100,200,400,800", BATON_WEBHOOK_TIMEOUT_MS: "2000" },
  direct: true,
});
const own = useReceiver(served);
const all = (count: number, state: string) => Array.from({ length: count }, () => state);

it("goes on with what the other one has, while that is frozen in the middle of attempts (F32)", async () => {
  const MESSAGES = 6;
  const seen = new Set<string>();
  // The receiver never answers the first attempts.
  const url = own.receiver.on("/frozen", ({ id }) => {
    if (seen.has(id)) return 204;
    seen.add(id);
    return undefined;
  });
  const { id } = await own.client.register(url);
  // Each process has some of the messages, because both wait for the next message in turn.
  await noteExpiries(own.redis, "default", MESSAGES);
  await expect.poll(() => seen.size).toBe(MESSAGES);
  const [one] = served.fleet.jobs;
  one?.freeze();
  await noteExpiries(own.redis, "default", MESSAGES);
  await expect.poll(() => seen.size, TAKEN_OVER).toBe(2 * MESSAGES);
  await expect.poll(() => own.states(id), TAKEN_OVER).toEqual(all(2 * MESSAGES, "delivered"));
  one?.thaw();
  // The thawed process learns that the work is done, and takes new work.
  const after = await own.client.register(own.receiver.url("/thawed"));
  await noteExpiries(own.redis, "default", MESSAGES);
  await expect.poll(() => own.states(after.id), TAKEN_OVER).toEqual(all(MESSAGES, "delivered"));
  await expect.poll(() => own.states(id), TAKEN_OVER).toEqual(all(3 * MESSAGES, "delivered"));
  expect(seen.size).toBe(3 * MESSAGES);
});
