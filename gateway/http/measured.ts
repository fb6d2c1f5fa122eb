/** Node's classes of request and response, which count the bytes of bodies on the wire. */
import { IncomingMessage, ServerResponse } from "node:http";
import type { BodyBytes } from "./counts.js";

/** Counts while a request and its answer are on the way. */
type Counting = { -readonly [Member in keyof BodyBytes]: BodyBytes[Member] };

export class MeasuredRequest extends IncomingMessage {
  /** A class that notes more of an exchange has the bytes in its own place. */
  bytes: Counting = { bytesIn: 0, bytesOut: 0 };

  override push(piece: unknown, encoding?: BufferEncoding): boolean {
    this.bytes.bytesIn += bytesOf(piece, encoding);
    return super.push(piece, encoding);
  }
}

export class MeasuredResponse<Request extends MeasuredRequest> extends ServerResponse<Request> {
  override write(...given: unknown[]): boolean {
    this.#count(given);
    return super.write(...(given as [unknown, BufferEncoding]));
  }

  override end(...given: unknown[]): this {
    this.#count(given);
    return super.end(...(given as [unknown, BufferEncoding]));
  }

  #count([piece, encoding]: readonly unknown[]): void {
    // Node sends no body to HEAD, whatever the handler writes.
    if (this.req.method !== "HEAD") this.req.bytes.bytesOut += bytesOf(piece, encoding);
  }
}

export const measuredClasses = {
  IncomingMessage: MeasuredRequest,
  ServerResponse: MeasuredResponse as typeof ServerResponse,
};

/** @returns undefined for a request of another class */
export function measuredBytes(incoming: IncomingMessage): BodyBytes | undefined {
  return incoming instanceof MeasuredRequest ? incoming.bytes : undefined;
}

function bytesOf(piece: unknown, encoding: unknown): number {
  if (piece instanceof Uint8Array) return piece.length;
  if (typeof piece !== "string") return 0;
  return encoding === "latin1" ? piece.length : Buffer.byteLength(piece);
}
