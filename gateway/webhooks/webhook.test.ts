import { describe, expect, it } from "vitest";
import { newSecret, SealedError, SecretBox } from "./secrets.js";
import { ownerOf, parseWebhook, secretsOf, UnreadableError, webhookText, type Webhook } from "./webhook.js";

const NOW = 1_790_000_000_000;
const [box, other] = [new SecretBox(Buffer.alloc(32, 1)), new SecretBox(Buffer.alloc(32, 2))];
const named = { tenant: "default", id: "wh_1" };
const owner = ownerOf(named);
const [before, after] = [newSecret(), newSecret()];
const webhook = (secret: string, previous?: string): Webhook => ({
  ...named,
  url: "https://example.com/",
  events: ["sequence.expired"],
  enabled: true,
  createdAt: NOW,
  secret,
  ...(previous !== undefined && { previous: { secret: previous, until: NOW + 1 } }),
});

describe("secretsOf", () => {
  it("has the newest first, and the one before until the overlap ends", () => {
    const rotated = webhook(box.seal(after, owner), box.seal(before, owner));
    expect(secretsOf(rotated, box, NOW)).toEqual([after, before]);
    expect(secretsOf(rotated, box, NOW + 1)).toEqual([after]);
  });

  it("signs with the newest alone where the one before was encrypted with another key", () => {
    expect(secretsOf(webhook(box.seal(after, owner), other.seal(before, owner)), box, NOW)).toEqual([after]);
    expect(() => secretsOf(webhook(other.seal(after, owner)), box, NOW)).toThrow(SealedError);
  });
});

describe("parseWebhook", () => {
  it("reads what was written, and repeats nothing of what it cannot read", () => {
    const text = webhookText(webhook(`open:${after}`));
    expect(parseWebhook(text)).toEqual(webhook(`open:${after}`));
    for (const wrong of [after, text.slice(1), text.replace("sequence.expired", after), "{}"]) {
      expect(() => parseWebhook(wrong)).toThrow(UnreadableError);
      expect(() => parseWebhook(wrong)).not.toThrow(/whsec_/);
    }
  });
});
