/**
 * The settings of every fleet in tests, unless a test says otherwise. The fleet's plan sets the
 * lease (`leaseMs`), because tests wait for takeovers by the lease.
 */

/** More than a single bucket for every kind of Redis, so that tests see faults between buckets. */
export const BUCKETS = 16;

export const profile = {
  BATON_BUCKETS: String(BUCKETS),
  // Many gateways run side by side, and few tests read metrics.
  BATON_METRICS_PORT: "off",
  // Few tests speak gRPC.
  BATON_GRPC_PORT: "off",
  // Tests receive webhooks on this machine.
  BATON_WEBHOOK_ALLOW: "127.0.0.0/8",
};
