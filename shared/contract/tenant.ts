/**
 * The tenant of every request until requests carry API keys. A tenant's name is `[A-Za-z0-9_-]+`,
 * since it becomes part of Redis keys and NATS subjects.
 */
export const DEFAULT_TENANT = "default";
