/**
 * What each kind of process may do in Redis: a user for each role, for an `aclfile`. Redis checks a
 * command that a script calls for the script's caller, also for keys that the call does not name.
 * `npm run check:house` compares the commands with the code of each process
 * (`infra/checks/roles.mjs`), and `test/roles` runs a fleet under these users.
 */

/** The users of a deployment. `operator` is for the program `keys` and for people. */
export const redisRoles = ["gateway", "worker", "jobs", "operator"] as const;
export type RedisRole = (typeof redisRoles)[number];

interface Rights {
  /** Commands, or categories and refusals with their sign. */
  readonly commands: string;
  /** Patterns of keys: `~` to read and write, `%R~` to read. */
  readonly keys: string;
}

/**
 * The commands of the client libraries themselves: their checks after connecting, transactions, the
 * search for the nodes of a Cluster, and the way through a slot that moves.
 */
const ofClients = `asking client|setname cluster|info cluster|shards cluster|slots eval evalsha eval_ro evalsha_ro
  exec info multi ping readonly readwrite select wait`;

/** The commands that all three processes call. */
const ofAll = `config|get del exists get hdel hexists hget hgetall hincrby hlen hmget hset hsetnx hstrlen lindex llen
  lpop lrange mget pexpire pexpireat pttl rename rpush sadd set smembers srem time unlink xadd xdel xinfo|groups xlen
  xpending xrange xrevrange zadd zcard zcount zpopmin zrandmember zrange zrem zrevrange zscore`;

/** The commands of gateways that jobs processes call, too. */
const ofServices = `hkeys hrandfield hscan hvals scard sismember strlen type zrangebyscore zrank zremrangebyscore
  zrevrank`;

/** The commands with which a process takes entries of a stream as a member of a group. */
const ofConsumers = `xack xgroup|create xgroup|delconsumer xinfo|consumers xreadgroup xtrim`;

/** The commands of BullMQ, its scripts and its board that no code of ours calls. */
const ofBullMq = `bzpopmin client|list hmset incr lpos lpush lrem lset ltrim persist rpop rpoplpush zrangebylex zlexcount
  zremrangebyrank zrevrangebyscore`;

/** The keys that a script names to reach its slot, and in a Cluster to be safe while it moves. */
const keysOfAll = `~absent:{* ~{[0-9]*}`;

/** The keys of the queue that gateways and jobs processes write. */
const keysOfServices = `~ready:{* ~queue:{* ~window:{* ~parked:{* ~past:{* ~live:{* ~dead:{* ~aside:{* ~out:{* ~job:{*
  ~jobs:{* ~tenants:{* ~log:{* ~seqs:{* ~wait:{* ~state:{* ~events:{* ~wanted:{* ~calls:* ~load:* ~open:* ~kept:*
  ~later:* ~recount:* ~unpublished:* ~usage:* ~spent:* ~{hooks}:* ~{schedules}:* ~{batches}:* ~{files}:* ~{registry}:deployment
  ~{registry}:processes ~{registry}:reports ~{registry}:past %R~{registry}:*`;

export const rights: Readonly<Record<RedisRole, Rights>> = {
  gateway: {
    commands: `${ofClients} ${ofAll} ${ofServices} copy getrange incr`,
    keys: `${keysOfAll} ${keysOfServices} ~cached:* ~did:{* %R~hibernated:{* ~{keys}:* ~{registry}:observer ~{registry}:history
      ~{registry}:tracing ~{registry}:logging ~{registry}:wish`,
  },
  worker: {
    commands: `${ofClients} ${ofAll} ${ofConsumers} client|id client|list client|unblock getrange ltrim pexpiretime
      setrange xclaim zmscore`,
    keys: `${keysOfAll} ~ready:{* ~queue:{* ~window:{* ~parked:{* ~past:{* ~live:{* ~runs:{* ~dead:{* ~aside:{*
      ~reconciler:{* ~out:{* ~job:{* ~jobs:{* ~tenants:{* ~log:{* ~run:{* ~seqs:{* ~wait:{* ~state:{* ~events:{*
      ~hibernating:{* ~hibernated:{* ~load:* ~open:* ~kept:* ~usage:* ~spent:* ~unpublished:* ~{registry}:* ~later:* %R~wanted:{*`,
  },
  jobs: {
    commands: `${ofClients} ${ofAll} ${ofServices} ${ofConsumers} ${ofBullMq} sscan xautoclaim`,
    keys: `${keysOfAll} ${keysOfServices} ~told:{* ~{jobs}:* ~{registry}:tidying %R~{keys}:*`,
  },
  // Without `-function`, `@write` would let FUNCTION FLUSH through.
  operator: {
    commands: `@read @write @connection @transaction eval evalsha eval_ro evalsha_ro time wait -@dangerous -function
      -xgroup|destroy info config|get client|list cluster|info cluster|shards cluster|slots acl|log acl|whoami
      slowlog|get latency|latest`,
    keys: `~*`,
  },
};

const HEALTH = "user health on nopass resetchannels -@all +ping";

/**
 * No client enters as the user `default`, which is off. But after a restart Redis 7.0 runs the
 * transactions and scripts of its file as this user, and would leave out all that the user may not
 * do, with a line in `ACL LOG` alone.
 */
const DEFAULT = "user default off ~* &* +@all";

/** The keys of owners for a gateway that changes none: it notes the uses of keys alone. */
const READS_OWNERS = `%R~{keys}:* ~{keys}:used`;

/**
 * The text of an `aclfile`, by which a server knows these users and no other: the user `default` is
 * off. The user `health` has no password, and can only ask whether the server is up.
 * @param digestsOf the SHA-256 of each password of a role, in hex
 * @param changesOwners whether gateways change keys and tenants (`BATON_ADMIN_API`)
 */
export function aclFile(digestsOf: (role: RedisRole) => readonly string[], changesOwners = true): string {
  const users = redisRoles.map((role) => {
    const { commands, keys: usual } = rights[role];
    const keys = role === "gateway" && !changesOwners ? usual.replace("~{keys}:*", READS_OWNERS) : usual;
    const passwords = digestsOf(role).map((digest) => `#${digest}`);
    const allowed = commands.split(/\s+/).map((command) => (command.startsWith("-") ? command : `+${command}`));
    return ["user", role, "on", ...passwords, "resetchannels", "-@all", ...allowed, ...keys.split(/\s+/)].join(" ");
  });
  return `${[...users, HEALTH, DEFAULT].join("\n")}\n`;
}
