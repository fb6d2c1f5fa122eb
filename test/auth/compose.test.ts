/**
 * The keys of Docker Compose, read from its file as Compose reads it, because no engine is needed
 * for that: who is asked for a key, and which service sees which secret.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { authTerms } from "../../gateway/auth/settings.js";
import { gatewayConfig } from "../../gateway/config.js";
import { root } from "../support/fleet/root.js";
import { useFolder } from "./keyed.js";

interface Service {
  readonly environment?: Readonly<Record<string, string | number | null>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly command?: readonly string[];
  readonly networks?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
  readonly profiles?: readonly string[];
}

interface ComposeFile {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

/** Fills in the variables as Compose does: `${NAME:-default}`. */
function compose(env: Readonly<Record<string, string>> = {}): ComposeFile {
  const text = readFileSync(join(root, "docker-compose.yml"), "utf8");
  const filled = text.replaceAll(/\$\{(\w+)(?::-([^}]*))?\}/g, (_, name: string, usual = "") => env[name] || usual);
  return parse(filled, { merge: true }) as ComposeFile;
}

const folder = useFolder();
/** What the gateway of Compose makes of its settings. */
function terms(env: Readonly<Record<string, string>> = {}): unknown {
  // The image's own settings.
  const image = { BATON_HOST: "0.0.0.0", BATON_HTTP_PORT: "8000" };
  const settings = Object.entries(compose(env).services["gateway"]?.environment ?? {});
  // An empty value is no value. Other services have made the files.
  const given = { ...image, ...Object.fromEntries(settings.map(([name, value]) => [name, String(value ?? "")])) };
  const none = { BATON_REDIS_USERNAME: "", BATON_REDIS_PASSWORD_FILE: "", BATON_NATS_SIGNING_SEED: "" };
  const made = { ...none, BATON_AUTH_SECRET_FILE: join(folder, "pepper") };
  return authTerms(gatewayConfig({ ...given, ...made }));
}

describe("docker-compose.yml", () => {
  it("publishes on this machine alone, and asks for no key there", () => {
    const published = Object.values(compose().services).flatMap(({ ports = [] }) => ports);
    expect(published).toContain("127.0.0.1:8000:8000");
    expect(published.filter((port) => !port.startsWith("127.0.0.1:"))).toEqual([]);
    expect(terms()).toEqual({ kind: "off" });
  });

  it("asks for keys if it is told to, and wherever other machines get in", () => {
    expect(terms({ BATON_AUTH: "keys" })).toMatchObject({ kind: "asks" });
    expect(terms({ BATON_AUTH: "keys", BATON_PUBLISH: "0.0.0.0" })).toMatchObject({ kind: "asks" });
    expect(compose({ BATON_PUBLISH: "0.0.0.0" }).services["gateway"]?.ports).toEqual([
      "0.0.0.0:8000:8000",
      "0.0.0.0:8001:8001",
      "0.0.0.0:8002:8002",
    ]);
    expect(() => terms({ BATON_PUBLISH: "0.0.0.0" })).toThrow(
      "BATON_AUTH is not set and BATON_PUBLISH is 0.0.0.0: anybody who reaches this port could use the fleet.",
    );
    expect(() => terms({ BATON_PUBLISH: "0.0.0.0", BATON_AUTH: "off" })).toThrow("anybody who reaches this port");
  });

  it("keeps each secret in a volume that only the services mount that need it", () => {
    const { services, volumes } = compose();
    const mounts = (volume: string): Record<string, string> => {
      const found = Object.entries(services).flatMap(([name, { volumes: mounted = [] }]) =>
        mounted.filter((one) => one.startsWith(`${volume}:`)).map((one) => [name, one.split(":").slice(1).join(":")]),
      );
      return Object.fromEntries(found) as Record<string, string>;
    };
    expect(mounts("auth-keys")).toEqual({
      "auth-keys": "/keys/auth",
      keys: "/keys/auth:ro",
      gateway: "/keys/auth:ro",
    });
    const readers = ["gateway", "jobs", "worker", "worker-gpu", "worker-webgpu", "prometheus"];
    expect(mounts("metrics-keys")).toEqual({
      "auth-keys": "/keys/metrics",
      ...Object.fromEntries(readers.map((name) => [name, "/keys/metrics:ro"])),
    });
    const makers = (folder: string) => ({ "redis-keys": folder, "nats-keys": folder });
    expect(mounts("operator-key")).toEqual({ ...makers("/keys/operator"), keys: "/keys/operator" });
    expect(mounts("gateway-keys")).toEqual({ ...makers("/keys/gateway"), gateway: "/keys/gateway:ro" });
    expect(mounts("jobs-keys")).toEqual({ ...makers("/keys/jobs"), jobs: "/keys/jobs:ro" });
    const ofWorkers = ["worker", "worker-gpu", "worker-webgpu"].map((name) => [name, "/keys/worker:ro"]);
    expect(mounts("worker-keys")).toEqual({ ...makers("/keys/worker"), ...Object.fromEntries(ofWorkers) });
    expect(mounts("redis-users")).toEqual({ "redis-keys": "/keys/redis", redis: "/keys/redis:ro" });
    expect(mounts("nats-process-keys")).toEqual({ "nats-keys": "/keys/processes:ro" });
    expect(mounts("nats-gateway-keys")).toEqual({ "nats-keys": "/keys/gateways", gateway: "/keys/gateways:ro" });
    expect(mounts("nats-server-keys")).toEqual({ "nats-keys": "/keys/server", nats: "/etc/baton/accounts:ro" });
    expect(Object.keys(volumes)).toEqual(expect.arrayContaining(["auth-keys", "operator-key"]));
    // New volumes take their owner from the folders of the image.
    const dockerfile = readFileSync(join(root, "infra/Dockerfile"), "utf8");
    const made = /^ && mkdir (.*) && chown -R node:node \/keys$/m.exec(dockerfile)?.[1]?.split(" ") ?? [];
    const mounted = Object.values(services).flatMap(({ volumes: all = [] }) =>
      all.flatMap((one) => /:\/keys\/(\w+)/.exec(one)?.[1] ?? []),
    );
    expect(made.toSorted()).toEqual([...new Set(mounted)].sort());
  });

  it("gives no service a secret in its environment, and makes none in an image", () => {
    for (const { environment = {} } of Object.values(compose().services)) {
      for (const [name, value] of Object.entries(environment)) {
        if (/SECRET|PEPPER|TOKEN|PASSWORD|CREDS|SEED|OPERATOR/.test(name) && value !== null)
          expect(value).toMatch(/^\/keys\//);
      }
    }
    expect(readFileSync(join(root, "infra/Dockerfile"), "utf8")).not.toMatch(/auth\.pepper|operator\.key/);
  });

  it("lets each process in as its role alone, and no client without a password", () => {
    const { services } = compose();
    const ofRedis = Object.entries(services).flatMap(([name, { environment: env = {} }]) =>
      env["BATON_REDIS_URL"] === undefined
        ? []
        : [[name, env["BATON_REDIS_USERNAME"], env["BATON_REDIS_PASSWORD_FILE"]]],
    );
    const worker = ["worker", "/keys/worker/redis.pass"];
    expect(ofRedis).toEqual([
      ["keys", "operator", "/keys/operator/redis.pass"],
      ["gateway", "gateway", "/keys/gateway/redis.pass"],
      ["jobs", "jobs", "/keys/jobs/redis.pass"],
      ...["worker", "worker-gpu", "worker-webgpu"].map((name) => [name, ...worker]),
    ]);
    for (const role of ["gateway", "jobs", "worker"]) {
      expect(services[role]?.environment?.["BATON_NATS_CREDS"]).toBe(`/keys/${role}/nats.creds`);
    }
    expect(services["redis"]?.command?.join(" ")).toContain("--aclfile /keys/redis/users.acl");
    expect(Object.keys(services["redis"]?.depends_on ?? {})).toEqual(["redis-keys"]);
  });

  it("has the program `keys` for `docker compose run`, which waits for Redis and the pepper", () => {
    const { keys } = compose().services;
    expect(keys).toMatchObject({ profiles: ["keys"], networks: ["inside"] });
    expect(Object.keys(keys?.depends_on ?? {}).sort()).toEqual(["auth-keys", "redis"]);
  });
});
