/**
 * Judges credentials: the one place that says whose a request is. Secrets are compared in constant
 * time, and an id without a key takes the same way, so that the time of a refusal says nothing
 * about which keys there are.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { errorKinds, fixedError, InferenceError } from "#shared/errors.js";
import { AuthFailure } from "./owner/auth-failure.js";
import { readCredential, type CredentialTexts } from "./credential.js";
import { faultOf } from "./owner/fault.js";
import { allows } from "./owner/globs.js";
import { digestOf, keyId } from "./key.js";
import type { KnownKeys } from "./known-keys.js";
import { budgetOf, limitsInForce, type LimitsOf } from "./owner/limits.js";
import { isTokenId, type Owner } from "./owner/owner.js";
import { digestIn, hashText, keyRecord, type KnownKey } from "./owner/records.js";
import { requireScope, type Scope } from "./owner/scopes.js";
import { Tickets, type Ticket } from "./tickets.js";
import type { TenantLookup, Tokens } from "./tokens/tokens.js";

export interface AuthenticatorSettings {
  /** Undefined if no API key is good here. */
  readonly keys: Pick<KnownKeys, "find" | "peek"> | undefined;
  /** Undefined if no token is good here. */
  readonly tokens?: Pick<Tokens, "judge" | "ofTicket" | "known"> | undefined;
  /** The secrets under which records hold keys, the newest first. Several while one is replaced. */
  readonly peppers: readonly Buffer[];
  /** Redis ms, by which keys expire. */
  readonly now: () => number;
  /** The limits of a tenant that are in force. */
  readonly limitsOf?: LimitsOf;
  /** Changes when a key or a tenant may have changed. */
  readonly version?: () => number;
  /** For tickets of operators that act for a tenant; absent if no record of a tenant is at hand. */
  readonly tenants?: Pick<TenantLookup, "tenant"> | undefined;
}

/** A key whose secret was right once. */
interface Verified {
  /** In latin1, because a buffer for each key takes twice the memory. */
  readonly digest: string;
  readonly owner: Owner;
  /** The version for which the owner was made. */
  readonly version: number;
}

const { usual: INVALID, ticket: INVALID_TICKET } = errorKinds.invalid_api_key.texts;
/** All that a ticket allows. */
const READS: ReadonlySet<Scope> = new Set<Scope>(["read"]);
/** Takes the place of a key that is not there. No text has its digests. */
const NOBODY: KnownKey = {
  key: keyRecord.parse({ id: "0".repeat(12), tenant: "nobody", hash: hashText(Buffer.alloc(32)), scopes: [] }),
  tenant: undefined,
};
const NONE = "\0".repeat(32);
/** Many records share a list of scopes. */
const sets = new WeakMap<readonly Scope[], ReadonlySet<Scope>>();

function setOf(scopes: readonly Scope[]): ReadonlySet<Scope> {
  const known = sets.get(scopes) ?? new Set(scopes);
  sets.set(scopes, known);
  return known;
}

export class Authenticator {
  readonly #settings: AuthenticatorSettings;
  /** Makes the digests in this process's memory worthless elsewhere. */
  readonly #salt = randomBytes(16).toString("hex");
  readonly #verified = new WeakMap<KnownKey, Verified>();
  readonly #tickets: Tickets;

  constructor(settings: AuthenticatorSettings) {
    this.#settings = settings;
    this.#tickets = new Tickets(settings.peppers);
  }

  /**
   * @returns a promise if Redis has to be asked
   * @throws InferenceError
   */
  judge(given: CredentialTexts): Owner | Promise<Owner> {
    const credential = readCredential(given);
    const { kind, text } = credential;
    if (kind === "ticket") return this.#judgeTicket(text, credential.request);
    const { keys, tokens } = this.#settings;
    if (kind === "token" && tokens !== undefined) return tokens.judge(text);
    if (kind === "token" || keys === undefined) throw new AuthFailure("kind", "invalid_api_key", INVALID);
    const id = keyId(text);
    if (id === undefined) throw new AuthFailure("malformed", "invalid_api_key", INVALID);
    const known = keys.find(id);
    return known instanceof Promise ? known.then((found) => this.#check(found, text)) : this.#check(known, text);
  }

  /**
   * Whose requests with this credential were when it was judged last. Says nothing about whether it
   * is still good, and costs as much for a wrong secret of a known key as for an unknown one.
   * @returns undefined if it was never judged, or is not remembered
   */
  known(given: CredentialTexts): Owner | undefined {
    try {
      const { kind, text } = readCredential(given);
      const { keys, tokens } = this.#settings;
      if (kind === "token") return tokens?.known(text);
      const id = kind === "key" ? keyId(text) : undefined;
      const known = id === undefined ? undefined : keys?.peek(id);
      const verified = known && this.#verified.get(known);
      return verified && this.#isSame(verified, this.#quick(text)) ? verified.owner : undefined;
    } catch (error) {
      if (error instanceof InferenceError) return undefined;
      throw error;
    }
  }

  #check(known: KnownKey | undefined, text: string): Owner {
    const compared = known ?? NOBODY;
    const verified = this.#verified.get(compared);
    const quick = this.#quick(text);
    const version = this.#settings.version?.() ?? 0;
    if (this.#isSame(verified, quick) && verified !== undefined) {
      if (verified.version === version) return this.#whileGood(compared, verified.owner);
      return this.#remember(compared, quick, version);
    }
    const expected = digestIn(compared.key);
    const matches = this.#settings.peppers.map((pepper) => timingSafeEqual(digestOf(text, pepper), expected));
    if (known === undefined) throw new AuthFailure("unknown", "invalid_api_key", INVALID);
    if (!matches.includes(true)) throw new AuthFailure("secret", "invalid_api_key", INVALID, known.key);
    return this.#remember(known, quick, version);
  }

  /** A fast hash is enough for a comparison within one process: it never leaves the memory. */
  #quick(text: string): Buffer {
    return hash("sha256", this.#salt + text, "buffer");
  }

  #isSame(verified: Verified | undefined, quick: Buffer): boolean {
    return timingSafeEqual(quick, Buffer.from(verified?.digest ?? NONE, "latin1"));
  }

  /** @param digest of the right key */
  #remember(known: KnownKey, digest: Buffer, version: number): Owner {
    const owner = this.#ownerOf(known);
    this.#verified.set(known, { digest: digest.toString("latin1"), owner, version });
    return this.#whileGood(known, owner);
  }

  #judgeTicket(text: string, request: string): Owner | Promise<Owner> {
    const { keys, tokens, now } = this.#settings;
    const ticket = this.#tickets.read(text);
    if (ticket?.request !== request) throw new AuthFailure("token", "invalid_api_key", INVALID_TICKET);
    if (ticket.expiresAt <= now()) throw new AuthFailure("expired", "invalid_api_key", INVALID_TICKET);
    const { keyId, tenant, keyEnds } = ticket;
    if (isTokenId(keyId) && tokens !== undefined && keyEnds !== null) return tokens.ofTicket(keyId, tenant, keyEnds);
    const known = keys?.find(keyId);
    return known instanceof Promise ? known.then((found) => this.#reader(found, ticket)) : this.#reader(known, ticket);
  }

  /** @returns the owner of a request with a ticket of this key */
  #reader(known: KnownKey | undefined, { tenant }: Ticket): Owner | Promise<Owner> {
    if (known === undefined) throw new AuthFailure("unknown", "invalid_api_key", INVALID_TICKET);
    const owner = requireScope(this.#whileGood(known, this.#ownerOf(known)), "read");
    const reader = { ...owner, tenant, scopes: READS };
    if (tenant === owner.tenant) return reader;
    requireScope(owner, "operator");
    return this.#actingReader(reader, known);
  }

  /** A reader of a tenant that its operator acts for: the limits are those of that tenant. */
  async #actingReader(reader: Owner, { key }: KnownKey): Promise<Owner> {
    const { tenant } = reader;
    const record = (await this.#settings.tenants?.tenant(tenant))?.record;
    if (record?.state === "suspended") throw fixedError("tenant_suspended", "usual");
    return { ...reader, budget: budgetOf(key, this.#limitsOf(tenant, record), key.id) };
  }

  get #limitsOf(): LimitsOf {
    return this.#settings.limitsOf ?? limitsInForce;
  }

  /** @throws InferenceError if the key or its tenant is good no longer */
  #whileGood(known: KnownKey, owner: Owner): Owner {
    const fault = faultOf(known, this.#settings.now());
    if (fault !== undefined) throw fault;
    return owner;
  }

  #ownerOf({ key, tenant }: KnownKey): Owner {
    return {
      tenant: key.tenant,
      keyId: key.id,
      key,
      expiresAt: key.expiresAt,
      budget: budgetOf(key, this.#limitsOf(key.tenant, tenant), key.id),
      scopes: setOf(key.scopes),
      models: key.models,
      mayUse: (model) => allows(key.models, model) && (tenant === undefined || allows(tenant.models, model)),
    };
  }
}
