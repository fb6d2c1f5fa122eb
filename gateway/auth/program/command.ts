/** Reads the command line of the program `keys`. */
import { parseArgs } from "node:util";
import { isTenant } from "#shared/contract/tenant.js";
import { globsFault } from "../owner/globs.js";
import { LONGEST_OVERLAP_MS, type KeyTerms } from "../keys.js";
import { limitsFault, type Limits } from "../owner/limits.js";
import { isScope, scopesFault, usualScopes, type Scope } from "../owner/scopes.js";

export type Command =
  | ({
      readonly verb: "create";
      /** The file for the key; undefined for Redis. */
      readonly file: string | undefined;
      readonly json: boolean;
    } & Omit<KeyTerms, "createdBy">)
  | { readonly verb: "first" }
  | { readonly verb: "list"; readonly tenant: string | undefined; readonly json: boolean }
  | { readonly verb: "show" | "revoke"; readonly id: string }
  | { readonly verb: "require"; readonly isRequired: boolean }
  | { readonly verb: "pepper"; readonly file: string }
  /** Makes the token with which Prometheus reads metrics. */
  | { readonly verb: "token"; readonly file: string }
  | {
      readonly verb: "acl";
      /** The file of each password, with a star for the role; undefined: beside the pepper. */
      readonly passwords: string | undefined;
      /** The file for the users; undefined for standard output. */
      readonly file: string | undefined;
    }
  | { readonly verb: "rotate"; readonly id: string; readonly overlapMs: number; readonly json: boolean };

/** A command line that the program does not take, in words for its user. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export const usage = [
  "keys create --tenant T [--name N] [--scopes a,b] [--models g,g] [--expires 30d]",
  "            [--rps 10] [--burst 20] [--tpm 60000] [--streams 8] [--readers 8]",
  "            [--file F] [--json]",
  "keys list [--tenant T] [--json]",
  "keys show ID",
  "keys rotate ID [--overlap 1d] [--json]",
  "keys revoke ID",
  "keys require on|off",
  "keys first",
  "keys pepper FILE",
  "keys token FILE",
  "keys acl [--passwords 'FOLDER/redis-*.pass'] [--file F]",
].join("\n");

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** @throws UsageError */
export function readCommand(args: readonly string[]): Command {
  const [verb, ...rest] = args;
  switch (verb) {
    case "create": {
      const options = ["tenant", "name", "scopes", "models", "expires", "file", ...Object.keys(limitOptions)];
      const { values } = read(rest, options, 0);
      return {
        verb,
        tenant: tenantOf(values["tenant"] ?? missing("--tenant")),
        name: values["name"] ?? "",
        scopes: scopesOf(values["scopes"]),
        models: modelsOf(values["models"]),
        limits: limitsOf(values),
        livesMs: values["expires"] === undefined ? undefined : durationOf(values["expires"], "--expires"),
        file: values["file"],
        json: values["json"] !== undefined,
      };
    }
    case "list": {
      const { values } = read(rest, ["tenant"], 0);
      const { tenant, json } = values;
      return { verb, tenant: tenant === undefined ? undefined : tenantOf(tenant), json: json !== undefined };
    }
    case "first":
      read(rest, [], 0);
      return { verb };
    case "show":
    case "revoke": {
      const { id } = read(rest, [], 1);
      return { verb, id };
    }
    case "rotate": {
      const { id, values } = read(rest, ["overlap"], 1);
      const overlapMs = values["overlap"] === undefined ? 0 : durationOf(values["overlap"], "--overlap");
      if (overlapMs > LONGEST_OVERLAP_MS) throw new UsageError("--overlap is at most 30d");
      return { verb, id, overlapMs, json: values["json"] !== undefined };
    }
    case "pepper":
    case "token": {
      const { id: file } = read(rest, [], 1);
      return { verb, file };
    }
    case "acl": {
      const { passwords, file } = read(rest, ["passwords", "file"], 0).values;
      if (passwords?.includes("*") === false) throw new UsageError("--passwords needs a star, for the role");
      return { verb, passwords, file };
    }
    case "require": {
      const { id } = read(rest, [], 1);
      if (id !== "on" && id !== "off") throw new UsageError("require takes `on` or `off`");
      return { verb, isRequired: id === "on" };
    }
    case undefined:
      throw new UsageError("name a command");
    default:
      throw new UsageError(`there is no command '${verb}'`);
  }
}

interface Read {
  readonly values: Readonly<Record<string, string | undefined>>;
  readonly id: string;
}

/** @param positionals how many the command takes: an id, or none */
function read(args: readonly string[], options: readonly string[], positionals: 0 | 1): Read {
  let parsed;
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        json: { type: "boolean" },
        ...Object.fromEntries(options.map((name) => [name, { type: "string" } as const])),
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  const [id = "", ...others] = parsed.positionals;
  if (positionals === 1 && id === "") throw new UsageError("name the id of a key");
  const surplus = positionals === 0 ? parsed.positionals : others;
  if (surplus.length > 0) throw new UsageError(`'${surplus.join(" ")}' is too much`);
  const values = Object.fromEntries(
    Object.entries(parsed.values).map(([name, value]) => [name, value === undefined ? undefined : String(value)]),
  );
  return { id, values };
}

function missing(option: string): never {
  throw new UsageError(`${option} is missing`);
}

function tenantOf(text: string): string {
  if (!isTenant(text)) throw new UsageError("a tenant is 1 to 64 of the characters A-Z, a-z, 0-9, _ and -");
  return text;
}

function scopesOf(text: string | undefined): readonly Scope[] {
  if (text === undefined) return usualScopes;
  const names = splitList(text);
  const fault = scopesFault(names);
  if (fault !== undefined) throw new UsageError(fault);
  return names.filter(isScope);
}

function modelsOf(text: string | undefined): readonly string[] {
  if (text === undefined) return ["*"];
  const globs = splitList(text);
  const fault = globsFault(globs);
  if (fault !== undefined) throw new UsageError(`--models: ${fault}`);
  return globs;
}

const limitOptions = {
  rps: "requests_per_second",
  burst: "burst",
  tpm: "tokens_per_minute",
  streams: "concurrent_streams",
  readers: "open_readers",
} as const;

function limitsOf(values: Readonly<Record<string, string | undefined>>): Limits {
  const options = Object.entries(limitOptions);
  const given = Object.fromEntries(
    options.flatMap(([option, limit]) => (values[option] === undefined ? [] : [[limit, Number(values[option])]])),
  );
  const fault = limitsFault("key", given);
  if (fault === undefined) return given;
  throw new UsageError(`${options.map(([option]) => `--${option}`).join(", ")}: ${fault}`);
}

function durationOf(text: string, option: string): number {
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * (units[unit] ?? Number.NaN);
  if (!Number.isSafeInteger(ms)) throw new UsageError(`${option} is a duration such as 30s, 15m, 12h or 30d`);
  return ms;
}

function splitList(text: string): string[] {
  return text.split(",").map((entry) => entry.trim());
}
