/**
 * Judges tokens of an identity provider. A token says whose a request is as a key does, but no
 * store knows tokens: the issuer's signature is all there is. A suspended tenant is refused as for
 * its keys.
 */
import { createHash, hash, randomBytes } from "node:crypto";
import { errors, jwtVerify, type JWTPayload } from "jose";
import type { Logger } from "pino";
import { errorKinds, fixedError, type InferenceError } from "#shared/errors.js";
import { AuthFailure } from "../owner/auth-failure.js";
import { faultOf } from "../owner/fault.js";
import { allows } from "../owner/globs.js";
import type { KnownKey, KnownTenant } from "../owner/records.js";
import { budgetOf, limitsInForce, type LimitsOf } from "../owner/limits.js";
import { TOKEN_ID_PREFIX, type Owner } from "../owner/owner.js";
import { remember } from "../owner/remember.js";
import { ownerIn, type ClaimFault, type ClaimedOwner } from "./claims.js";
import { JwksAway, type Jwks } from "./jwks.js";
import type { TokenTerms } from "./settings.js";

export interface TokensSettings {
  readonly terms: TokenTerms;
  readonly jwks: Pick<Jwks, "find">;
  readonly tenants: TenantLookup;
  /** Redis ms. */
  readonly now: () => number;
  /** The limits of a tenant that are in force. */
  readonly limitsOf?: LimitsOf;
  readonly log: Logger;
}

export interface TenantLookup {
  /** Changes when a tenant may have changed. */
  readonly version: number;
  /**
   * @returns a promise if Redis has to be asked
   * @throws InferenceError `unavailable`
   */
  tenant(name: string): KnownTenant | Promise<KnownTenant>;
  /** @returns undefined if Redis has to be asked */
  peekTenant(name: string): KnownTenant | undefined;
}

/** Whose the requests with a token are. */
interface Subject extends ClaimedOwner {
  /** The place of an API key's id. */
  readonly id: string;
  /** Redis ms. */
  readonly expiresAt: number;
}

interface Verified {
  readonly subject: Subject;
  /** Redis ms until which the token is not verified again. */
  readonly until: number;
}

/** How far the issuer's clock may be off, in s. */
const LEEWAY_S = 30;
/** How long a verified token is remembered, in ms. */
const KEPT_MS = 60_000;
/** Most tokens and most subjects to remember. */
const MOST_TOKENS = 10_000;
const MOST_SUBJECTS = 50_000;
const ID_DIGITS = 16;

const texts = errorKinds.invalid_token.texts;

export class Tokens {
  readonly #settings: TokensSettings;
  /** Makes the digests in this process's memory worthless elsewhere. */
  readonly #salt = randomBytes(16).toString("hex");
  /** By a digest of the token. */
  readonly #verified = new Map<string, Verified>();
  /**
   * By the name under which a subject's streams are watched: the latest expiry of its tokens. So a
   * stream goes on while its client gets new tokens.
   */
  readonly #subjects = new Map<string, Subject>();

  constructor(settings: TokensSettings) {
    this.#settings = settings;
  }

  /** Changes when the tenant of a subject may have changed. */
  get version(): number {
    return this.#settings.tenants.version;
  }

  /**
   * @returns a promise if the token is new, or if Redis has to be asked
   * @throws InferenceError
   */
  judge(text: string): Owner | Promise<Owner> {
    const digest = hash("sha256", this.#salt + text, "base64url");
    const now = this.#settings.now();
    const known = this.#verified.get(digest);
    return known !== undefined && now < known.until ? this.#ownerOf(known.subject) : this.#judgeNew(text, digest, now);
  }

  /**
   * Whose requests with this token were when it was verified last, although it may have to be
   * verified again.
   * @returns undefined if the token is new, or if Redis has to be asked
   * @throws InferenceError if its tenant is suspended, or the token has expired
   */
  known(text: string): Owner | undefined {
    const verified = this.#verified.get(hash("sha256", this.#salt + text, "base64url"));
    if (verified === undefined) return undefined;
    const tenant = this.#settings.tenants.peekTenant(verified.subject.tenant);
    return tenant && this.#ownerIn(verified.subject, tenant);
  }

  /**
   * The owner of a request with a ticket that a token got. Any gateway may meet the ticket, also
   * one that has never met the token.
   * @throws InferenceError
   */
  ofTicket(id: string, tenant: string, expiresAt: number): Owner | Promise<Owner> {
    return this.#ownerOf({ id, tenant, expiresAt, scopes: new Set(["read"]), models: ["*"] });
  }

  /**
   * @param name under which streams are watched
   * @returns undefined if Redis has to be asked
   */
  peek(name: string): KnownKey | undefined {
    const subject = this.#subjects.get(name);
    const known = subject && this.#settings.tenants.peekTenant(subject.tenant);
    return subject && known && asKey(subject, known);
  }

  /** @throws InferenceError if Redis does not answer */
  async readAgain(name: string): Promise<KnownKey | undefined> {
    const subject = this.#subjects.get(name);
    return subject && asKey(subject, await this.#settings.tenants.tenant(subject.tenant));
  }

  async #judgeNew(text: string, digest: string, now: number): Promise<Owner> {
    const subject = await this.#verify(text, now);
    remember(this.#verified, digest, { subject, until: Math.min(now + KEPT_MS, subject.expiresAt) }, MOST_TOKENS);
    return this.#ownerOf(subject);
  }

  async #verify(text: string, now: number): Promise<Subject> {
    // Before Redis has told its time, no token is early or late.
    if (now === 0) throw fixedError("unavailable", "keys");
    const { terms, jwks, log } = this.#settings;
    const { issuer, audience } = terms;
    let claims: JWTPayload;
    try {
      const verified = await jwtVerify(text, jwks.find, {
        issuer,
        audience,
        algorithms: [...terms.algorithms],
        clockTolerance: LEEWAY_S,
        currentDate: new Date(now),
        requiredClaims: ["exp", "sub"],
      });
      claims = verified.payload;
    } catch (error) {
      // For example a key of the issuer that is too short for its algorithm.
      if (!(error instanceof errors.JOSEError || error instanceof JwksAway)) {
        log.warn({ error: String(error) }, "a token cannot be verified with the issuer's key");
      }
      throw refusalOf(error);
    }
    const owner = ownerIn(claims, terms.claims);
    if ("claim" in owner) throw claimRefusal(owner);
    const { sub = "", exp = 0 } = claims;
    if (typeof sub !== "string") throw claimRefusal({ claim: "sub", isMissing: false });
    const id = createHash("sha256").update(issuer).update(sub).digest("hex").slice(0, ID_DIGITS);
    return { ...owner, id: TOKEN_ID_PREFIX + id, expiresAt: (exp + LEEWAY_S) * 1_000 };
  }

  #ownerOf(subject: Subject): Owner | Promise<Owner> {
    const known = this.#settings.tenants.tenant(subject.tenant);
    return known instanceof Promise
      ? known.then((found) => this.#ownerIn(subject, found))
      : this.#ownerIn(subject, known);
  }

  #ownerIn(subject: Subject, known: KnownTenant): Owner {
    const { now, limitsOf = limitsInForce } = this.#settings;
    const fault = faultOf(asKey(subject, known), now());
    if (fault !== undefined) throw fault;
    const { id, tenant, scopes, models, expiresAt } = subject;
    const openAs = `${id} ${tenant}`;
    const before = this.#subjects.get(openAs);
    if (before === undefined || before.expiresAt < expiresAt) remember(this.#subjects, openAs, subject, MOST_SUBJECTS);
    const { record } = known;
    return {
      tenant,
      keyId: id,
      openAs,
      expiresAt,
      budget: budgetOf(undefined, limitsOf(tenant, record), id),
      scopes,
      models,
      mayUse: (model) => allows(models, model) && (record === undefined || allows(record.models, model)),
    };
  }
}

/** A subject in the form of a key, for those who ask whether it is good. */
function asKey({ id, tenant, scopes, models, expiresAt }: Subject, { record }: KnownTenant): KnownKey {
  const key = {
    id,
    tenant,
    name: "",
    hash: "",
    scopes: [...scopes],
    models: [...models],
    expiresAt,
    revokedAt: null,
    limits: {},
  };
  return { key, tenant: record };
}

function refusalOf(error: unknown): InferenceError {
  if (error instanceof JwksAway) return fixedError("unavailable", "keys", { cause: error });
  if (error instanceof errors.JWTExpired) return refused(texts.expired);
  if (error instanceof errors.JWTClaimValidationFailed) {
    return claimRefusal({ claim: error.claim, isMissing: error.reason === "missing" });
  }
  return refused(texts.usual);
}

/** @returns a refusal that names the claim, and never its value */
function claimRefusal({ claim, isMissing }: ClaimFault): AuthFailure {
  return refused(`the token is not valid: its claim '${claim}' ${isMissing ? "is missing" : "is wrong"}`);
}

function refused(message: string): AuthFailure {
  return new AuthFailure("token", "invalid_token", message);
}
