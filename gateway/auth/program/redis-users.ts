/**
 * The users of Redis, one for each role: makes their passwords, and the file of users for Redis,
 * which holds a digest of each password.
 */
import { createHash } from "node:crypto";
import { renameSync, writeFileSync } from "node:fs";
import { aclFile, redisRoles, type RedisRole } from "#shared/redis/roles.js";
import { makeSecret, readSecretLines } from "#shared/secret-file.js";

/**
 * Makes the passwords that are not there yet. A file of a password with two lines has the former
 * password on the second line, which stays good until the line goes.
 * @param passwords the path of each role's password, with a star for the role
 * @param file for the users; undefined for standard output
 * @param changesOwners whether gateways change keys and tenants
 * @throws UnusableError if a password cannot be read
 */
export function writeRedisUsers(passwords: string, file: string | undefined, changesOwners = true): void {
  const fileOf = (role: RedisRole) => passwords.replaceAll("*", role);
  for (const role of redisRoles) makeSecret(fileOf(role));
  const users = aclFile((role) => readSecretLines(fileOf(role), fileOf(role)).map(digestOf), changesOwners);
  if (file === undefined) return void process.stdout.write(users);
  writeFileSync(`${file}.new`, users, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

function digestOf(password: string): string {
  return createHash("sha256").update(password).digest("hex");
}
