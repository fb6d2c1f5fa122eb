/** How much of a fault test is run: enough to catch a broken promise in `npm test`, the specification's whole dose under BATON_FULL=1. */
const full = process.env["BATON_FULL"] === "1";

export const scale = {
  sequences: full ? 500 : 60,
  steps: full ? 40 : 12,
  workers: 4,
  clients: full ? 16 : 8,
  workerKills: full ? 24 : 6,
  workerFreezes: full ? 16 : 4,
  redisKills: full ? 3 : 2,
  natsKills: full ? 3 : 2,
  gatewayKills: full ? 8 : 3,
  /** Of one whole test, fleet included. */
  timeoutMs: full ? 600_000 : 150_000,
};

/**
 * Printed by each test: a failing run can be had again. The same in every `npm test`: once in about a million draws the number falls upon the limit between two tokens to within rounding,
 * and what is drawn then depends on the company in the batch, so a seed of its own for each run would now and then end red with nothing broken.
 */
export const seed = Number(
  process.env["BATON_SEED"] ?? (full ? 1 + Math.floor(Math.random() * 1_000_000) : 20_261_121),
);
