/** Opens what says whose a request is: a guard, and for keys the records that it follows. */
import type { Logger } from "pino";
import type { Lifecycle } from "#shared/lifecycle.js";
import { metricsToken } from "#shared/metrics/readers.js";
import { showSettings } from "#shared/shown-settings.js";
import type { RedisClient } from "#shared/redis/connect.js";
import type { Audit } from "./auth/audit.js";
import { Authenticator } from "./auth/authenticator.js";
import { allKeys, withTokens } from "./auth/all-keys.js";
import { CallRates } from "./auth/call-rates.js";
import { FileKeys } from "./auth/file-keys.js";
import { KeyUses } from "./auth/key-uses.js";
import { Keys } from "./auth/keys.js";
import { KnownKeys } from "./auth/known-keys.js";
import { ReaderCounts } from "./auth/reader-counts.js";
import { OpenReaders } from "./auth/open-readers.js";
import { limitsInForce, type LimitsOf } from "./auth/owner/limits.js";
import type { AuthTerms } from "./auth/settings.js";
import { TenantRecords } from "./auth/tenant-records.js";
import { Tenants } from "./auth/tenants.js";
import { Tickets } from "./auth/tickets.js";
import { Jwks } from "./auth/tokens/jwks.js";
import { Tokens } from "./auth/tokens/tokens.js";
import { weightsIn } from "./auth/owner/weights.js";
import { gatewaySettings, type GatewayConfig } from "./config.js";
import type { AdministrationServices } from "./endpoints.js";
import { keyGuard, openGuard, type Guard } from "./http/guard.js";
import type { Peers } from "./http/peers.js";
import type { RequestAudit } from "./http/request-audit.js";
import type { Administration } from "./service/administration.js";
import { KeptKeys } from "./service/kept-keys.js";
import { KeyService } from "./service/keys.js";
import type { Parts } from "./service/open.js";
import { ProcessSettings } from "./service/process-settings.js";
import type { Services } from "./service/services.js";
import { TenantService } from "./service/tenants.js";
import { TicketService, type TicketServiceSettings } from "./service/tickets.js";
import { UsageService } from "./service/usage.js";
import type { UsedPlace } from "./service/used/used.js";

export interface AuthSurroundings {
  readonly redis: RedisClient;
  readonly config: GatewayConfig;
  readonly peers: Peers;
  readonly audit: Audit;
  readonly requestAudit: RequestAudit;
  readonly log: Logger;
}

export interface OpenedAuth extends Pick<Administration, "hasInFile"> {
  readonly guard: Guard;
  /** Undefined if the deployment asks for no keys. */
  readonly ticketing: Pick<TicketServiceSettings, "tickets" | "now"> | undefined;
  /** Undefined if the deployment asks for no keys. */
  readonly readerCounts: ReaderCounts | undefined;
  /** Undefined if the deployment asks for no keys. */
  readonly limits: Pick<Tenants, "limitsOf"> | undefined;
}

/** Time between two audit lines of a gateway that lets everybody in, in ms. */
const INSECURE_EVERY_MS = 3_600_000;

export async function openAuth(
  terms: AuthTerms,
  { redis, config, peers, audit, requestAudit, log }: AuthSurroundings,
  lifecycle: Lifecycle,
): Promise<OpenedAuth> {
  const { BATON_RESTRICTED_APIS: restricted } = config;
  if (terms.kind === "off") {
    if (config.BATON_INSECURE !== undefined) {
      const note = (): void => audit.note("started_insecure", { address: config.BATON_PUBLISH ?? config.BATON_HOST });
      note();
      setInterval(note, INSECURE_EVERY_MS).unref();
    }
    return {
      guard: { ...openGuard(config.BATON_TENANT_HEADER, peers, weightsIn(config)), restricted },
      hasInFile: () => false,
      ticketing: undefined,
      readerCounts: undefined,
      limits: undefined,
    };
  }
  const { BATON_AUTH_CACHE_MS: staleMs, BATON_AUTH_GRACE_MS: graceMs } = config;
  const { peppers, usualLimits } = terms;
  const { path, isAlone = false } = terms.keys?.file ?? {};
  const records = isAlone && terms.tokens === undefined ? undefined : new KnownKeys({ redis, staleMs, graceMs, log });
  const inRedis = isAlone ? undefined : records;
  const beside = inRedis && { redis, keys: inRedis };
  const file = path === undefined ? undefined : await FileKeys.open({ path, beside, audit, log });
  const stopping = new AbortController();
  const ofKeys = allKeys(file, inRedis);
  const now = () => records?.now() || ofKeys.now();
  const limitsOf: LimitsOf = (id, record) => limitsInForce(id, file?.saysOf(id) ?? record, usualLimits);
  const jwks =
    terms.tokens &&
    (await Jwks.open({
      place: terms.tokens.jwks,
      onFailure: (reason) => audit.note("jwks_failed", { reason }),
      log,
    }));
  const tokens =
    terms.tokens && jwks && records && new Tokens({ terms: terms.tokens, jwks, tenants: records, now, limitsOf, log });
  const readers = new OpenReaders({ keys: tokens ? withTokens(ofKeys, tokens, now) : ofKeys, log });
  const authenticator = new Authenticator({
    keys: terms.keys && ofKeys,
    tokens,
    peppers,
    now,
    limitsOf,
    version: () => ofKeys.version,
    tenants: records,
  });
  const uses = new KeyUses({ authenticator, redis, now, log });
  const { signal } = stopping;
  const following = Promise.all([
    records?.follow(signal),
    jwks?.follow(signal),
    file?.watch(signal),
    readers.watch(signal),
    uses.watch(signal),
  ]);
  lifecycle.onClose("keys", async () => {
    stopping.abort();
    await following;
  });
  const tenants = new Tenants({ redis, limitsOf });
  const calls = new CallRates({ perSecond: config.BATON_CALLS_PER_SECOND, burst: config.BATON_CALLS_BURST });
  const readerCounts = new ReaderCounts();
  return {
    guard: keyGuard(
      {
        authenticator: uses,
        known: (given) => authenticator.known(given),
        weights: weightsIn(config),
        readers,
        tenants,
        calls,
        readerCounts,
        audit: requestAudit,
        restricted,
        metricsToken: metricsToken(config),
      },
      terms.open,
    ),
    hasInFile: (tenant) => file?.hasKeyOf(tenant) === true,
    ticketing: peppers.length === 0 ? undefined : { tickets: new Tickets(peppers), now },
    readerCounts,
    limits: tenants,
  };
}

type AdministrationSurroundings = Pick<AuthSurroundings, "redis" | "config" | "audit"> &
  Pick<OpenedAuth, "hasInFile" | "ticketing" | "readerCounts"> &
  Pick<Parts, "bus"> &
  Omit<UsedPlace, "readers">;

/** Opens the administration of keys and tenants, which refuses everybody if nobody needs a key. */
export function openAdministration(
  terms: AuthTerms,
  surroundings: AdministrationSurroundings,
  services: Pick<Services, "requests" | "webhooks" | "schedules" | "files">,
): AdministrationServices {
  const administration = terms.kind === "asks" ? administrationOf(terms.peppers, surroundings) : undefined;
  const areKeys = terms.kind === "asks" && terms.keys !== undefined;
  const { redis, bus, config, buckets, ticketing, readerCounts, audit } = surroundings;
  return {
    keys: new KeyService(areKeys ? administration : undefined, { redis, buckets, readers: readerCounts }),
    tenants: new TenantService({ administration, ...services }),
    tickets: new TicketService(ticketing && { ...ticketing, requests: services.requests, audit }),
    settings: new ProcessSettings({
      settings: showSettings(gatewaySettings, process.env),
      connections: () => ({ redis: redis.status === "ready", nats: bus.isUp() }),
      hasTenantHeader: config.BATON_TENANT_HEADER !== "",
    }),
    usage: new UsageService({ redis, buckets, days: config.BATON_USAGE_DAYS, administration }),
  };
}

function administrationOf(
  peppers: readonly Buffer[],
  { redis, config, audit, hasInFile }: AdministrationSurroundings,
): Administration {
  const keys = new Keys({ redis, pepper: peppers[0] });
  const mayChange = config.BATON_ADMIN_API === "on";
  return { keys, kept: new KeptKeys(redis, peppers), tenants: new TenantRecords(redis), mayChange, audit, hasInFile };
}

/** What the deployment hears of the clients; undefined if the operator takes the risk. */
export function authOf({ kind }: AuthTerms, config: GatewayConfig): "required" | "off" | undefined {
  if (kind === "asks") return "required";
  return config.BATON_INSECURE === undefined ? "off" : undefined;
}
