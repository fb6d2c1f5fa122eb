/**
 * Checks how Redis is really configured. At the start, a process refuses to run on a server that
 * would lose acknowledged work. After a failover, the process can only report the fault.
 */
import type * as ioredis from "ioredis";
import type { Logger } from "pino";
import { UnusableError } from "../exit.js";
import { retrying } from "../retry.js";
import { mastersOf, type RedisClient } from "./connect.js";
import { isReplyError } from "./script.js";
import { checkedSettings, serverFindings, type Findings, type ServerFacts } from "./server-faults.js";

/**
 * How long to ask Redis again: a link that breaks at the very start does not make a server
 * unusable, and another master replaces a master that has just died.
 */
const ASK_BUDGET_MS = 30_000;

/**
 * Checks the server, or every master of a Cluster, and logs its durability. Checks servers that
 * take over later at that time.
 * @throws UnusableError that names the server's fault
 */
export async function checkServer(redis: RedisClient, log: Logger): Promise<void> {
  const { durability = "strict", isCluster: inCluster } = redis;
  const known = new Set<string>();
  /** Checks new servers, and outside a Cluster the single server each time. */
  const look = async () => {
    if (mastersOf(redis).length === 0) throw new Error("no master is known");
    const masters = mastersOf(redis).filter((master) => !inCluster || !known.has(addressOf(master)));
    const facts = await Promise.all(masters.map(ask));
    for (const master of masters) known.add(addressOf(master));
    return { facts, findings: together(facts.map((one) => serverFindings(one, { durability, inCluster }))) };
  };
  const { facts, findings } = await retrying(look, { budgetMs: ASK_BUDGET_MS });
  const [refusal] = findings.refusals;
  if (refusal !== undefined) throw new UnusableError(refusal);
  const versions = [...new Set(facts.map(({ info }) => info["redis_version"]))].join(", ");
  if (["", "default"].includes(mastersOf(redis)[0]?.options.username ?? ""))
    log.warn("this process may do everything in redis: `npm run keys -- acl` makes users for each role");
  log.info({ redis: versions, masters: facts.length, durability }, "redis checked");
  let told: ReadonlySet<string> = new Set();
  const tell = ({ refusals, warnings }: Findings) => {
    for (const refusal of refusals) if (!told.has(refusal)) log.error({ refusal }, "redis no longer fits");
    for (const warning of warnings) if (!told.has(warning)) log.warn({ warning }, "redis may lose work");
    told = new Set([...refusals, ...warnings]);
  };
  tell(findings);
  const lookAgain = () => {
    look().then(
      ({ facts, findings }) => facts.length > 0 && tell(findings),
      (error: unknown) => log.debug({ error: String(error) }, "redis cannot be checked now"),
    );
  };
  // A Cluster client emits `refresh` after each answer about the slots.
  redis.on(inCluster ? "refresh" : "ready", lookAgain);
}

export function addressOf({ options: { host, port } }: ioredis.Redis): string {
  return `${host}:${port}`;
}

async function ask(redis: ioredis.Redis): Promise<ServerFacts> {
  const [text, config] = await Promise.all([redis.info(), configOf(redis)]);
  return { info: fieldsOf(text), config };
}

/** The fields of an answer to INFO. */
export function fieldsOf(text: string): Readonly<Record<string, string>> {
  const lines = text.split("\r\n").filter((line) => line.includes(":"));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]));
}

/** @returns undefined if the server refuses the command, as managed services do */
async function configOf(redis: ioredis.Redis): Promise<ServerFacts["config"]> {
  try {
    const pairs = await redis.config("GET", ...checkedSettings);
    return Object.fromEntries(checkedSettings.map((name) => [name, pairs[pairs.indexOf(name) + 1]]));
  } catch (error) {
    if (isReplyError(error, "ERR") || isReplyError(error, "NOPERM")) return undefined;
    throw error;
  }
}

function together(all: readonly Findings[]): Findings {
  const distinct = (pick: (findings: Findings) => readonly string[]) => [...new Set(all.flatMap(pick))];
  return { refusals: distinct(({ refusals }) => refusals), warnings: distinct(({ warnings }) => warnings) };
}
