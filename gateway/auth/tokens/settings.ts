/** The settings of tokens from an identity provider. */
import { z } from "zod";
import { UnusableError } from "#shared/exit.js";

/** Signatures that a public key verifies. A shared secret would let each gateway make tokens. */
const algorithms = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
] as const;

export const tokenSettings = {
  BATON_JWT_JWKS: z
    .string()
    .optional()
    .describe(
      "The public keys of the issuer of tokens (a JSON Web Key Set): an `https:` URL, an `http:` URL on a loopback " +
        "address, or the path of a file. Gateways read it anew every ten minutes, and for an unknown `kid`.",
    ),
  BATON_JWT_ISSUER: z.string().optional().describe("The claim `iss` of every good token. `BATON_AUTH=jwt` needs it."),
  BATON_JWT_AUDIENCE: z
    .string()
    .optional()
    .describe("A value that the claim `aud` of every good token has. `BATON_AUTH=jwt` needs it."),
  BATON_JWT_TENANT_CLAIM: claim("tenant", "names the tenant"),
  BATON_JWT_SCOPE_CLAIM: claim("scope", "has the scopes, as a text with blanks or as a list"),
  BATON_JWT_MODELS_CLAIM: claim("models", "has globs of models, as a text with blanks or as a list; absent: all"),
  BATON_JWT_ALGORITHMS: z
    .string()
    .default("RS256,ES256,EdDSA")
    .refine((text) => algorithmsIn(text) !== undefined, `must be of ${algorithms.join(", ")}, comma-separated`)
    .describe("The algorithms of signatures that count, comma-separated."),
};

const tokenConfig = z.object(tokenSettings);
type TokenConfig = z.infer<typeof tokenConfig>;

/** What makes a token good, and what its claims mean. */
export interface TokenTerms {
  readonly jwks: JwksPlace;
  readonly issuer: string;
  readonly audience: string;
  readonly algorithms: readonly string[];
  readonly claims: ClaimNames;
}

/** Paths of claims, with dots. */
export interface ClaimNames {
  readonly tenant: string;
  readonly scope: string;
  readonly models: string;
}

export type JwksPlace = { readonly url: URL } | { readonly path: string };

/** @throws UnusableError if a setting is missing, or the keys would come over an open line */
export function tokenTerms(config: TokenConfig): TokenTerms {
  return {
    jwks: placeOf(needed(config, "BATON_JWT_JWKS")),
    issuer: needed(config, "BATON_JWT_ISSUER"),
    audience: needed(config, "BATON_JWT_AUDIENCE"),
    algorithms: algorithmsIn(config.BATON_JWT_ALGORITHMS) ?? [],
    claims: {
      tenant: config.BATON_JWT_TENANT_CLAIM,
      scope: config.BATON_JWT_SCOPE_CLAIM,
      models: config.BATON_JWT_MODELS_CLAIM,
    },
  };
}

function claim(usual: string, does: string) {
  return z
    .string()
    .min(1)
    .default(usual)
    .describe(`The claim of a token that ${does}. Dots lead into objects, as in \`realm_access.roles\`.`);
}

function needed(config: TokenConfig, name: "BATON_JWT_JWKS" | "BATON_JWT_ISSUER" | "BATON_JWT_AUDIENCE"): string {
  const value = config[name];
  if (value === undefined) throw new UnusableError(`BATON_AUTH=jwt needs ${name}.`);
  return value;
}

function placeOf(text: string): JwksPlace {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return { path: text };
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLocal = url !== undefined && /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(url.hostname);
  // The URL is part of errors, which logs show.
  if (url !== undefined && url.username + url.password !== "") {
    throw new UnusableError("BATON_JWT_JWKS must not contain a user name or a password.");
  }
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLocal)) return { url };
  throw new UnusableError(
    "BATON_JWT_JWKS must be an https: URL, an http: URL on a loopback address, or the path of a file.",
  );
}

/** @returns undefined if one is no algorithm of a public key */
function algorithmsIn(text: string): string[] | undefined {
  const names = text.split(",").map((name) => name.trim());
  return names.every((name) => (algorithms as readonly string[]).includes(name)) ? names : undefined;
}
