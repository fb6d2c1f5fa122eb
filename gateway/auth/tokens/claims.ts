/** What the claims of a verified token say. All functions are pure. */
import { isTenant } from "#shared/contract/tenant.js";
import { globsFault } from "../owner/globs.js";
import { isScope, type Scope } from "../owner/scopes.js";
import type { ClaimNames } from "./settings.js";

export type Claims = Readonly<Record<string, unknown>>;

export interface ClaimedOwner {
  readonly tenant: string;
  readonly scopes: ReadonlySet<Scope>;
  readonly models: readonly string[];
}

/** A claim that does not say what it should, by its name. */
export interface ClaimFault {
  readonly claim: string;
  readonly isMissing: boolean;
}

const everyModel = ["*"];

/** @returns the owner; or the first claim that is wrong, whose value no message repeats */
export function ownerIn(claims: Claims, names: ClaimNames): ClaimedOwner | ClaimFault {
  const tenant = claimAt(claims, names.tenant);
  if (typeof tenant !== "string" || !isTenant(tenant)) return { claim: names.tenant, isMissing: tenant === undefined };
  const scopes = wordsOf(claimAt(claims, names.scope) ?? []);
  if (scopes === undefined) return { claim: names.scope, isMissing: false };
  const models = wordsOf(modelsAt(claims, names.models));
  if (models === undefined || globsFault(models) !== undefined) return { claim: names.models, isMissing: false };
  return { tenant, scopes: new Set(scopes.filter(isScope)), models };
}

/** A token without the claim may use every model; one with `null` says nothing that is sure. */
function modelsAt(claims: Claims, path: string): unknown {
  const found = claimAt(claims, path);
  return found === undefined ? everyModel : found;
}

/** @param path the name of a claim, which may have dots itself, or a path into objects */
export function claimAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  let value: unknown = claims;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Claims)[name];
  }
  return value;
}

/** @returns undefined for a value that is neither a text with blanks nor a list of texts */
function wordsOf(value: unknown): string[] | undefined {
  if (typeof value === "string") return value.split(" ").filter((word) => word !== "");
  if (!Array.isArray(value)) return undefined;
  const words = value.filter((word) => typeof word === "string");
  return words.length === value.length ? words : undefined;
}
