/**
 * The settings of every fleet of tests, unless a test says otherwise. The lease is a part of the
 * fleet's plan (`leaseMs`), because tests wait for takeovers by it.
 */

/** So tests see what goes wrong between buckets, wherever the fleet's Redis is. */
export const BUCKETS = 16;

export const profile = {
  BATON_BUCKETS: String(BUCKETS),
  // Webhooks of tests are received on this machine.
  BATON_WEBHOOK_ALLOW: "127.0.0.0/8",
};
