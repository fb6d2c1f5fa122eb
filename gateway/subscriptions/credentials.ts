/**
 * Makes users of NATS: a key pair, and a JWT that says what its holder may do and until when. NATS
 * knows none of them beforehand; it trusts what a signing key of the account has signed, and closes
 * their connections when they expire.
 */
import { existsSync, readFileSync } from "node:fs";
import { decode, encodeUser } from "nats-jwt";
import { createUser, fromSeed, type KeyPair } from "nkeys.js";

export interface Credentials {
  readonly jwt: string;
  readonly seed: string;
}

/** What the holder of credentials may do, and nothing else. */
export interface Permissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** Subscriptions, and bytes of a message to JetStream, that one connection may have. */
const LIMITS = { subs: 64, payload: 4_096 };
const seedForm = /^SA[A-Z2-7]{56}$/;

export class CredentialMaker {
  readonly #signer: KeyPair;
  /** The public key of the account. */
  readonly #account: string;

  /**
   * @param setting the seed of a signing key of the account, or the path of a file with it
   * @param creds the path of the credentials of this process, which are of the same account
   * @throws Error where one of them cannot be read
   */
  constructor(setting: string, creds: string) {
    this.#signer = fromSeed(Buffer.from(seedOf(setting)));
    this.#account = accountOf(readFileSync(creds, "utf8"));
  }

  /** @param expiresAt in seconds since 1970 */
  async make(name: string, { publish, subscribe }: Permissions, expiresAt: number): Promise<Credentials> {
    const user = createUser();
    const seed = Buffer.from(user.getSeed()).toString();
    const jwt = await encodeUser(
      name,
      user,
      this.#signer,
      {
        issuer_account: this.#account,
        // An empty list would allow everything.
        pub: publish.length > 0 ? { allow: [...publish], deny: [] } : { allow: [], deny: [">"] },
        sub: { allow: [...subscribe], deny: [] },
        allowed_connection_types: ["STANDARD", "WEBSOCKET"],
        data: -1,
        ...LIMITS,
      },
      { exp: expiresAt },
    );
    user.clear();
    return { jwt, seed };
  }
}

/** Whether it is a seed, or a file that holds one. */
export function isSigningSeed(setting: string): boolean {
  return seedForm.test(seedForm.test(setting) || !existsSync(setting) ? setting : seedOf(setting));
}

function seedOf(setting: string): string {
  return seedForm.test(setting) ? setting : readFileSync(setting, "utf8").trim();
}

function accountOf(creds: string): string {
  const jwt = /-----BEGIN NATS USER JWT-----\s*(\S+)/.exec(creds)?.[1];
  if (jwt === undefined) throw new Error("BATON_NATS_CREDS: the file holds no user's JWT");
  const { iss, nats } = decode<{ issuer_account: string }>(jwt);
  return nats.issuer_account ?? iss;
}
