/**
 * The most buckets that a deployment may have. It stands by itself: the settings are read where
 * nothing of the queue is loaded.
 */
export const MOST_BUCKETS = 1_024;
