/**
 * The settings of `npm start` from the environment and the model repository, with checks before any
 * process starts. Gateway and workers check their own settings themselves.
 */
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { root } from "../setup/paths.mjs";
import { codeOf, Refusal } from "../setup/terminal.mjs";

/** @typedef {ReturnType<typeof startSettings>} Settings */

/** EX_CONFIG of sysexits.h: the settings are wrong, so another start would fail, too. */
export const EXIT_UNUSABLE = 78;

/** Not the servers' usual ports, because a system's own Redis may well have the usual port. */
const DEFAULT_PORTS = { redis: 16_379, nats: 14_222, natsWebSocket: 14_223 };

/**
 * @param {NodeJS.ProcessEnv} env
 * @throws {Refusal} if a setting is not a whole number within its bounds
 */
export function startSettings(env) {
  return {
    /** Other machines get in only if the user says so, and then need keys. */
    host: env["BATON_HOST"] || "127.0.0.1",
    httpPort: wholeNumber(env, "BATON_HTTP_PORT", 8000, 65_535),
    workers: wholeNumber(env, "BATON_WORKERS", 2, 64),
    /** Folders, separated by colons. */
    repository: env["BATON_MODEL_REPOSITORY"] || join(root, "infra/models"),
    /** `fixed`: the user asked for this port, so another port would be a surprise. */
    redis: {
      port: wholeNumber(env, "BATON_REDIS_PORT", DEFAULT_PORTS.redis, 65_535),
      fixed: Boolean(env["BATON_REDIS_PORT"]),
    },
    nats: {
      port: wholeNumber(env, "BATON_NATS_PORT", DEFAULT_PORTS.nats, 65_535),
      fixed: Boolean(env["BATON_NATS_PORT"]),
    },
    /** The port of NATS for browsers. */
    natsWebSocket: {
      port: wholeNumber(env, "BATON_NATS_WS_PORT", DEFAULT_PORTS.natsWebSocket, 65_535),
      fixed: Boolean(env["BATON_NATS_WS_PORT"]),
    },
  };
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {string} name
 * @param {number} fallback
 * @param {number} most
 */
function wholeNumber(env, name, fallback, most) {
  const text = env[name];
  if (text === undefined || text === "") return fallback;
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw new Refusal(`${name} is "${text}", and must be a whole number from 1 to ${most}.`);
}

/**
 * Variables `BATON_…` that no process of Baton reads, in a sentence. Needs a build.
 *
 * @param {NodeJS.ProcessEnv} env
 * @throws {Refusal} if there are such variables, and BATON_STRICT_SETTINGS is true
 */
export async function misspeltSettings(env) {
  // The import name is computed, because type checks run before the files of the build exist.
  const built = new URL("../../dist/shared/unknown-settings.js", import.meta.url).href;
  /** @type {typeof import("../../shared/unknown-settings.js")} */
  const { describeUnknown, isStrict, unknownSettings } = await import(built);
  const misspelt = describeUnknown(unknownSettings(env));
  if (misspelt !== undefined && isStrict(env)) throw new Refusal(`settings: ${misspelt}`, EXIT_UNUSABLE);
  return misspelt;
}

/**
 * The names of the models to serve, sorted. A wanted model that no folder has is in the list, as
 * long as another wanted model exists.
 *
 * @param {string} repository folders, separated by colons
 * @param {string | undefined} only the wanted names, separated by commas; all if undefined
 * @throws {Refusal} if no wanted model exists
 */
export function listModels(repository, only) {
  const names = repository
    .split(":")
    .filter((folder) => folder !== "")
    .flatMap((folder) => subfolders(resolve(root, folder)));
  if (names.length === 0)
    throw new Refusal(
      `There is no model in ${repository} (BATON_MODEL_REPOSITORY): put one there, or unset it for the demo models.`,
    );
  const wanted = only ? only.split(",").map((name) => name.trim()) : names;
  if (!wanted.some((name) => names.includes(name)))
    throw new Refusal(
      `None of ${wanted.join(", ")} (BATON_MODELS) is in ${repository} (BATON_MODEL_REPOSITORY): it has ${names.join(", ")}.`,
    );
  return [...new Set(wanted)].sort((a, b) => (a < b ? -1 : 1));
}

/** @param {string} folder */
function subfolders(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith("."))
      .map((entry) => entry.name);
  } catch (error) {
    throw new Refusal(
      `The model repository ${folder} cannot be read (${codeOf(error)}): set BATON_MODEL_REPOSITORY to a folder of models.`,
    );
  }
}
