/**
 * The keys of a file, which the gateway looks at once a second. A file with a fault changes
 * nothing: the keys of the last good file stay. These keys need no Redis. If Redis has the same id,
 * the file's record counts, but a key that is revoked in either place is revoked. A tenant's state
 * and models are those in Redis.
 */
import { statSync } from "node:fs";
import type { Logger } from "pino";
import { UnusableError } from "#shared/exit.js";
import { readKeys, readTenants } from "#shared/queue/owners/owners.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { cells } from "#shared/metrics/cells.js";
import { delay } from "#shared/retry.js";
import type { Audit } from "./audit.js";
import { KeysFileFault, readKeysFile, type FileRecords } from "./keys-file.js";
import type { KnownKeys } from "./known-keys.js";
import type { TenantSays } from "./owner/limits.js";
import { parseRecord, keyRecord, tenantRecord, type TenantRecord, type KnownKey } from "./owner/records.js";

export interface FileKeysSettings {
  readonly path: string;
  /** Undefined if the file is the only place of keys. */
  readonly beside?: { readonly redis: RedisClient; readonly keys: Pick<KnownKeys, "version"> } | undefined;
  readonly audit: Audit;
  readonly log: Logger;
}

/** Time between two looks, in ms. */
const LOOK_MS = 1_000;
/** Records of one read. */
const AT_ONCE = 500;

/** What Redis says of the ids and tenants in the file. */
interface InRedis {
  readonly ids: ReadonlySet<string>;
  /** By id, when the key was revoked. */
  readonly revoked: ReadonlyMap<string, number>;
  readonly tenants: ReadonlyMap<string, TenantRecord>;
}

const nothing: InRedis = { ids: new Set(), revoked: new Map(), tenants: new Map() };

export class FileKeys {
  readonly #settings: FileKeysSettings;
  #file: FileRecords;
  /** Whether the file that lies there is in force. */
  #isInForce = true;
  /** Changes with the file. */
  #seen: string;
  #inRedis = nothing;
  /** The version of the keys in Redis at the last look; undefined to look again. */
  #lookedAt: number | undefined;
  #known: ReadonlyMap<string, KnownKey> = new Map();
  #version = 0;

  private constructor(settings: FileKeysSettings) {
    const { path, audit } = settings;
    this.#settings = settings;
    this.#seen = identityOf(path);
    try {
      this.#file = readKeysFile(path);
    } catch (error) {
      if (error instanceof KeysFileFault) throw new UnusableError(`BATON_KEYS_FILE ${path}: ${error.message}`);
      throw error;
    }
    audit.note("keys_file_loaded", { reason: countOf(this.#file) });
    this.#know();
    cells.show("baton_keys_file_ok", {}, () => (this.#isInForce ? 1 : 0));
  }

  /** @throws UnusableError if the file has a fault, or if Redis has a key of the same id */
  static async open(settings: FileKeysSettings): Promise<FileKeys> {
    const opened = new FileKeys(settings);
    await opened.#lookAtRedis();
    const [both] = opened.#inRedis.ids;
    if (both === undefined) return opened;
    throw new UnusableError(`The key '${both}' is in BATON_KEYS_FILE and in Redis: remove it from one of them.`);
  }

  /** Changes when a key or tenant may have changed. */
  get version(): number {
    return this.#version;
  }

  find(id: string): KnownKey | undefined {
    return this.#known.get(id);
  }

  /** What the file says of a tenant; undefined if nothing. */
  saysOf(tenant: string): TenantSays | undefined {
    return this.#file.tenants.get(tenant);
  }

  /** Whether the tenant has a key here that is not revoked. */
  hasKeyOf(tenant: string): boolean {
    return [...this.#known.values()].some(({ key }) => key.tenant === tenant && key.revokedAt === null);
  }

  /** Looks at the file, and at the same ids in Redis, until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    for (;;) {
      await delay(LOOK_MS, signal);
      if (signal.aborted) return;
      this.#lookAtFile();
      await this.#lookAtRedis().catch((error: unknown) => {
        this.#settings.log.debug({ error: String(error) }, "the keys of the file cannot be looked up in Redis now");
      });
    }
  }

  #lookAtFile(): void {
    const { path, audit, log } = this.#settings;
    const seen = identityOf(path);
    if (seen === this.#seen) return;
    this.#seen = seen;
    this.#isInForce = false;
    try {
      this.#file = readKeysFile(path);
      this.#isInForce = true;
    } catch (error) {
      if (!(error instanceof KeysFileFault)) throw error;
      audit.note("keys_file_refused", { reason: error.message });
      log.warn({ fault: error.message }, "the keys file has a fault, and the keys of the last good file stay");
      return;
    }
    audit.note("keys_file_loaded", { reason: countOf(this.#file) });
    this.#lookedAt = undefined;
    this.#know();
  }

  async #lookAtRedis(): Promise<void> {
    const { beside } = this.#settings;
    const version = beside?.keys.version;
    if (beside === undefined || version === this.#lookedAt) return;
    const file = this.#file;
    const keys = await readAll([...file.keys.keys()], (ids) => readKeys(beside.redis, ids));
    const names = [...new Set([...file.keys.values()].map(({ tenant }) => tenant))];
    const tenants = await readAll(names, (some) => readTenants(beside.redis, some));
    if (file !== this.#file) return; // the next look is for the new file
    const revoked = [...keys].flatMap(([id, text]) => {
      const record = parseRecord(keyRecord, text);
      // A record that nobody can read may be of a revoked key.
      const revokedAt = record === undefined ? 0 : record.revokedAt;
      return revokedAt === null ? [] : [[id, revokedAt] as const];
    });
    const found = [...tenants].map(
      ([name, text]) => [name, parseRecord(tenantRecord, text) ?? suspended(name)] as const,
    );
    this.#inRedis = { ids: new Set(keys.keys()), revoked: new Map(revoked), tenants: new Map(found) };
    this.#lookedAt = version;
    this.#know();
  }

  /** Joins what the file and Redis say. */
  #know(): void {
    const { keys, tenants } = this.#file;
    const { revoked, tenants: inRedis } = this.#inRedis;
    const all = [...keys].map(([id, key]) => {
      // State and models are those in Redis, which jobs processes see, too.
      const tenant = inRedis.get(key.tenant) ?? tenants.get(key.tenant);
      return [id, { key: { ...key, revokedAt: key.revokedAt ?? revoked.get(id) ?? null }, tenant }] as const;
    });
    this.#known = new Map(all);
    this.#version++;
  }
}

function suspended(id: string): TenantRecord {
  return tenantRecord.parse({ id, state: "suspended" });
}

/** @returns the records that there are, by their names */
async function readAll(
  names: readonly string[],
  read: (some: readonly string[]) => Promise<(string | undefined)[]>,
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (let i = 0; i < names.length; i += AT_ONCE) {
    const some = names.slice(i, i + AT_ONCE);
    for (const [j, text] of (await read(some)).entries()) if (text !== undefined) found.set(some[j] ?? "", text);
  }
  return found;
}

function identityOf(path: string): string {
  try {
    const { ino, size, mtimeMs, mode } = statSync(path);
    return [ino, size, mtimeMs, mode].join(" ");
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

function countOf({ keys, tenants }: FileRecords): string {
  return `${keys.size} keys, ${tenants.size} tenants`;
}
