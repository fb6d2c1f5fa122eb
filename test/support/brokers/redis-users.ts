/**
 * The users of a test's Redis: the users of a deployment, under which fleets run, and the user
 * `default` for the test itself.
 */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { startBroker, type Broker } from "./broker.js";
import { aclFile, redisRoles, type RedisRole } from "#shared/redis/roles.js";

const passwordOf = (role: RedisRole) => `the password of ${role}`;
const digestOf = (text: string) => createHash("sha256").update(text).digest("hex");

/** @returns the path of the server's file of users */
export function writeUsers(folder: string): string {
  const file = join(folder, "users.acl");
  const users = aclFile((role) => [digestOf(passwordOf(role))]);
  writeFileSync(file, users.replace("user default off", "user default on nopass"));
  return file;
}

/** A server that only these users may enter, with the file of users that deployments have. */
export function startOnlyUsers(): Promise<Broker> {
  return startBroker({
    name: "redis",
    command: "redis-server",
    argumentsFor: (port, folder) => {
      const file = join(folder, "users.acl");
      writeFileSync(
        file,
        aclFile((role) => [digestOf(passwordOf(role))]),
      );
      const place = ["--bind", "127.0.0.1", "--port", String(port), "--dir", folder, "--save", ""];
      return [...place, "--appendonly", "yes", "--appendfsync", "always", "--aclfile", file];
    },
    ready: /Ready to accept connections/,
  });
}

/**
 * Settings with which a process connects as the user of its role.
 * @param folder for the file of the password
 */
export function redisUser(role: RedisRole, folder: string) {
  const file = join(folder, `redis-${role}.pass`);
  writeFileSync(file, `${passwordOf(role)}\n`, { mode: 0o600 });
  return { BATON_REDIS_USERNAME: role, BATON_REDIS_PASSWORD_FILE: file };
}

/** The address with a role's user, for a connection of the test's own. */
export function urlAs(role: RedisRole, url: string): string {
  return url.replace("://", `://${role}:${encodeURIComponent(passwordOf(role))}@`);
}

/** How long a server has to name its refusals, in ms. */
const ANSWER_MS = 2_000;

/**
 * Ends a server. A process of the test that lacks a right would otherwise only log errors.
 * @throws Error if the server has refused anything to the user of a role
 */
export async function endUnrefused({ port, process, dispose }: Pick<Broker, "port" | "process" | "dispose">) {
  const refused = process.alive ? await refusedBy(port) : [];
  await dispose();
  if (refused.length > 0) throw new Error(`Redis has refused users of roles: ${refused.join("; ")}`);
}

/** Nothing if the server is frozen. */
async function refusedBy(port: number): Promise<string[]> {
  const redis = new Redis({ port, protocol: 2, commandTimeout: ANSWER_MS, retryStrategy: () => null });
  redis.on("error", () => undefined);
  try {
    return await refusalsOf(redis);
  } catch {
    return [];
  } finally {
    redis.disconnect();
  }
}

/** What the server has refused the users of roles, as `user: command or key`, each once. */
export async function refusalsOf(redis: Redis): Promise<string[]> {
  const entries = (await redis.call("ACL", "LOG", "1000")) as string[][];
  const field = (entry: string[], name: string) => entry[entry.indexOf(name) + 1] ?? "";
  const texts = entries.map((entry) => `${field(entry, "username")}: ${field(entry, "object")}`);
  return [...new Set(texts)].filter((text) => redisRoles.some((role) => text.startsWith(`${role}:`))).sort();
}
