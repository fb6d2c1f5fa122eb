/**
 * The deployment record: the settings that every gateway and worker over one Redis must share. The
 * first process writes the record. A process with other settings refuses to run: its requests would
 * reach no worker, or no gateway would fill its queues.
 */
import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import { EXIT_UNUSABLE, UnusableError } from "../exit.js";
import { registryKeys } from "./keys.js";
import { delay, retrying } from "../retry.js";
import type { RedisClient } from "../redis/connect.js";
import { bytes, defineScript, integer, list, text } from "../redis/script.js";

export interface Deployment {
  /** The number of buckets of requests. The number never changes while the deployment lives. */
  readonly buckets: number;
  /**
   * Gateways derive the ids of requests with an Idempotency-Key from this secret, so that guessing
   * a key does not tell the id. All gateways share the secret: otherwise none would recognise the
   * retry of a request that another gateway admitted.
   */
  readonly secret: () => Buffer;
  /** Whether this process is the first of the deployment that asks for keys. */
  readonly isFirstToAsk: boolean;
}

export interface JoinSettings {
  readonly redis: RedisClient;
  /** `BATON_BUCKETS` of this process; undefined to take the deployment's number. */
  readonly buckets: number | undefined;
  /**
   * Whether this process asks its clients for keys. A gateway that asks none refuses to run beside
   * gateways that do. Undefined for a process without clients, or for a gateway whose operator
   * accepts the risk.
   */
  readonly auth?: "required" | "off" | undefined;
  /**
   * Finishes the requests of a running gateway whose deployment begins to ask for keys, before the
   * process ends.
   */
  readonly leave?: (() => Promise<void>) | undefined;
  readonly log: Logger;
  /**
   * Until this signal aborts, the process checks the record every second, and writes the record
   * again if it is gone. Redis may come back empty, or with another deployment's record.
   */
  readonly signal: AbortSignal;
}

/**
 * The number of buckets if the first process has no setting. One server gains nothing from more
 * than one bucket: each call would only touch more keys.
 */
const USUAL_BUCKETS = { cluster: 16, oneServer: 1 };
/**
 * The format of keys and entries. A fleet that finds data of another format refuses to run, because
 * the fleet would neither find earlier requests nor leave their keys alone.
 */
const FORMAT = "3";
/** How long to ask Redis again while Redis does not answer. */
const BUDGET_MS = 60_000;
/** Time between two checks of the record. */
const EVERY_MS = 1_000;
const SECRET_BYTES = 32;

interface Agreed {
  readonly buckets: number;
  readonly secret: Buffer;
  /** Whether a gateway of the deployment has asked for keys. */
  readonly asksForKeys: boolean;
}

const script = defineScript(new URL("./deployment.lua", import.meta.url), list, {
  keys: ["deployment"],
  args: ["buckets", "secret", "format", "auth"],
});

/**
 * Reads the record, writes the record if there is none, and keeps checking it.
 * @throws UnusableError if this process's settings differ from the deployment's, or Redis has data
 * of another format
 */
export async function joinDeployment({
  redis,
  buckets: own,
  auth,
  leave,
  log,
  signal,
}: JoinSettings): Promise<Deployment> {
  let secret: Buffer = randomBytes(SECRET_BYTES);
  let expected = own;
  const usual = redis.isCluster ? USUAL_BUCKETS.cluster : USUAL_BUCKETS.oneServer;
  const { deployment } = registryKeys;
  let isJoining = true;
  let isFirstToAsk = false;
  /** Whether the deployment asked for keys at the last look. */
  let wasAsked = false;
  const ask = async () => {
    const found = await read(redis);
    // Later an operator may take the word back, and a running gateway does not repeat it.
    const saysIt = isJoining && auth === "required" && found?.[AUTH] === null;
    if (found !== undefined && !saysIt) return found;
    // If Redis has lost the record, whichever process is first puts it back with this word, too.
    const asks = (isJoining && auth === "required") || wasAsked ? "required" : "";
    if (isJoining && asks !== "") isFirstToAsk = true;
    return script(redis, { deployment }, { buckets: expected ?? usual, secret, format: FORMAT, auth: asks });
  };
  const agree = async () => {
    // Retries only the call, because a record with other settings never fits.
    const { buckets, secret: known, asksForKeys } = agreed(await retrying(ask, { budgetMs: BUDGET_MS, signal }));
    expected ??= buckets;
    if (buckets !== expected) throw new UnusableError(disagreement(expected, buckets));
    if (auth === "off" && asksForKeys) throw new OpenBeside();
    isJoining = false;
    wasAsked = asksForKeys;
    secret = known;
    return buckets;
  };
  const keepAgreed = async () => {
    while (!signal.aborted) {
      await delay(EVERY_MS, signal);
      if (signal.aborted || redis.status !== "ready") continue;
      try {
        await agree();
      } catch (error) {
        if (!isFinal(error, log)) continue;
        if (error instanceof OpenBeside) await leave?.();
        process.exit(EXIT_UNUSABLE);
      }
    }
  };
  const buckets = await agree();
  void keepAgreed();
  return { buckets, secret: () => secret, isFirstToAsk };
}

/** Says whether gateways that ask for no keys may run in this deployment. */
export async function requireKeys(redis: RedisClient, isRequired: boolean): Promise<void> {
  if (isRequired) await redis.hset(registryKeys.deployment, "auth", "required");
  else await redis.hdel(registryKeys.deployment, "auth");
}

/** The place of this field in the record, as it is read. */
const AUTH = 3;

/**
 * Reads before it writes, because a Redis that refuses writes still answers reads.
 * @returns undefined while the record is not complete
 */
async function read(redis: RedisClient): Promise<readonly unknown[] | undefined> {
  const record = await redis.hmgetBuffer(registryKeys.deployment, "buckets", "secret", "format", "auth");
  return record.slice(0, AUTH).every((field) => field !== null) ? record : undefined;
}

/** @throws UnusableError if the record has another format */
function agreed([buckets, secret, format, auth]: readonly unknown[]): Agreed {
  if (format === null || text(format) !== FORMAT) throw new UnusableError(otherFormat());
  const asksForKeys = Buffer.isBuffer(auth) && auth.toString() === "required";
  return { buckets: integer(buckets), secret: bytes(secret), asksForKeys };
}

/** Whether the settings differ. A lost link is no disagreement: the next check comes soon. */
function isFinal(error: unknown, log: Logger): boolean {
  const reason = error instanceof Error ? error.message : String(error);
  const isFinal = error instanceof UnusableError;
  if (isFinal) log.fatal({ reason }, "this process no longer fits its deployment");
  else log.debug({ reason }, "the deployment record cannot be read now");
  return isFinal;
}

function disagreement(own: number, agreed: number): string {
  return (
    `BATON_BUCKETS is ${own} here, but ${agreed} in the rest of this deployment. Leave it unset, or set it to ${agreed}; ` +
    `or, to change it everywhere, stop all gateways and workers once their queues are empty, and delete the key ` +
    `${registryKeys.deployment} from Redis`
  );
}

class OpenBeside extends UnusableError {
  constructor() {
    super(
      "This deployment asks for keys, and this gateway would let everybody in. Set BATON_AUTH=keys here, too. Or, " +
        "while a gateway with keys runs, allow gateways without keys with 'npm run keys -- require off'",
    );
  }
}

function otherFormat(): string {
  return (
    `Redis has the data of a Baton whose keys have another format than those of this one (${FORMAT}). ` +
    "Finish its work with the version that wrote it, or use an empty Redis"
  );
}

/** Whether the gateways ask their clients for keys. */
export async function asksForKeys(redis: RedisClient): Promise<boolean> {
  return (await redis.hget(registryKeys.deployment, "auth")) === "required";
}
