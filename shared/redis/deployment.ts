/**
 * The deployment record: what every gateway and worker over one Redis must agree on. Its first process writes the record. A
 * process whose settings differ from it refuses to run: it would queue requests where nobody reads, or read where nobody queues.
 */
import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import { EXIT_UNUSABLE, UnusableError } from "../exit.js";
import { registryKeys } from "../keys.js";
import { retrying } from "../retry.js";
import type { RedisClient } from "./connect.js";
import { bytes, defineScript, integer, list } from "./script.js";

export interface Deployment {
  /**
   * Ids of requests with an Idempotency-Key are derived with it, so that they cannot be guessed by whoever guesses the key.
   * All gateways have the same, or none would recognise a retry of another's request.
   */
  readonly secret: () => Buffer;
}

const BUDGET_MS = 10_000;
const SECRET_BYTES = 32;

const script = defineScript(new URL("./deployment.lua", import.meta.url), (reply) => {
  const [shards, secret] = list(reply);
  return { shards: integer(shards), secret: bytes(secret) };
});

/** @throws UnusableError where this process's settings are not the deployment's. */
export async function joinDeployment(redis: RedisClient, shards: number, log: Logger): Promise<Deployment> {
  let secret: Buffer = randomBytes(SECRET_BYTES);
  const agree = async () => {
    const call = () => script(redis, [registryKeys.deployment], [shards, secret]);
    const agreed = await retrying(call, { budgetMs: BUDGET_MS });
    if (agreed.shards !== shards) throw new UnusableError(disagreement(shards, agreed.shards));
    ({ secret } = agreed);
  };
  await agree();
  // A Redis that comes back empty has forgotten the record, and one that was exchanged has another.
  redis.on("ready", () => {
    agree().catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      if (!(error instanceof UnusableError)) return log.warn({ reason }, "the deployment record cannot be read");
      log.fatal({ reason }, "this process no longer fits its deployment");
      process.exit(EXIT_UNUSABLE);
    });
  });
  return { secret: () => secret };
}

function disagreement(own: number, agreed: number): string {
  return (
    `BATON_SHARDS is ${own} here, but ${agreed} in the rest of this deployment. Set it to ${agreed}; or, to change it everywhere, ` +
    `stop all gateways and workers once their queues are empty, and delete the key ${registryKeys.deployment} from Redis`
  );
}
