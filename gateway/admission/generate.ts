/** The journey of one generation: subscribe, admit, hand its stream on; in that order. */
import type { Logger } from "pino";
import { encodeRequestId, type RequestAddress } from "#shared/contract/request-id.js";
import { InferenceError } from "#shared/errors.js";
import { encodeFrame } from "#shared/frame.js";
import type { Bus } from "#shared/nats/connect.js";
import type { Generate, GenerationRequest, OpenStream } from "../inference.js";
import { Cursor } from "../stream/cursor.js";
import type { Relay } from "../stream/relay.js";
import type { Deadlines } from "./deadlines.js";
import { endRequest } from "./end.js";
import { enter, keptMs, type Door } from "./enter.js";
import { placeOf } from "./place.js";

export interface GenerateSettings {
  readonly door: Door;
  readonly bus: Bus;
  readonly relay: Relay;
  readonly deadlines: Deadlines;
  /** How long a stream's log is kept after its end. */
  readonly streamTtlMs: number;
  /** The same for requests that run in the background. */
  readonly resultTtlMs: number;
  /** How long a stream runs on without a reader. */
  readonly graceMs: number;
  readonly log: Logger;
}

export function generator(settings: GenerateSettings): Generate {
  return async (request) => {
    try {
      return await generate(settings, request);
    } catch (error) {
      if (error instanceof InferenceError) throw error;
      settings.log.error({ error: error instanceof Error ? error.stack : String(error) }, "generate failed");
      throw new InferenceError("internal", "internal error", { cause: error });
    }
  };
}

async function generate(settings: GenerateSettings, request: GenerationRequest): Promise<OpenStream> {
  const { door, relay, deadlines, streamTtlMs, resultTtlMs, graceMs } = settings;
  const { background, deadlineMs, spec } = request;
  const address = placeOf(request, door);
  const frame = encodeFrame({ generation: spec }, []);
  const outcomeTtlMs = keptMs(door, request, background ? resultTtlMs : streamTtlMs);
  // What is published between the two is not missed even if the server hears of the interest later:
  // the log has it.
  const subscribed = background ? Promise.resolve() : relay.prepare(address);
  try {
    const attendedMs = background ? 0 : graceMs;
    const [entered] = await Promise.all([
      enter(door, { request, address, frame, outcomeTtlMs, attendedMs }),
      subscribed,
    ]);
    const isNew = entered.said === "admitted";
    const hasEnded = entered.said === "known" && entered.outcome !== undefined;
    // Also where only a retry got through: whoever admitted it may be gone.
    if (!hasEnded) deadlines.expect(address, deadlineMs, spec.restMs, outcomeTtlMs);
    if (isNew) relay.admitted(address);
    else relay.forget(address);
    return openStream(settings, address, isNew, outcomeTtlMs);
  } catch (error) {
    relay.forget(address);
    // If it was admitted after all, nobody knows its id, so nobody will ever read it.
    const isUnknown = error instanceof InferenceError && error.code === "outcome_unknown";
    if (isUnknown && !background && request.idempotencyKey === undefined) {
      cancel(settings, address, outcomeTtlMs).catch(() => undefined);
    }
    throw error;
  }
}

/**
 * Nobody waits for it, so Redis may take its time. After the grace period the stream's worker ends
 * it by itself.
 */
async function cancel(settings: GenerateSettings, address: RequestAddress, ttlMs: number): Promise<void> {
  const { door, bus, deadlines, graceMs } = settings;
  const ending = { code: "cancelled", message: "the request was cancelled", ttlMs, stream: true } as const;
  await endRequest({ redis: door.redis, bus }, address, ending, graceMs);
  deadlines.forget(address);
}

function openStream(settings: GenerateSettings, address: RequestAddress, isNew: boolean, ttlMs: number): OpenStream {
  const { relay } = settings;
  return {
    id: encodeRequestId(address),
    read: (from, signal) =>
      (isNew && from === 0 ? Cursor.fresh(relay, address) : Cursor.at(relay, address, from)).pages(signal),
    cancel: () => cancel(settings, address, ttlMs),
  };
}
