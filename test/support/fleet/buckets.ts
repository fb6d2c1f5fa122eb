/**
 * A fleet of tests that is told no number has so many buckets, wherever its Redis is: so tests see
 * what goes wrong between buckets.
 */
export const BUCKETS = 16;
