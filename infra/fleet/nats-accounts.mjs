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
import { LOCAL } from "./ports.mjs";

/**
 * @typedef {object} NatsEnv settings for the fleet
 * @property {NodeJS.ProcessEnv} all
 * @property {NodeJS.ProcessEnv} gateway
 */

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
 * @returns {Promise<NatsEnv>}
 * @throws {Refusal} if the program fails to make the keys
 */
export async function prepareNats({ inContainer, home, port, webSocketPort, origins }) {
  const data = join(home, "nats");
  const keys = join(home, "nats-keys");
  for (const folder of [data, keys]) needWritable(folder);
  const program = join(root, "dist/gateway/subscriptions/nats-accounts.js");
  const { code, output } = await runCommand(process.execPath, [program, data, keys, keys], { timeoutMs: KEYS_MS });
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
  return {
    all: { BATON_NATS_CREDS: join(keys, "baton.creds") },
    gateway: {
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
  const own = [`http://localhost:${httpPort}`, `http://${LOCAL}:${httpPort}`];
  return named.includes("*") ? [] : [...own, ...named.filter((origin) => origin.includes("://"))];
}
