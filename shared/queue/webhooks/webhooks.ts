/** Webhooks, read with plain commands. The callers of write-webhook.lua define their JSON. */
import type { RedisClient } from "../../redis/connect.js";
import { webhookKeys } from "../keys.js";

/** @returns the webhook as written; undefined if there is none */
export async function readWebhook(redis: RedisClient, tenant: string, id: string): Promise<string | undefined> {
  return (await redis.hget(webhookKeys.webhooks(tenant), id)) ?? undefined;
}

export function readWebhooks(redis: RedisClient, tenant: string): Promise<string[]> {
  return redis.hvals(webhookKeys.webhooks(tenant));
}

export function countWebhooks(redis: RedisClient, tenant: string): Promise<number> {
  return redis.hlen(webhookKeys.webhooks(tenant));
}

/** Every tenant that has or had webhooks, with the revision of its webhooks. */
export async function readRevisions(redis: RedisClient): Promise<ReadonlyMap<string, number>> {
  const found = await redis.hgetall(webhookKeys.revisions);
  return new Map(Object.entries(found).map(([tenant, revision]) => [tenant, Number(revision)]));
}
