/**
 * The client of an operation, as every service knows the client. A door makes the caller once for
 * each request, from its owner and from nothing else, and no later code decides again.
 */
import { needGift, type Gift } from "../auth/owner/gifts.js";
import { anyOwner, type Owner } from "../auth/owner/owner.js";
import type { KeyRecord } from "../auth/owner/records.js";
import type { Scope } from "../auth/owner/scopes.js";
import { unknownModel, type ModelName } from "../fleet/models.js";

export class Caller {
  readonly #owner: Owner;

  private constructor(owner: Owner) {
    this.#owner = owner;
  }

  static of(owner: Owner): Caller {
    return new Caller(owner);
  }

  /** A caller that names no tenant, of a deployment without keys. */
  static readonly nobody = new Caller(anyOwner(""));

  /** The owner of everything that the caller reads or makes; empty if the caller names none. */
  get tenant(): string {
    return this.#owner.tenant;
  }

  /** The globs of the caller's key, for work that outlives the request. */
  get models(): readonly string[] {
    return this.#owner.models;
  }

  /** Whether the model of this name exists for the caller. */
  get mayUse(): Owner["mayUse"] {
    return this.#owner.mayUse;
  }

  /** Whether the caller has this right. */
  may(right: Scope): boolean {
    return this.#owner.scopes.has(right);
  }

  /** The id of the caller's key; undefined if the deployment asks for no keys. */
  get keyId(): string | undefined {
    return this.#owner.keyId;
  }

  /** When the caller's key or token expires, in Redis ms; null: never. */
  get expiresAt(): number | null {
    return this.#owner.expiresAt ?? null;
  }

  /** What the caller may take; undefined if the caller has no limits. */
  get budget(): Owner["budget"] {
    return this.#owner.budget;
  }

  /** Undefined if the caller has no key. */
  get key(): KeyRecord | undefined {
    return this.#owner.key;
  }

  /** @throws InferenceError `insufficient_scope` if the caller would give what it lacks */
  needGift(gift: Gift): void {
    needGift(this.#owner, gift);
  }

  /** @throws InferenceError `unknown_model` if no such model exists for the caller */
  needModel({ model, version }: ModelName): void {
    if (!this.mayUse(model)) throw unknownModel(model, version);
  }
}
