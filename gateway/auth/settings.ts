/**
 * The settings that say who may ask. A gateway that other machines reach does not start without
 * them, so nobody opens a fleet to the world by forgetting a setting.
 */
import { z } from "zod";
import { UnusableError } from "#shared/exit.js";
import { isLoopback, listenerSettings, parseOpen, type OpenGroup } from "#shared/listening/settings.js";
import { parseLimits, type TenantLimits } from "./owner/limits.js";
import { readPeppers } from "./pepper.js";
import { parseRestrictedApis, tritonApis } from "./restricted-apis.js";
import { tokenSettings, tokenTerms, type TokenTerms } from "./tokens/settings.js";

export const authSettings = {
  BATON_AUTH: z
    .string()
    .optional()
    .refine((text) => text === undefined || waysIn(text) !== undefined, "must be `off`, `keys`, `jwt` or `keys,jwt`")
    .describe(
      "Who may ask. `off`: every client. `keys`: clients with an API key (`npm run keys`). `jwt`: clients with a token " +
        "of an identity provider. `keys,jwt`: both. Unset: `off` if the gateway listens on a loopback address; " +
        "otherwise the gateway does not start.",
    ),
  BATON_ADMIN_API: z
    .enum(["on", "off"])
    .default("on")
    .describe(
      "`off`: clients of this gateway cannot make, change or remove API keys and tenants, and get 501. The program " +
        "`npm run keys` still can. `npm run keys -- acl` with `off` makes users of Redis by which gateways cannot " +
        "change them either.",
    ),
  BATON_AUTH_SECRET_FILE: z
    .string()
    .optional()
    .describe(
      "The path of a file with the pepper: 32 bytes in base64, under which Redis holds API keys. A second line is " +
        "the former pepper, which is still good. `BATON_AUTH=keys` needs it; with `jwt` alone, it is for tickets.",
    ),
  BATON_KEYS_FILE: z
    .string()
    .optional()
    .describe(
      "The path of a file with API keys and tenants, the same on every gateway (`npm run keys -- create --file`). " +
        "Gateways look at the file once a second.",
    ),
  BATON_KEYS_STORE: z
    .enum(["redis", "file", "both"])
    .optional()
    .describe(
      "Where API keys are: in `redis`, in the `file` of `BATON_KEYS_FILE`, or in `both`. Unset: `both` if there is a " +
        "file, otherwise `redis`.",
    ),
  BATON_CALLS_PER_SECOND: z.coerce
    .number()
    .positive()
    .max(100_000)
    .default(200)
    .describe(
      "How many calls a second of an API key a gateway answers that admit nothing: status, lists, administration. " +
        "Further calls get 429.",
    ),
  BATON_CALLS_BURST: z.coerce
    .number()
    .int()
    .positive()
    .max(1_000_000)
    .default(400)
    .describe("How many of these calls a key may make at once after a pause."),
  BATON_AUTH_CACHE_MS: z.coerce
    .number()
    .int()
    .min(500)
    .max(5_000)
    .default(3_000)
    .describe("How long, in ms, a gateway may not notice a change of an API key or a tenant."),
  BATON_AUTH_GRACE_MS: z.coerce
    .number()
    .int()
    .min(0)
    .default(60_000)
    .describe(
      "How long, in ms, a gateway lets known API keys in while Redis is away. After that clients get 503. 0: not at all.",
    ),
  BATON_RESTRICTED_APIS_FILE: z
    .string()
    .optional()
    .describe("The path of the file whose first line is `BATON_RESTRICTED_APIS`, in place of that setting."),
  BATON_RESTRICTED_APIS: z
    .string()
    .optional()
    .transform((text, context) => {
      const restricted = text === undefined ? undefined : parseRestrictedApis(text);
      if (typeof restricted !== "string") return restricted;
      context.addIssue({ code: "custom", message: restricted });
      return z.NEVER;
    })
    .describe(
      "The APIs that ask for a header of their own, beside an API key: `<apis>:<header>=<value>`, with commas between " +
        `APIs and \`;\` between such groups. The APIs are ${tritonApis.map((api) => `\`${api}\``).join(", ")}. See ` +
        "[restricted APIs](keys.md#restricted-apis).",
    ),
  ...tokenSettings,
};

const authConfig = z.object({
  ...listenerSettings,
  ...authSettings,
  BATON_HOST: z.string(),
  BATON_TENANT_HEADER: z.string(),
  BATON_TRUSTED_PROXIES: z.string(),
  BATON_DEFAULT_LIMITS: z.string(),
});

export type AuthConfig = z.infer<typeof authConfig>;

/** How a gateway lets requests in. */
export type AuthTerms =
  | { readonly kind: "off" }
  | {
      readonly kind: "asks";
      readonly open: ReadonlySet<OpenGroup>;
      /** The secrets of keys and tickets; none if only tokens count and there are no tickets. */
      readonly peppers: readonly Buffer[];
      /** The limits of tenants that have none themselves. */
      readonly usualLimits: TenantLimits;
      /** Undefined if no API key counts. */
      readonly keys: KeyTerms | undefined;
      /** Undefined if no token counts. */
      readonly tokens: TokenTerms | undefined;
    };

export interface KeyTerms {
  /** The file of keys; absent if all keys are in Redis. */
  readonly file?: KeysFilePlace | undefined;
}

interface KeysFilePlace {
  readonly path: string;
  /** Whether no key is in Redis. */
  readonly isAlone: boolean;
}

/** @throws UnusableError if the settings leave the fleet open by mistake, or do not fit */
export function authTerms(config: AuthConfig): AuthTerms {
  const { BATON_AUTH: auth, BATON_HOST: host, BATON_PUBLISH: published, BATON_INSECURE: insecure } = config;
  const address = published ?? host;
  const ways = waysIn(auth ?? "off") ?? [];
  if (ways.length === 0) {
    if (config.BATON_DEFAULT_LIMITS !== "{}") throw new UnusableError("BATON_DEFAULT_LIMITS needs BATON_AUTH.");
    if (isLoopback(address)) return { kind: "off" };
    if (auth === "off" && insecure !== undefined) {
      if (config.BATON_TENANT_HEADER === "" || config.BATON_TRUSTED_PROXIES !== "") return { kind: "off" };
      throw new UnusableError(
        "BATON_TENANT_HEADER needs BATON_TRUSTED_PROXIES, because clients that reach this port could write the header, too.",
      );
    }
    throw new UnusableError(openToAll(auth, published === undefined ? "BATON_HOST" : "BATON_PUBLISH", address));
  }
  if (config.BATON_TENANT_HEADER !== "") {
    throw new UnusableError(`BATON_TENANT_HEADER and BATON_AUTH=${auth} both say whose a request is: set one of them.`);
  }
  const file = config.BATON_AUTH_SECRET_FILE;
  if (file === undefined && ways.includes("keys"))
    throw new UnusableError("BATON_AUTH=keys needs BATON_AUTH_SECRET_FILE, the file with the pepper.");
  return {
    kind: "asks",
    open: new Set(parseOpen(config.BATON_AUTH_OPEN)),
    peppers: file === undefined ? [] : readPeppers(file),
    usualLimits: parseLimits(config.BATON_DEFAULT_LIMITS) ?? {},
    keys: ways.includes("keys") ? { file: keysFile(config) } : undefined,
    tokens: ways.includes("jwt") ? tokenTerms(config) : undefined,
  };
}

type WayIn = "keys" | "jwt";

/** @returns none for `off`; undefined for words that are no ways in, or come twice */
function waysIn(text: string): WayIn[] | undefined {
  if (text === "off") return [];
  const words = text.split(",").map((word) => word.trim());
  const areWays = words.every((word) => word === "keys" || word === "jwt");
  return areWays && new Set(words).size === words.length ? words : undefined;
}

/** @throws UnusableError if the settings do not fit */
function keysFile({ BATON_KEYS_FILE: path, BATON_KEYS_STORE: store }: AuthConfig): KeysFilePlace | undefined {
  if (path === undefined) {
    if (store === undefined || store === "redis") return undefined;
    throw new UnusableError(`BATON_KEYS_STORE=${store} needs BATON_KEYS_FILE, the file with the keys.`);
  }
  if (store === "redis") {
    throw new UnusableError("BATON_KEYS_STORE is redis, so BATON_KEYS_FILE would do nothing: unset one of them.");
  }
  return { path, isAlone: store === "file" };
}

function openToAll(auth: string | undefined, setting: string, address: string): string {
  return (
    `BATON_AUTH is ${auth ?? "not set"} and ${setting} is ${address}: anybody who reaches this port could use the fleet. ` +
    "Set BATON_AUTH=keys and make a key with 'npm run keys -- create --tenant NAME', listen on 127.0.0.1, or accept " +
    "the risk with BATON_AUTH=off and BATON_INSECURE=1."
  );
}
