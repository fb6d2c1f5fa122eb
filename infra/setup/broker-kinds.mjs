/** The two servers that the fleet needs and does not bring: their names, floors and packages, in one table. A manager that is not named lacks the package. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./paths.mjs";

export const brokerKinds = {
  redis: {
    title: "Redis (or Valkey)",
    url: "BATON_REDIS_URL",
    programs: ["redis-server", "valkey-server"],
    floor: "7.0",
    package: "redis-server",
    brew: "redis",
    dnf: "valkey",
    pacman: "valkey",
  },
  nats: {
    title: "NATS",
    url: "BATON_NATS_URL",
    programs: ["nats-server"],
    floor: "2.9", // Debian 12's
    package: "nats-server",
    brew: "nats-server",
    pacman: "nats-server",
  },
};

/** The image that docker-compose.yml names, so that the version is pinned in one place. */
export function brokerImage(name) {
  const compose = readFileSync(join(root, "docker-compose.yml"), "utf8");
  return new RegExp(`^ +image: (${name}:\\S+)`, "m").exec(compose)?.[1];
}

export function atLeast(version, floor) {
  const [have, need] = [version, floor].map((text) => text.split(".").map(Number));
  for (const [i, part] of need.entries()) {
    if ((have[i] ?? 0) !== part) return (have[i] ?? 0) > part;
  }
  return true;
}
