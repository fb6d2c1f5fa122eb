/**
 * The configuration of the private NATS: accounts for our own processes and for readers with
 * credentials from a gateway, and a port for browsers. The first start makes the keys, with the
 * program that Docker Compose runs, too.
 */
import { writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { needWritable, root } from "../setup/paths.mjs";
import { lastLines, runCommand } from "../setup/command.mjs";
import { Refusal } from "../setup/terminal.mjs";
import { ownScheme } from "./own-gateway.mjs";
import { LOCAL } from "./ports.mjs";

/** The name of the private NATS's configuration, in its folder. */
export const NATS_CONFIG = "nats.conf";
/** The paths of infra/nats.conf and of the data folder in the container. */
export const IN_CONTAINER = { common: "/etc/baton.conf", data: "/data" };
const KEYS_MS = 30_000;

/**
 * @param {object} options
 * @param {boolean} options.inContainer
 * @param {string} options.home
 * @param {number} options.port for clients
 * @param {number} options.webSocketPort for browsers
 * @param {readonly string[]} options.origins whose pages may connect
 * @returns {Promise<import("./processes.mjs").RoleEnv>}
 * @throws {Refusal} if the program fails to make the keys
 */
export async function prepareNats({ inContainer, home, port, webSocketPort, origins }) {
  const data = join(home, "nats");
  const keys = join(home, "secrets");
  for (const folder of [data, keys]) needWritable(folder);
  const program = join(root, "dist/gateway/subscriptions/nats-accounts.js");
  const creds = join(keys, "nats/*.creds");
  // Earlier versions kept the credentials there.
  const args = [program, data, creds, keys, join(home, "nats-keys")];
  const { code, output } = await runCommand(process.execPath, args, { timeoutMs: KEYS_MS });
  if (code !== 0) throw new Refusal(`The keys of NATS could not be made:\n${lastLines(output, 5)}`);
  const common = inContainer
    ? relative(IN_CONTAINER.data, IN_CONTAINER.common)
    : relative(data, join(root, "infra/nats.conf"));
  const lines = [
    `include ${JSON.stringify(common)}`,
    'include "accounts.conf"',
    "websocket {",
    `  host: "${inContainer ? "0.0.0.0" : LOCAL}"`,
    `  port: ${webSocketPort}`,
    "  # It is reached from this machine alone.",
    "  no_tls: true",
    `  allowed_origins: ${JSON.stringify(origins)}`,
    "}",
  ];
  writeFileSync(join(data, NATS_CONFIG), `${lines.join("\n")}\n`);
  const urls = `nats://${LOCAL}:${port},ws://${LOCAL}:${webSocketPort}`;
  const envOf = (/** @type {string} */ role) => ({ BATON_NATS_CREDS: creds.replace("*", role) });
  return {
    jobs: envOf("jobs"),
    worker: envOf("worker"),
    gateway: {
      ...envOf("gateway"),
      BATON_NATS_SIGNING_SEED: join(keys, "readers.seed"),
      BATON_NATS_PUBLIC_URLS: process.env["BATON_NATS_PUBLIC_URLS"] || urls,
    },
  };
}

/**
 * The origins whose pages may connect: the gateway's own, and the origins that the user has named.
 * NATS needs each by name.
 *
 * @param {NodeJS.ProcessEnv} env
 * @param {number} httpPort
 */
export function natsOrigins(env, httpPort) {
  const named = (env["BATON_ALLOWED_ORIGINS"] ?? "").split(",").map((origin) => origin.trim());
  const scheme = ownScheme(env);
  const own = [`${scheme}://localhost:${httpPort}`, `${scheme}://${LOCAL}:${httpPort}`];
  return named.includes("*") ? [] : [...own, ...named.filter((origin) => origin.includes("://"))];
}
