/** The typed wrapper of write-webhook.lua: makes, changes or removes a webhook. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text, word } from "../../redis/script.js";
import { webhookKeys } from "../keys.js";

export type Written =
  | { readonly said: "written"; readonly revision: number; readonly webhooks: readonly string[] }
  | { readonly said: "conflict" | "full" };

const script = defineScript(
  new URL("./write-webhook.lua", import.meta.url),
  (reply): Written => {
    const [first, revision, webhooks] = list(reply);
    const said = word(first, ["written", "conflict", "full"]);
    return said === "written" ? { said, revision: integer(revision), webhooks: list(webhooks).map(text) } : { said };
  },
  {
    keys: ["webhooks", "revisions"],
    args: ["tenant", "id", "from", "to", "most"],
    durable: true,
  },
);

/**
 * @param from the webhook that the caller has read; undefined to make the webhook
 * @param to the new webhook; undefined to remove the webhook
 * @param most webhooks that a tenant may have
 */
export function writeWebhook(
  redis: RedisClient,
  { tenant, id }: { readonly tenant: string; readonly id: string },
  from: string | undefined,
  to: string | undefined,
  most: number,
): Promise<Written> {
  const keys = { webhooks: webhookKeys.webhooks(tenant), revisions: webhookKeys.revisions };
  return script(redis, keys, { tenant, id, from: from ?? "", to: to ?? "", most });
}
