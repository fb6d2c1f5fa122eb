/**
 * The form of a file of keys, for deployments that keep their keys with their configuration. The
 * form is strict: a misspelt `expires_at` would make a key that never expires.
 */
import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { UnusableError } from "#shared/exit.js";
import { limitsFault, type LimitedKind } from "./owner/limits.js";
import { keyRecord, tenantRecord, type KeyRecord, type TenantRecord } from "./owner/records.js";
import { usualScopes } from "./owner/scopes.js";

/** The keys and tenants of a file. */
export interface FileRecords {
  readonly keys: ReadonlyMap<string, KeyRecord>;
  readonly tenants: ReadonlyMap<string, TenantRecord>;
}

/** A file that is no file of keys; the message names the place. */
export class KeysFileFault extends Error {
  override readonly name = "KeysFileFault";
}

/** The bits of a file's mode that let its group and others write. */
const OTHERS_WRITE = 0o022;
const time = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const limits = <Of extends LimitedKind>(of: Of) =>
  z
    .looseObject({})
    .superRefine((given, context) => {
      const message = limitsFault(of, given);
      if (message !== undefined) context.addIssue({ code: "custom", message });
    })
    .default({});

/**
 * A tenant has no state and no models here, because jobs processes do not have the file, and would
 * let run what a gateway refuses.
 */
const fileTenant = z
  .strictObject({ id: tenantRecord.shape.id, weight: tenantRecord.shape.weight, limits: limits("tenant") })
  .transform((tenant) => tenantRecord.parse(tenant));
const fileKey = z.strictObject({
  id: keyRecord.shape.id,
  tenant: keyRecord.shape.tenant,
  name: keyRecord.shape.name,
  hash: keyRecord.shape.hash,
  last4: keyRecord.shape.last4,
  scopes: keyRecord.shape.scopes.default(usualScopes),
  models: keyRecord.shape.models,
  created_at: time.optional(),
  expires_at: time.nullable().default(null),
  revoked_at: time.nullable().default(null),
  limits: limits("key"),
});
const form = z.strictObject({
  version: z.literal(1),
  tenants: z.array(fileTenant).default([]),
  keys: z.array(fileKey).default([]),
});

/** @throws KeysFileFault */
export function parseKeysFile(text: string): FileRecords {
  const { data, error } = form.safeParse(jsonOf(text));
  if (data === undefined) {
    const { path = [], message } = error.issues[0] ?? { message: "has another form" };
    throw new KeysFileFault(`${placeOf(path)}: ${message}`);
  }
  const keys = data.keys.map(({ created_at: createdAt, expires_at: expiresAt, revoked_at: revokedAt, ...key }) =>
    keyRecord.parse({ ...key, createdAt, expiresAt, revokedAt }),
  );
  return { keys: byId("keys", keys), tenants: byId("tenants", data.tenants) };
}

/** @throws KeysFileFault */
export function readKeysFile(path: string): FileRecords {
  let text: string;
  try {
    if ((statSync(path).mode & OTHERS_WRITE) !== 0) throw new KeysFileFault("other users may write the file");
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof KeysFileFault) throw error;
    throw new KeysFileFault(`the file cannot be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
  return parseKeysFile(text);
}

/**
 * Adds a key to a file, or makes the file. Gateways see the file before or after, nothing between.
 * @throws UnusableError if the file is there and has a fault
 */
export function addToKeysFile(path: string, key: KeyRecord): void {
  let found: string | undefined;
  try {
    found = readFileSync(path, "utf8");
    parseKeysFile(found);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw new UnusableError(`${path}: ${String(error)}`);
  }
  const file = (found === undefined ? { version: 1, tenants: [] } : JSON.parse(found)) as { keys?: unknown[] };
  const { createdAt, expiresAt, revokedAt: _, ...record } = key;
  const added = { ...record, created_at: timeText(createdAt), expires_at: timeText(expiresAt) };
  const whole = `${path}.${randomBytes(4).toString("hex")}`;
  const mode = found === undefined ? 0o600 : statSync(path).mode & 0o777;
  writeFileSync(whole, `${JSON.stringify({ ...file, keys: [...(file.keys ?? []), added] }, undefined, 2)}\n`, { mode });
  renameSync(whole, path);
}

function timeText(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : new Date(ms).toISOString();
}

function byId<R extends { readonly id: string }>(list: string, records: readonly R[]): ReadonlyMap<string, R> {
  const all = new Map<string, R>();
  for (const [i, record] of records.entries()) {
    if (all.has(record.id)) throw new KeysFileFault(`${list}[${i}].id: '${record.id}' is there twice`);
    all.set(record.id, record);
  }
  return all;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // V8's message quotes the text around the fault, and the file may be any file.
    const [found, position = text.length] = /at position (\d+)|end of JSON/.exec(String(error)) ?? [];
    if (found === undefined) throw new KeysFileFault("no JSON");
    const lines = text.slice(0, Number(position)).split("\n");
    throw new KeysFileFault(`no JSON: line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`);
  }
}

function placeOf(path: readonly PropertyKey[]): string {
  const place = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  return place === "" ? "the file" : place.replace(/^\./, "");
}
