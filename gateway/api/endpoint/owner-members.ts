/** Members and query parameters about the owners of requests: their scopes, models and limits. */
import { z } from "zod";
import { isTenant } from "#shared/contract/tenant.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { asArray, asString, isObject } from "#shared/json/members.js";
import { globsFault, LONGEST_GLOB, MOST_GLOBS } from "../../auth/owner/globs.js";
import { limitNames, limitsFault, limitsRecord, limitsSchema, type LimitedKind } from "../../auth/owner/limits.js";
import { isScope, scopes, scopesFault, type Scope } from "../../auth/owner/scopes.js";
import type { Member } from "./members.js";
import type { Parameter } from "./parameters.js";

const tenantSchema = { type: "string", pattern: "^[A-Za-z0-9_-]{1,64}$" };

export const tenantMember: Member<string> = {
  schema: tenantSchema,
  read: (value, name) => tenantOf(asString(value, name)),
};
export const tenantParameter: Parameter<string | undefined> = {
  schema: tenantSchema,
  read: ([given]) => (given === undefined ? undefined : tenantOf(given)),
};

export const scopesMember: Member<Scope[]> = {
  schema: { type: "array", items: { enum: scopes } },
  read(value, name) {
    const names = asArray(value, name).map((one) => asString(one, name));
    refuse(name, scopesFault(names));
    return [...new Set(names.filter(isScope))];
  },
};

export const modelsMember: Member<string[]> = {
  schema: {
    type: "array",
    description: "globs of models' names; a glob behind ! excludes",
    items: { type: "string", pattern: "^!?[A-Za-z0-9._*?-]+$", maxLength: LONGEST_GLOB },
    maxItems: MOST_GLOBS,
  },
  read(value, name) {
    const globs = asArray(value, name).map((one) => asString(one, name));
    refuse(name, globsFault(globs));
    return globs;
  },
};

/** The limits of a key or tenant. A limit that no gateway keeps is refused, and not ignored. */
export function limitsMember<Of extends LimitedKind>(of: Of): Member<z.infer<(typeof limitsRecord)[Of]>> {
  return {
    schema: limitsSchema(of),
    read(value, name) {
      if (!isObject(value)) throw new InferenceError("invalid_argument", `${name} must be an object`);
      refuse(name, limitsFault(of, value));
      return limitsRecord[of].parse(value) as z.infer<(typeof limitsRecord)[Of]>;
    },
  };
}

export function limitsShape(of: LimitedKind) {
  return z.strictObject(Object.fromEntries(limitNames(of).map((name) => [name, z.number().optional()])));
}

function tenantOf(text: string): string {
  if (!isTenant(text)) throw fixedError("invalid_argument", "tenant");
  return text;
}

/** @throws InferenceError if there is a fault */
function refuse(name: string, fault: string | undefined): void {
  if (fault !== undefined) throw new InferenceError("invalid_argument", `${name}: ${fault}`);
}
