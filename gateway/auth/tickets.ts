/**
 * Tickets: a page in a browser, which cannot send a key's header to an EventSource or a WebSocket,
 * reads one request with a ticket. A ticket is signed and stored nowhere. It is good for as long as
 * its time and the key that asked for it are.
 */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";

export interface Ticket {
  /** Of the key that asked for the ticket. */
  readonly keyId: string;
  /** Whose the request is: the key's tenant, or the tenant for which an operator acted. */
  readonly tenant: string;
  /** The public id of the one request that the ticket opens. */
  readonly request: string;
  /** Redis ms. */
  readonly expiresAt: number;
  /** When the key or token ended, as it was then, in Redis ms; null: never. */
  readonly keyEnds: number | null;
}

type Fields = readonly [keyId: string, tenant: string, request: string, expiresAt: number, keyEnds: number | null];

const form = /^tk_([\w-]+)\.([\w-]{43})$/;
/** Names the form of the fields, so that another form needs another label. */
const LABEL = "baton: tickets 1";
const SIGNING_BYTES = 32;

export class Tickets {
  /** The first signs; all verify. */
  readonly #secrets: readonly Buffer[];

  /** @param peppers the newest first */
  constructor(peppers: readonly Buffer[]) {
    this.#secrets = peppers.map((pepper) => Buffer.from(hkdfSync("sha256", pepper, "", LABEL, SIGNING_BYTES)));
  }

  write({ keyId, tenant, request, expiresAt, keyEnds }: Ticket): string {
    const fields: Fields = [keyId, tenant, request, expiresAt, keyEnds];
    const payload = Buffer.from(JSON.stringify(fields)).toString("base64url");
    const [secret = Buffer.alloc(0)] = this.#secrets;
    return `tk_${payload}.${signatureOf(payload, secret).toString("base64url")}`;
  }

  /** @returns undefined if no gateway of this deployment has written the text */
  read(text: string): Ticket | undefined {
    const [, payload = "", signature = ""] = form.exec(text) ?? [];
    const given = Buffer.from(signature, "base64url");
    const isOurs = this.#secrets.some(
      (secret) => given.length === SIGNING_BYTES && timingSafeEqual(signatureOf(payload, secret), given),
    );
    if (!isOurs) return undefined;
    const fields = JSON.parse(Buffer.from(payload, "base64url").toString()) as Fields;
    const [keyId, tenant, request, expiresAt, keyEnds] = fields;
    return { keyId, tenant, request, expiresAt, keyEnds };
  }
}

function signatureOf(payload: string, secret: Buffer): Buffer {
  return createHmac("sha256", secret).update(payload).digest();
}
