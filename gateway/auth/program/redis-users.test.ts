import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { writeRedisUsers } from "./redis-users.js";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "baton-users-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const digestOf = (text: string) => createHash("sha256").update(text).digest("hex");

describe("the users of Redis", () => {
  it("have passwords that are made once, and digests of these in their file", () => {
    const file = join(folder, "users.acl");
    const passwordOf = (role: string) => readFileSync(join(folder, role, "redis.pass"), "utf8").trim();
    writeRedisUsers(join(folder, "*/redis.pass"), file);
    const users = readFileSync(file, "utf8");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(users.split("\n").map((line) => line.split(" ")[1])).toEqual([
      "gateway",
      "worker",
      "jobs",
      "operator",
      "health",
      "default",
      undefined,
    ]);
    for (const role of ["gateway", "worker", "jobs", "operator"]) {
      expect(users).toContain(`user ${role} on #${digestOf(passwordOf(role))} resetchannels -@all `);
      expect(users).not.toContain(passwordOf(role));
      expect(statSync(join(folder, role, "redis.pass")).mode & 0o777).toBe(0o600);
    }
    writeRedisUsers(join(folder, "*/redis.pass"), file);
    expect(readFileSync(file, "utf8")).toBe(users);
  });

  it("let a gateway change keys and tenants unless the setting says that it changes none", () => {
    const file = join(folder, "users.acl");
    const gateway = () => readFileSync(file, "utf8").split("\n")[0]?.split(" ");
    writeRedisUsers(join(folder, "redis-*.pass"), file);
    expect(gateway()).toContain("~{keys}:*");
    writeRedisUsers(join(folder, "redis-*.pass"), file, false);
    expect(gateway()?.filter((word) => word.includes("{keys}"))).toEqual(["%R~{keys}:*", "~{keys}:used"]);
  });

  it("keep the former password while it stands on the second line", () => {
    const file = join(folder, "users.acl");
    const password = join(folder, "redis-worker.pass");
    writeFileSync(password, "new\nformer\n", { mode: 0o600 });
    writeRedisUsers(join(folder, "redis-*.pass"), file);
    expect(readFileSync(file, "utf8")).toContain(`user worker on #${digestOf("new")} #${digestOf("former")} `);
  });
});
