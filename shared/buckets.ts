/**
 * The most buckets of a deployment. In a file of its own, because the settings load nothing of the
 * queue.
 */
export const MOST_BUCKETS = 1_024;
