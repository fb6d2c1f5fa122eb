/**
 * The deployment record: what every gateway and worker over one Redis must agree on. Its first
 * process writes the record. A process whose settings differ from it refuses to run: it would queue
 * requests where nobody reads, or read where nobody queues.
 */
import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import { EXIT_UNUSABLE, UnusableError } from "../exit.js";
import { registryKeys } from "./keys.js";
import { delay, retrying } from "../retry.js";
import type { RedisClient } from "../redis/connect.js";
import { bytes, defineScript, integer, list, text } from "../redis/script.js";

export interface Deployment {
  /** Over how many buckets requests are spread. It never changes while the deployment lives. */
  readonly buckets: number;
  /**
   * The ids of requests with an Idempotency-Key are derived with it, so that guessing a key does
   * not tell the id. All gateways have the same secret: otherwise none would recognise the retry of
   * a request that another one admitted.
   */
  readonly secret: () => Buffer;
}

export interface JoinSettings {
  readonly redis: RedisClient;
  /** `BATON_BUCKETS` as this process has it; undefined to take what the deployment has. */
  readonly buckets: number | undefined;
  readonly log: Logger;
  /**
   * Until it aborts, the record is checked every second, and written again where it is gone: Redis
   * may come back empty, or with another deployment's record.
   */
  readonly signal: AbortSignal;
}

/**
 * The deployment gets so many where its first process is told no number. One server gains nothing
 * from more than one: each call would only touch more keys.
 */
const USUAL_BUCKETS = { cluster: 16, oneServer: 1 };
/**
 * The format of keys and entries. A fleet that finds data of another one refuses to run: it would
 * neither find what was admitted before, nor leave it alone.
 */
const FORMAT = "3";
/** Redis is asked again for this long while it cannot be reached. */
const BUDGET_MS = 60_000;
/** Time between two checks of the record. */
const EVERY_MS = 1_000;
const SECRET_BYTES = 32;

interface Agreed {
  readonly buckets: number;
  readonly secret: Buffer;
}

const script = defineScript(new URL("./deployment.lua", import.meta.url), list);

/**
 * Reads the record, writes it where there is none, and keeps checking it.
 * @throws UnusableError where this process's settings differ from the deployment's, or Redis has
 * data of another format
 */
export async function joinDeployment({ redis, buckets: own, log, signal }: JoinSettings): Promise<Deployment> {
  let secret: Buffer = randomBytes(SECRET_BYTES);
  let expected = own;
  const usual = redis.isCluster ? USUAL_BUCKETS.cluster : USUAL_BUCKETS.oneServer;
  const ask = async () =>
    (await read(redis)) ?? script(redis, [registryKeys.deployment], [expected ?? usual, secret, FORMAT]);
  const agree = async () => {
    // Only the call is retried: a record that does not fit never will.
    const { buckets, secret: known } = agreed(await retrying(ask, { budgetMs: BUDGET_MS, signal }));
    expected ??= buckets;
    if (buckets !== expected) throw new UnusableError(disagreement(expected, buckets));
    secret = known;
    return buckets;
  };
  const keepAgreed = async () => {
    while (!signal.aborted) {
      await delay(EVERY_MS, signal);
      if (!signal.aborted && redis.status === "ready") await agree().catch((error: unknown) => onFailure(error, log));
    }
  };
  const buckets = await agree();
  void keepAgreed();
  return { buckets, secret: () => secret };
}

/**
 * Reads before it writes, since a Redis that refuses writes can still be read.
 * @returns undefined while the record is not complete
 */
async function read(redis: RedisClient): Promise<readonly unknown[] | undefined> {
  const record = await redis.hmgetBuffer(registryKeys.deployment, "buckets", "secret", "format");
  return record.every((field) => field !== null) ? record : undefined;
}

/** @throws UnusableError where the record is of another format */
function agreed([buckets, secret, format]: readonly unknown[]): Agreed {
  if (format === null || text(format) !== FORMAT) throw new UnusableError(otherFormat());
  return { buckets: integer(buckets), secret: bytes(secret) };
}

/**
 * Ends the process where the settings differ. A lost link is no disagreement: the next check comes
 * soon.
 */
function onFailure(error: unknown, log: Logger): void {
  const reason = error instanceof Error ? error.message : String(error);
  if (!(error instanceof UnusableError)) return log.debug({ reason }, "the deployment record cannot be read now");
  log.fatal({ reason }, "this process no longer fits its deployment");
  process.exit(EXIT_UNUSABLE);
}

function disagreement(own: number, agreed: number): string {
  return (
    `BATON_BUCKETS is ${own} here, but ${agreed} in the rest of this deployment. Leave it unset, or set it to ${agreed}; ` +
    `or, to change it everywhere, stop all gateways and workers once their queues are empty, and delete the key ` +
    `${registryKeys.deployment} from Redis`
  );
}

function otherFormat(): string {
  return (
    `Redis has the data of a Baton whose keys have another format than those of this one (${FORMAT}). ` +
    "Finish its work with the version that wrote it, or use an empty Redis"
  );
}
