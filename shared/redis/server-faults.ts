/**
 * Decides whether a Redis server fits the durability mode that the operator chose: some faults make
 * a process refuse to run, and others only cause a warning.
 */
import type { Durability } from "../durability.js";

/** A server's answers about itself. Values are undefined if the server omits them. */
export interface ServerFacts {
  /** Fields of INFO. */
  readonly info: Readonly<Record<string, string | undefined>>;
  /** Settings as CONFIG GET gives them; undefined if the server refuses the command. */
  readonly config: Readonly<Record<string, string | undefined>> | undefined;
}

export interface Expected {
  readonly durability: Durability;
  /** Whether the URL says that the server belongs to a Cluster. */
  readonly inCluster: boolean;
}

export interface Findings {
  /** Why no process may run on this server, each a sentence without its full stop. */
  readonly refusals: readonly string[];
  readonly warnings: readonly string[];
}

/** The settings to read by CONFIG GET. */
export const checkedSettings = ["appendfsync", "min-replicas-to-write", "min-replicas-max-lag"] as const;

const OLDEST = 7;
const fsyncs = { strict: ["always"], fast: ["always", "everysec"], replicated: ["always"] } as const;

export function serverFindings(facts: ServerFacts, expected: Expected): Findings {
  // A server of another kind has other fields, so the other checks cannot apply.
  const wrongKind = kindRefusal(facts.info, expected.inCluster);
  if (wrongKind !== undefined) return { refusals: [wrongKind], warnings: [] };
  const kept = durabilityFindings(facts, expected.durability);
  return {
    refusals: [...versionRefusals(facts.info), ...evictionRefusals(facts.info), ...kept.refusals],
    warnings: [...kept.warnings, ...replicaWarnings(facts.info, expected.durability)],
  };
}

function kindRefusal(info: ServerFacts["info"], inCluster: boolean): string | undefined {
  if (info["redis_mode"] === "sentinel")
    return "this is a Sentinel: set BATON_REDIS_URL to redis+sentinel://host:port,host:port/name";
  const isNode = info["cluster_enabled"] === "1";
  if (isNode && !inCluster)
    return "this Redis is a node of a Cluster: set BATON_REDIS_URL to redis+cluster://host:port,host:port";
  return undefined;
}

function versionRefusals({ redis_version: version }: ServerFacts["info"]): string[] {
  if (Number((version ?? "0").split(".")[0]) >= OLDEST) return [];
  return [`Redis ${version} is too old: Baton needs ${OLDEST}.0 or newer`];
}

function evictionRefusals({ maxmemory_policy: policy }: ServerFacts["info"]): string[] {
  if (policy === undefined || policy === "noeviction") return [];
  const mend = mending("maxmemory-policy", "noeviction");
  return [`Redis has maxmemory-policy ${policy}: it would throw queued work away. ${mend}`];
}

function durabilityFindings({ info, config }: ServerFacts, durability: Durability): Findings {
  const mode = `BATON_DURABILITY is ${durability}`;
  if (config === undefined) {
    // Managed services forbid CONFIG, and some keep writes by other means than an append-only file.
    const wanted = `appendonly yes, appendfsync ${fsyncs[durability].join(" or ")}`;
    const replicas = durability === "replicated" ? ", min-replicas-to-write 1" : "";
    const unknown = `${mode}, and it cannot be checked that Redis does its part: it refuses CONFIG GET`;
    return { refusals: [], warnings: [`${unknown}. Make sure that it keeps writes as ${wanted}${replicas} would`] };
  }
  const refusals: string[] = [];
  const fsync = config["appendfsync"] ?? "";
  if (info["aof_enabled"] !== "1")
    refusals.push(`${mode}, but Redis has appendonly no: a restart would lose work. ${mending("appendonly", "yes")}`);
  if (!fsyncs[durability].some((known) => known === fsync)) {
    const better = durability === "fast" ? "everysec" : "always";
    const lower = durability === "strict" && fsync === "everysec" ? ", or set BATON_DURABILITY to fast everywhere" : "";
    const mend = `${mending("appendfsync", better)}${lower}`;
    refusals.push(`${mode}, but Redis has appendfsync ${fsync}: a power cut would lose more. ${mend}`);
  }
  if (durability === "replicated") {
    // With a lag of 0 Redis does not look at its replicas at all.
    for (const name of ["min-replicas-to-write", "min-replicas-max-lag"] as const) {
      if (Number(config[name] ?? 0) > 0) continue;
      const mend = mending(name, name === "min-replicas-max-lag" ? "2" : "1");
      refusals.push(
        `${mode}, but Redis has ${name} ${config[name] ?? 0}: it would take writes without a replica. ${mend}`,
      );
    }
  }
  const loss = "up to a second of accepted work may be lost if Redis's machine loses power";
  return { refusals, warnings: durability === "fast" ? [`${mode}: ${loss}`] : [] };
}

function replicaWarnings({ role, connected_slaves: replicas }: ServerFacts["info"], durability: Durability): string[] {
  if (role === "slave") return ["this Redis is a replica and refuses writes: nothing is admitted until it is promoted"];
  const count = Number(replicas ?? 0);
  if (durability === "replicated")
    return count === 0 ? ["no replica is connected: Redis refuses writes until there is one"] : [];
  return count === 0
    ? []
    : [
        `Redis has replicas, and BATON_DURABILITY is ${durability}: a failover loses what a replica has not ` +
          "received yet. With replicated, acknowledgements wait for one",
      ];
}

function mending(name: string, value: string): string {
  return `Type \`redis-cli CONFIG SET ${name} ${value}\`, and write it into redis.conf`;
}
