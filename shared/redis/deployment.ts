/**
 * The deployment record: what every gateway and worker over one Redis must agree on. Its first
 * process writes the record. A process whose settings differ from it refuses to run: it would queue
 * requests where nobody reads, or read where nobody queues.
 */
import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import { EXIT_UNUSABLE, UnusableError } from "../exit.js";
import { registryKeys } from "../keys.js";
import { delay, retrying } from "../retry.js";
import type { RedisClient } from "./connect.js";
import { bytes, defineScript, integer, list } from "./script.js";

export interface Deployment {
  /**
   * Ids of requests with an Idempotency-Key are derived with it, so that they cannot be guessed by
   * whoever guesses the key. All gateways have the same, or none would recognise a retry of
   * another's request.
   */
  readonly secret: () => Buffer;
}

export interface JoinSettings {
  readonly redis: RedisClient;
  /** As this process is set. */
  readonly shards: number;
  readonly log: Logger;
  /**
   * Until it aborts, the record is looked at and put back where it is gone: Redis may come back
   * empty, or with another.
   */
  readonly signal: AbortSignal;
}

const BUDGET_MS = 10_000;
const EVERY_MS = 1_000;
const SECRET_BYTES = 32;

const script = defineScript(new URL("./deployment.lua", import.meta.url), (reply) => {
  const [shards, secret] = list(reply);
  return { shards: integer(shards), secret: bytes(secret) };
});

/** @throws UnusableError where this process's settings are not the deployment's. */
export async function joinDeployment({ redis, shards, log, signal }: JoinSettings): Promise<Deployment> {
  let secret: Buffer = randomBytes(SECRET_BYTES);
  const ask = async () => (await read(redis)) ?? script(redis, [registryKeys.deployment], [shards, secret]);
  const agree = async () => {
    const agreed = await retrying(ask, { budgetMs: BUDGET_MS, signal });
    if (agreed.shards !== shards) throw new UnusableError(disagreement(shards, agreed.shards));
    ({ secret } = agreed);
  };
  const keepAgreed = async () => {
    while (!signal.aborted) {
      await delay(EVERY_MS, signal);
      if (!signal.aborted && redis.status === "ready") await agree().catch((error: unknown) => onFailure(error, log));
    }
  };
  await agree();
  void keepAgreed();
  return { secret: () => secret };
}

/** Undefined while the record is not complete. A Redis that refuses writes can be read. */
async function read(redis: RedisClient): Promise<{ shards: number; secret: Buffer } | undefined> {
  const [shards, secret] = await redis.hmgetBuffer(registryKeys.deployment, "shards", "secret");
  return shards && secret ? { shards: integer(shards), secret } : undefined;
}

/** A link that is lost just now is no disagreement: the next look comes soon. */
function onFailure(error: unknown, log: Logger): void {
  const reason = error instanceof Error ? error.message : String(error);
  if (!(error instanceof UnusableError)) return log.debug({ reason }, "the deployment record cannot be read now");
  log.fatal({ reason }, "this process no longer fits its deployment");
  process.exit(EXIT_UNUSABLE);
}

function disagreement(own: number, agreed: number): string {
  return (
    `BATON_SHARDS is ${own} here, but ${agreed} in the rest of this deployment. Set it to ${agreed}; or, to change it everywhere, ` +
    `stop all gateways and workers once their queues are empty, and delete the key ${registryKeys.deployment} from Redis`
  );
}
