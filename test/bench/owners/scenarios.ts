/**
 * What a key costs a gateway, in loops over the functions that judge it. Redis has no part in them,
 * because a gateway asks Redis about a key once.
 */
import { RequestBudget } from "../../../gateway/admission/budget.js";
import { Audit } from "../../../gateway/auth/audit.js";
import { Authenticator } from "../../../gateway/auth/authenticator.js";
import { newKey } from "../../../gateway/auth/key.js";
import { makeKey } from "../../../gateway/auth/keys.js";
import type { KnownKey } from "../../../gateway/auth/owner/records.js";
import { usualScopes } from "../../../gateway/auth/owner/scopes.js";
import { admitTo, keyGuard } from "../../../gateway/http/guard.js";
import { Peers } from "../../../gateway/http/peers.js";
import { RequestAudit } from "../../../gateway/http/request-audit.js";
import type { Scenarios } from "../support/rounds.js";
import { median, ratio, type Wanted } from "../support/statistics.js";

interface Loop {
  readonly cpuUs: number;
  readonly checked: number;
  readonly wrong: number;
}

interface Guesses {
  /** Medians, in µs. */
  readonly wrongSecretUs: number;
  readonly wrongIdUs: number;
  readonly checked: number;
  readonly wrong: number;
}

export interface OwnersRound {
  readonly authentication: Loop;
  readonly refusal: Loop;
  readonly guesses: Guesses;
}

export const ownersNames: readonly (keyof OwnersRound)[] = ["authentication", "refusal", "guesses"];

export const ownersFigures: readonly Wanted<OwnersRound>[] = [
  { name: "a known key: CPU, µs/request", most: 3, of: ({ authentication }) => authentication?.cpuUs },
  { name: "a refused key with its audit: CPU, µs/request", of: ({ refusal }) => refusal?.cpuUs },
  { name: "a wrong secret: median, µs", of: ({ guesses }) => guesses?.wrongSecretUs },
  { name: "a wrong id: median, µs", of: ({ guesses }) => guesses?.wrongIdUs },
  {
    name: "  their difference, share",
    most: 0.1,
    of: ({ guesses }) => {
      const share = ratio(guesses?.wrongSecretUs, guesses?.wrongIdUs);
      return share && Math.abs(share - 1);
    },
  },
];

const KEYS = 1_000;
const LOOPS = 200_000;
const GUESSES = 5_000;
const pepper = Buffer.alloc(32, 7);
const terms = { tenant: "acme", name: "", scopes: usualScopes, models: ["*"], createdAt: 0, expiresAt: null };
const asking = (text: string) => ({ headers: { authorization: `Bearer ${text}` }, target: "/v2/models/simple/infer" });

export function ownersScenarios(): Scenarios<OwnersRound> {
  const made = Array.from({ length: KEYS }, () => makeKey(terms, pepper));
  const known = new Map<string, KnownKey>(
    made.map(({ record }) => [record.id, { key: { ...record, scopes: usualScopes }, tenant: undefined }]),
  );
  const authenticator = new Authenticator({
    keys: { find: (id) => known.get(id), peek: (id) => known.get(id) },
    peppers: [pepper],
    now: () => 1,
  });
  const tenants = {
    termsOf: () =>
      Promise.resolve({
        mayUse: () => true,
        limited: { id: "", limits: {} },
        budget: new RequestBudget({ rates: [] }),
      }),
  };
  const readers = { add: () => () => undefined };
  const guard = keyGuard({ authenticator, tenants, readers }, new Set());
  const good = made.map(({ text }) => asking(text));
  /** @returns whether the request is let in */
  const isIn = (request: (typeof good)[number]): boolean => {
    try {
      return !(admitTo(guard, request, "infer") instanceof Promise);
    } catch {
      return false;
    }
  };
  const loop = (count: number, one: (i: number) => boolean): Loop => {
    for (let i = 0; i < KEYS; i++) one(i); // each key's first use costs an HMAC
    const before = process.cpuUsage();
    let wrong = 0;
    for (let i = 0; i < count; i++) if (!one(i)) wrong++;
    const { user, system } = process.cpuUsage(before);
    return { cpuUs: (user + system) / count, checked: count, wrong };
  };
  const guesses = {
    /** A client that guesses compares the time of one id with the time of ids that no key has. */
    secret: () => asking(newKey(made[0]?.record.id).text),
    id: () => asking(newKey().text),
  };
  return {
    authentication: () => Promise.resolve(loop(LOOPS, (i) => isIn(good[i % KEYS] ?? asking("")))),
    refusal() {
      const audit = new RequestAudit(new Audit("bench", () => undefined), new Peers());
      const requests = Array.from({ length: KEYS }, guesses.id);
      return Promise.resolve(
        loop(LOOPS, (i) => {
          try {
            void admitTo(guard, requests[i % KEYS] ?? asking(""), "infer");
            return false;
          } catch (error) {
            const socket = { remoteAddress: `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}` };
            audit.refused(error, { method: "POST", url: "/v2", headers: {}, socket }, "r");
            return true;
          }
        }),
      );
    },
    guesses() {
      const times = { secret: [] as number[], id: [] as number[] };
      let wrong = 0;
      const requests = {
        secret: Array.from({ length: GUESSES }, guesses.secret),
        id: Array.from({ length: GUESSES }, guesses.id),
      };
      for (let i = 0; i < GUESSES; i++) {
        for (const kind of ["secret", "id"] as const) {
          const request = requests[kind][i] ?? asking("");
          const before = performance.now();
          if (isIn(request)) wrong++;
          times[kind].push((performance.now() - before) * 1_000);
        }
      }
      const [wrongSecretUs, wrongIdUs] = [median(times.secret), median(times.id)];
      return Promise.resolve({ wrongSecretUs, wrongIdUs, checked: 2 * GUESSES, wrong });
    },
  };
}
