import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { makeCertificates } from "../test/support/certificates.js";
import { redisPlace } from "./broker-url.js";
import { parseSettings, sharedSettings } from "./settings.js";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "baton-settings-"));
  file = join(folder, "worker.pass");
  writeFileSync(file, "a secret\n", { mode: 0o600 });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const urlOf = (env: NodeJS.ProcessEnv) => parseSettings(sharedSettings, env).BATON_REDIS_URL;

describe("the user of Redis", () => {
  it("comes from a file beside the address", () => {
    const env = { BATON_REDIS_USERNAME: "worker", BATON_REDIS_PASSWORD_FILE: file };
    expect(urlOf(env)).toBe("redis://worker:a%20secret@127.0.0.1:6379");
    expect(urlOf({ ...env, BATON_REDIS_URL: "redis+cluster://a,b" })).toBe("redis+cluster://worker:a%20secret@a,b");
    expect(urlOf({ ...env, BATON_REDIS_USERNAME: "" })).toBe("redis://:a%20secret@127.0.0.1:6379");
    expect(urlOf({ BATON_REDIS_URL: "redis://worker:b@a" })).toBe("redis://worker:b@a");
  });

  it("stands in one place", () => {
    const env = { BATON_REDIS_URL: "redis://:hunter2@a", BATON_REDIS_PASSWORD_FILE: file };
    const refused = "settings: BATON_REDIS_URL: must not hold a user or a password beside BATON_REDIS_PASSWORD_FILE";
    expect(() => urlOf(env)).toThrow(new Error(refused));
    expect(() => urlOf({ BATON_REDIS_USERNAME: "worker" })).toThrow("BATON_REDIS_USERNAME: needs BATON_REDIS_PASSWORD");
  });

  it("needs a file with a password that only its owner may write", () => {
    const env = { BATON_REDIS_PASSWORD_FILE: file };
    chmodSync(file, 0o620);
    expect(() => urlOf(env)).toThrow("BATON_REDIS_PASSWORD_FILE names a file that other users may write");
    chmodSync(file, 0o600);
    writeFileSync(file, "\n");
    expect(() => urlOf(env)).toThrow("BATON_REDIS_PASSWORD_FILE names an empty file");
    rmSync(file);
    expect(() => urlOf({ ...env, BATON_LEASE_MS: "5" })).toThrow(
      /^settings: BATON_LEASE_MS: .*; BATON_REDIS_PASSWORD_FILE cannot be read: ENOENT/,
    );
  });
});

describe("files for TLS", () => {
  const settings = (env: NodeJS.ProcessEnv) => () => parseSettings(sharedSettings, env);

  it("go with the address of Redis, beside its user", async () => {
    const { ca, client } = await makeCertificates(folder);
    const env = { BATON_REDIS_CA_FILE: ca, BATON_REDIS_CERT_FILE: client.cert, BATON_REDIS_KEY_FILE: client.key };
    const url = urlOf({ ...env, BATON_REDIS_URL: "rediss://cache", BATON_REDIS_PASSWORD_FILE: file });
    expect(redisPlace(url)).toEqual({
      kind: "server",
      url: "rediss://:a%20secret@cache",
      tls: { ca, cert: client.cert, key: client.key },
    });
  });

  it("need an address for TLS, a pair of files, and certificates in them", () => {
    expect(settings({ BATON_REDIS_CA_FILE: "ca" })).toThrow(
      "BATON_REDIS_CA_FILE: needs a BATON_REDIS_URL that begins with rediss",
    );
    expect(settings({ BATON_NATS_KEY_FILE: "key", BATON_NATS_URL: "nats://a" })).toThrow(
      "BATON_NATS_KEY_FILE: needs a BATON_NATS_URL with tls://",
    );
    const nats = { BATON_NATS_URL: "tls://a" };
    expect(settings({ ...nats, BATON_NATS_KEY_FILE: "key" })).toThrow("BATON_NATS_KEY_FILE needs BATON_NATS_CERT_FILE");
    expect(settings({ ...nats, BATON_NATS_CA_FILE: file })).toThrow(
      "BATON_NATS_CA_FILE names a file without a certificate",
    );
    const redis = { BATON_REDIS_URL: "rediss://a", BATON_REDIS_CA_FILE: join(folder, "none") };
    expect(settings(redis)).toThrow("BATON_REDIS_CA_FILE cannot be read: ENOENT");
  });
});

describe("a secret in a file", () => {
  const schema = sharedSettings.extend({ BATON_X: z.string().min(3).optional(), BATON_X_FILE: z.string().optional() });
  const secretOf = (env: NodeJS.ProcessEnv) => parseSettings(schema, env).BATON_X;

  it("is the file's first line", () => {
    expect(secretOf({ BATON_X_FILE: file })).toBe("a secret");
    expect(secretOf({ BATON_X: "another" })).toBe("another");
    expect(secretOf({ BATON_X: "another", BATON_X_FILE: "" })).toBe("another");
  });

  it("stands in one place, in a file that only its owner may write", () => {
    expect(() => secretOf({ BATON_X: "another", BATON_X_FILE: file })).toThrow(
      "BATON_X_FILE: must not be set beside BATON_X",
    );
    chmodSync(file, 0o602);
    expect(() => secretOf({ BATON_X_FILE: file })).toThrow("BATON_X_FILE names a file that other users may write");
    chmodSync(file, 0o600);
    writeFileSync(file, "ab\n");
    expect(() => secretOf({ BATON_X_FILE: file })).toThrow(/^settings: BATON_X: /);
  });
});
