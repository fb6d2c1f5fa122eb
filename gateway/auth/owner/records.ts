/**
 * The records of keys and tenants in Redis. A gateway ignores members that it does not know,
 * because gateways of the next edition write records, too.
 */
import { z } from "zod";
import { isTenant } from "#shared/contract/tenant.js";
import { globsFault } from "./globs.js";
import { limitsRecord } from "./limits.js";
import { scopes } from "./scopes.js";

/** The digest of a key as records hold it: the algorithm and 64 hexadecimal digits. */
const HASH = /^hmac-sha256:[0-9a-f]{64}$/;
/** In characters. */
export const LONGEST_NAME = 100;

/** The highest weight, as in `BATON_TENANT_WEIGHTS`. */
export const MOST_WEIGHT = 9_999;

export const tenantStates = ["active", "suspended"] as const;

/** Most lists to keep for records to share. */
const MOST_SHARED = 1_000;
const sharedLists = new Map<string, readonly string[]>();

/**
 * Most records have one of a few lists of scopes and models, and a gateway knows many records.
 * @returns the same list for the same content, most often
 */
function shared<T extends string>(list: readonly T[]): readonly T[] {
  const text = list.join("\n");
  const known = sharedLists.get(text);
  // The same content has the same type.
  if (known !== undefined) return known as readonly T[];
  if (sharedLists.size >= MOST_SHARED) sharedLists.clear();
  sharedLists.set(text, list);
  return list;
}

const models = z
  .array(z.string())
  .superRefine((globs, context) => {
    const message = globsFault(globs);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  })
  .readonly()
  .default(["*"])
  .transform(shared);

export const tenantRecord = z.object({
  id: z.string().refine(isTenant, "is no tenant: 1 to 64 of the characters A-Z, a-z, 0-9, _ and -"),
  /** Share of the tenant while requests wait. */
  weight: z.number().int().min(1).max(MOST_WEIGHT).optional(),
  models,
  limits: limitsRecord.tenant,
  state: z.enum(tenantStates).default("active"),
  /** Time in ms since 1970. */
  createdAt: z.number().int().optional(),
});

export type TenantRecord = z.infer<typeof tenantRecord>;

export const keyRecord = z.object({
  id: z.string().regex(/^[0-9a-z]{12}$/),
  tenant: tenantRecord.shape.id,
  name: z.string().max(LONGEST_NAME).default(""),
  hash: z.string().regex(HASH),
  last4: z.string().length(4).optional(),
  scopes: z.array(z.enum(scopes)).readonly().transform(shared),
  models,
  limits: limitsRecord.key,
  /** Times are ms since 1970. */
  createdAt: z.number().int().optional(),
  createdBy: z.string().optional(),
  expiresAt: z.number().int().nullable().default(null),
  revokedAt: z.number().int().nullable().default(null),
  rotatedFrom: z.string().optional(),
});

export type KeyRecord = z.infer<typeof keyRecord>;

/** A key with its tenant, as of the last look. */
export interface KnownKey {
  readonly key: KeyRecord;
  /** Undefined if nobody has made a record of the tenant. */
  readonly tenant: TenantRecord | undefined;
}

/** A tenant as of the last look. */
export interface KnownTenant {
  /** Undefined if nobody has made a record of the tenant. */
  readonly record: TenantRecord | undefined;
}

/** @returns undefined for a record of unknown form, which nobody can write but by hand */
export function parseRecord<S extends z.ZodType>(schema: S, text: string): z.infer<S> | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** The text of a key's record, without what it has by default: Redis may hold many keys. */
export function recordText({ name, models, limits, expiresAt, revokedAt, ...others }: KeyRecord): string {
  return JSON.stringify({
    ...others,
    ...(name !== "" && { name }),
    ...(models.join() !== "*" && { models }),
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(expiresAt !== null && { expiresAt }),
    ...(revokedAt !== null && { revokedAt }),
  });
}

export function hashText(digest: Buffer): string {
  return `hmac-sha256:${digest.toString("hex")}`;
}

/** The digest in a record. */
export function digestIn({ hash }: Pick<KeyRecord, "hash">): Buffer {
  return Buffer.from(hash.slice(hash.indexOf(":") + 1), "hex");
}
