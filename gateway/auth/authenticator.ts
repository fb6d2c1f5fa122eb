/**
 * Judges credentials: the one place that says whose a request is. Secrets are compared in constant
 * time, and an id without a key takes the same way, so that the time of a refusal says nothing
 * about which keys there are.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { errorKinds } from "#shared/errors.js";
import { AuthFailure } from "./owner/auth-failure.js";
import { readCredential, type CredentialTexts } from "./credential.js";
import { faultOf } from "./owner/fault.js";
import { allows } from "./owner/globs.js";
import { digestOf, keyId } from "./key.js";
import type { KnownKeys } from "./known-keys.js";
import { budgetOf, limitsInForce, type TenantLimits } from "./owner/limits.js";
import { isTokenId, type Owner } from "./owner/owner.js";
import { digestIn, hashText, keyRecord, type KnownKey } from "./owner/records.js";
import { requireScope, type Scope } from "./owner/scopes.js";
import { Tickets, type Ticket } from "./tickets.js";
import type { Tokens } from "./tokens/tokens.js";

export interface AuthenticatorSettings {
  /** Undefined if no API key is good here. */
  readonly keys: Pick<KnownKeys, "find"> | undefined;
  /** Undefined if no token is good here. */
  readonly tokens?: Pick<Tokens, "judge" | "ofTicket"> | undefined;
  /** The secrets under which records hold keys, the newest first. Several while one is replaced. */
  readonly peppers: readonly Buffer[];
  /** Redis ms, by which keys expire. */
  readonly now: () => number;
  /** The limits of tenants that say nothing themselves. */
  readonly usualLimits?: TenantLimits;
}

/** A key whose secret was right once. */
interface Verified {
  readonly digest: Buffer;
  readonly owner: Owner;
}

const { usual: INVALID, ticket: INVALID_TICKET } = errorKinds.invalid_api_key.texts;
/** All that a ticket allows. */
const READS: ReadonlySet<Scope> = new Set<Scope>(["read"]);
/** Takes the place of a key that is not there. No text has its digests. */
const NOBODY: KnownKey = {
  key: keyRecord.parse({ id: "0".repeat(12), tenant: "nobody", hash: hashText(Buffer.alloc(32)), scopes: [] }),
  tenant: undefined,
};
const NONE = Buffer.alloc(32);

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

  #check(known: KnownKey | undefined, text: string): Owner {
    const compared = known ?? NOBODY;
    const verified = this.#verified.get(compared);
    // A fast hash is enough for a comparison within one process: it never leaves the memory.
    const quick = hash("sha256", this.#salt + text, "buffer");
    if (timingSafeEqual(quick, verified?.digest ?? NONE) && verified !== undefined) {
      return this.#whileGood(compared, verified.owner);
    }
    const expected = digestIn(compared.key);
    const matches = this.#settings.peppers.map((pepper) => timingSafeEqual(digestOf(text, pepper), expected));
    if (known === undefined) throw new AuthFailure("unknown", "invalid_api_key", INVALID);
    if (!matches.includes(true)) throw new AuthFailure("secret", "invalid_api_key", INVALID, known.key);
    const owner = this.#ownerOf(known);
    this.#verified.set(known, { digest: quick, owner });
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
  #reader(known: KnownKey | undefined, { tenant }: Ticket): Owner {
    if (known === undefined) throw new AuthFailure("unknown", "invalid_api_key", INVALID_TICKET);
    const owner = requireScope(this.#whileGood(known, this.#ownerOf(known)), "read");
    if (tenant !== owner.tenant) requireScope(owner, "operator");
    return { ...owner, tenant, scopes: READS };
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
      budget: budgetOf(key, limitsInForce(key.tenant, tenant, this.#settings.usualLimits)),
      scopes: new Set(key.scopes),
      models: key.models,
      mayUse: (model) => allows(key.models, model) && (tenant === undefined || allows(tenant.models, model)),
    };
  }
}
