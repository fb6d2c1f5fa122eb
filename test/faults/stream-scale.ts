/** How much of a stream's fault test is run, as scale.ts says for sequences. */
const full = process.env["BATON_FULL"] === "1";

export const streamScale = {
  /** Streams that always run, and those of faults that strike all of them alike. */
  running: 100,
  fewerRunning: full ? 100 : 50,
  /** Fewest and most tokens of one. */
  tokens: full ? ([20, 160] as const) : ([10, 40] as const),
  workerKills: full ? 100 : 10,
  workerFreezes: full ? 20 : 2,
  workerDrains: full ? 20 : 2,
  gatewayKills: full ? 20 : 3,
  natsKills: full ? 10 : 2,
  natsDownMs: full ? 60_000 : 2_000,
  redisKills: full ? 10 : 2,
  resets: full ? 40 : 9,
  lostReplies: full ? 20 : 6,
  /** Clients that come back at once. */
  stampede: 500,
  cancelled: full ? 10_000 : 400,
  slowReaders: full ? 200 : 60,
  /** How long they are watched, once all are there. */
  slowReadersMs: full ? 60_000 : 0,
  turns: full ? 20 : 4,
  everythingAtOnce: full,
  timeoutMs: full ? 900_000 : 120_000,
};
