/** Opens the parts of subscriptions from the settings of a process. */
import { natsServers } from "#shared/broker-url.js";
import type { Bus } from "#shared/nats/connect.js";
import type { ListedProcess } from "#shared/queue/processes/note-process.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { Consumers } from "./consumers.js";
import { CredentialMaker } from "./credentials.js";
import { publicUrls } from "./settings.js";
import type { CaptureTerms, TokenStream } from "./token-stream.js";

export interface SubscriptionConfig {
  readonly BATON_NATS_URL: string;
  readonly BATON_NATS_CREDS?: string | undefined;
  readonly BATON_NATS_SIGNING_SEED?: string | undefined;
  readonly BATON_NATS_PUBLIC_URLS: string;
  readonly BATON_CAPTURE_TTL_MS: number;
  readonly BATON_CAPTURE_BYTES: number;
  readonly BATON_SUBSCRIPTION_LIMIT: number;
  readonly BATON_SUBSCRIPTION_MAX_MS: number;
}

/** All tenants together may have this many times the consumers of a tenant. */
const TENANTS = 10;

/**
 * The terms of the JetStream stream; undefined in the jobs process, which may lack some of these
 * settings.
 */
export function captureTerms(kind: ListedProcess["kind"], config: SubscriptionConfig): CaptureTerms | undefined {
  if (kind === "jobs") return undefined;
  return {
    ttlMs: config.BATON_CAPTURE_TTL_MS,
    bytes: config.BATON_CAPTURE_BYTES,
    consumers: config.BATON_SUBSCRIPTION_LIMIT * TENANTS,
  };
}

/**
 * Whether workers publish the streams of labelled jobs for each label, too: only if the deployment
 * has subscriptions. The jobs process does not get the signing key. So there the answer depends on
 * whether the process has credentials for NATS, because a NATS with accounts asks for these.
 */
export function publishesLabels(
  kind: ListedProcess["kind"],
  config: Pick<SubscriptionConfig, "BATON_NATS_SIGNING_SEED" | "BATON_NATS_CREDS">,
): boolean {
  if (config.BATON_NATS_SIGNING_SEED !== undefined) return true;
  return kind === "jobs" && config.BATON_NATS_CREDS !== undefined;
}

/** The parts of subscriptions that depend on the deployment's settings. */
export interface SubscriptionParts {
  /** The URLs of NATS for clients. */
  readonly servers: readonly string[];
  /** Undefined if the deployment has no key to sign credentials with. */
  readonly credentials: CredentialMaker | undefined;
  /** How long the credentials of a client with a key are valid at most, in ms. */
  readonly keyedMs: number;
  /** Undefined if the deployment does not capture records. */
  readonly consumers: Consumers | undefined;
}

/**
 * @param stream undefined if the deployment does not capture records
 * @throws Error if the signing seed cannot be read
 */
export function openSubscriptions(
  config: SubscriptionConfig,
  { redis, bus, stream }: { readonly redis: RedisClient; readonly bus: Bus; readonly stream: TokenStream | undefined },
): SubscriptionParts {
  const { BATON_NATS_SIGNING_SEED: seed, BATON_CAPTURE_TTL_MS: keptMs } = config;
  const given = publicUrls(config.BATON_NATS_PUBLIC_URLS);
  const usual = natsServers(config.BATON_NATS_URL).map((url) => (url.includes("://") ? url : `nats://${url}`));
  const limit = config.BATON_SUBSCRIPTION_LIMIT;
  return {
    servers: given.length > 0 ? given : usual,
    credentials: seed === undefined ? undefined : new CredentialMaker(seed),
    keyedMs: config.BATON_SUBSCRIPTION_MAX_MS,
    consumers: stream && new Consumers({ redis, bus, stream, keptMs, limit }),
  };
}
