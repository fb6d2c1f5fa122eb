/**
 * What the private NATS is started with: accounts, so that it lets in our own processes and those
 * whom a gateway has given credentials, and a port for browsers. The keys are made at the first
 * start, by the program that Docker Compose runs for it, too.
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

/** Of the private NATS, in its folder. */
export const NATS_CONFIG = "nats.conf";
/** Where its container has infra/nats.conf, and its own folder. */
export const IN_CONTAINER = { common: "/etc/baton.conf", data: "/data" };
const KEYS_MS = 30_000;

/**
 * @param {object} options
 * @param {boolean} options.inContainer
 * @param {string} options.home
 * @param {number} options.port where clients reach it
 * @param {number} options.webSocketPort where browsers do
 * @param {readonly string[]} options.origins whose pages may connect
 * @returns {Promise<NatsEnv>}
 * @throws {Refusal} if the keys cannot be made
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
 * Whose pages may connect: those that the gateway itself has, and those that the user has named.
 * NATS wants each by its name.
 *
 * @param {NodeJS.ProcessEnv} env
 * @param {number} httpPort
 */
export function natsOrigins(env, httpPort) {
  const named = (env["BATON_ALLOWED_ORIGINS"] ?? "").split(",").map((origin) => origin.trim());
  const own = [`http://localhost:${httpPort}`, `http://${LOCAL}:${httpPort}`];
  return named.includes("*") ? [] : [...own, ...named.filter((origin) => origin.includes("://"))];
}
