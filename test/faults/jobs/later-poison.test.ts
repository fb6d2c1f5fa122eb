/**
 * A job that ends the process which runs it is set aside once, although it may be tried more often.
 * The four crashes take most of half a minute, so this is part of the full dose.
 */
import { expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { accepted, ended } from "../../jobs/ask.js";

const isFull = process.env["BATON_FULL"] === "1";
const size = isFull ? 1 : 0;
const served = useFleet({ gateways: size, workers: size, jobs: size, models: ["gen-pill"], direct: true });

/** The token at which the model crashes. */
const CRASH = 320;

it.skipIf(!isFull)("is not tried again", { timeout: 90_000 }, async () => {
  const job = { completion: { prompt: [CRASH] }, attempts: 5, backoff: { type: "fixed", delay: 1 }, delay: 1 };
  const { id } = await accepted(served.url, "gen-pill", job);
  const end = await ended(served.url, id);
  expect(end).toMatchObject({ state: "failed", attempts_made: 1, error: { code: "poison_request" } });
});
