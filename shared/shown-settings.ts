/**
 * The settings with which a process runs, for people. No secret is among the texts: a setting that
 * can come as a file, and an address with credentials, only say that they are set.
 */
import { safeParse, type z } from "zod";

export interface ShownSetting {
  readonly name: string;
  /** In force, as text; `set` for a secret; null if there is none. */
  readonly value: string | null;
  /** In force if nobody gives one; null if there is none. */
  readonly default: string | null;
  /** Whether the environment gives it. */
  readonly given: boolean;
}

const SET = "set";
/** Secrets that are settings themselves, beside those that may also come as a file. */
const secrets: ReadonlySet<string> = new Set(["BATON_NATS_SIGNING_SEED"]);
/** An address with a user, or with parameters, which may hold a password. */
const mayHoldCredentials = /:\/\/[^/]*@|:\/\/.*\?|^\/.*\?/;

/** @param env the environment that the process has parsed without an error */
export function showSettings(schema: z.ZodObject, env: NodeJS.ProcessEnv): ShownSetting[] {
  const { shape } = schema;
  return Object.entries(shape).map(([name, setting]) => {
    const text = env[name] === "" ? undefined : env[name];
    const usual = textOf(safeParse(setting, undefined).data);
    return {
      name,
      value: text === undefined ? usual : shown(name, text, shape),
      default: usual,
      given: text !== undefined,
    };
  });
}

function shown(name: string, text: string, shape: z.ZodRawShape): string {
  return secrets.has(name) || `${name}_FILE` in shape || mayHoldCredentials.test(text) ? SET : text;
}

function textOf(value: unknown): string | null {
  if (value === undefined || value === "") return null;
  return typeof value === "string" ? value : JSON.stringify(value);
}
