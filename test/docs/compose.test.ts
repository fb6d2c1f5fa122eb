import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../support/fleet/root.js";

interface Service {
  readonly build?: { readonly target: string };
  readonly environment?: Readonly<Record<string, string>>;
  readonly deploy?: { readonly resources: { readonly reservations: { readonly devices: readonly unknown[] } } };
  readonly devices?: readonly { readonly source: string }[];
}

const there = spawnSync("docker", ["compose", "version"]).status === 0;
const skipped = there ? "" : " (skipped: needs docker compose)";

/** Reads the file and fills in settings and anchors. This needs no engine. */
function services(...profiles: readonly string[]): Readonly<Record<string, Service>> {
  const chosen = profiles.flatMap((profile) => ["--profile", profile]);
  const printed = execFileSync("docker", ["compose", ...chosen, "config", "--format", "json"], {
    cwd: root,
    env: { ...process.env, BATON_PROVIDERS: "" },
    encoding: "utf8",
  });
  return (JSON.parse(printed) as { services: Readonly<Record<string, Service>> }).services;
}

describe.skipIf(!there)(`docker-compose.yml${skipped}`, () => {
  it("starts no worker on a GPU unless it is asked for", () => {
    expect(Object.keys(services()).sort()).toEqual([
      "auth-keys",
      "gateway",
      "jobs",
      "nats",
      "nats-keys",
      "redis",
      "redis-keys",
      "worker",
    ]);
  });

  it("has workers for both kinds of cards, with the settings of the others", () => {
    const { worker, "worker-gpu": gpu, "worker-webgpu": webgpu } = services("gpu", "webgpu");
    expect(gpu?.environment).toEqual({ ...worker?.environment, BATON_PROVIDERS: "cuda" });
    expect(webgpu?.environment).toEqual({ ...worker?.environment, BATON_PROVIDERS: "webgpu" });
    expect(gpu?.deploy?.resources.reservations.devices).toEqual([
      { driver: "nvidia", count: 1, capabilities: ["gpu"] },
    ]);
    expect(JSON.stringify(webgpu?.devices)).toContain("/dev/dri");
  });

  it("builds stages that the Dockerfile has", () => {
    const stages = readFileSync(join(root, "infra/Dockerfile"), "utf8").matchAll(/^FROM \S+ AS (\S+)$/gm);
    const named = new Set([...stages].map(([, name]) => name));
    for (const { build } of Object.values(services("gpu", "webgpu"))) {
      if (build !== undefined) expect(named).toContain(build.target);
    }
  });
});
