/**
 * The refusal of a credential. The audit learns why; the client learns no more than the code says,
 * so that nobody can find out which keys there are.
 */
import { InferenceError, type ErrorCode } from "#shared/errors.js";

export type AuthReason =
  "missing" | "malformed" | "unknown" | "secret" | "revoked" | "expired" | "kind" | "token" | "suspended";

export class AuthFailure extends InferenceError {
  readonly why: AuthReason;
  /** The key whose id the client gave; undefined if there is no such key. */
  readonly key: { readonly id: string; readonly tenant: string } | undefined;

  constructor(why: AuthReason, code: ErrorCode, message: string, key?: AuthFailure["key"]) {
    super(code, message);
    this.why = why;
    this.key = key;
  }
}
