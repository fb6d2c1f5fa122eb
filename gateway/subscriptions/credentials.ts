/**
 * Makes users of NATS: a key pair, and a JWT that names the user's rights and end. NATS does not
 * know users beforehand. It trusts each JWT that the account's key has signed, and closes the
 * user's connections when the JWT expires.
 */
import { readFileSync } from "node:fs";
import { encodeUser } from "nats-jwt";
import { createUser, fromSeed, type KeyPair } from "nkeys.js";

export interface Credentials {
  readonly jwt: string;
  readonly seed: string;
}

/** All that the holder of credentials may do. */
export interface Permissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** Most subscriptions of a connection, and most bytes of a message to JetStream. */
const LIMITS = { subs: 64, payload: 4_096 };
const seedForm = /^SA[A-Z2-7]{56}$/;

export class CredentialMaker {
  readonly #account: KeyPair;

  /**
   * @param setting the seed of the key of the readers' account, or the path of a file with the seed
   * @throws Error if the seed cannot be read
   */
  constructor(setting: string) {
    this.#account = fromSeed(Buffer.from(seedOf(setting)));
  }

  /** @param expiresAt in seconds since 1970 */
  async make(name: string, { publish, subscribe }: Permissions, expiresAt: number): Promise<Credentials> {
    const user = createUser();
    const seed = Buffer.from(user.getSeed()).toString();
    const jwt = await encodeUser(
      name,
      user,
      this.#account,
      {
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

/** Whether the setting is a seed, or the path of a file with a seed. */
export function isAccountSeed(setting: string): boolean {
  try {
    return seedForm.test(seedOf(setting));
  } catch {
    return false;
  }
}

function seedOf(setting: string): string {
  return seedForm.test(setting) ? setting : readFileSync(setting, "utf8").trim();
}
