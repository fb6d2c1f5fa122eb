/**
 * The watchers of gRPC's own protocol for health. The library for that protocol answers by the name
 * of a service, and Triton does not, so it does not fit.
 */
import type { ServerWritableStream } from "@grpc/grpc-js";
import { fixedError } from "#shared/errors.js";
import { healthOf, type Health } from "./methods.js";

/** How often a watcher hears at the most that the health has changed, in ms. */
const LOOK_MS = 1_000;
/** Most watchers of a gateway. */
const MOST_WATCHERS = 1_024;

export type HealthWatcher = ServerWritableStream<object, Health>;

export class HealthWatchers {
  readonly #isReady: () => boolean;
  /** What each has heard last. */
  readonly #watchers = new Map<HealthWatcher, Health["status"]>();
  #looking: NodeJS.Timeout | undefined;

  constructor(isReady: () => boolean) {
    this.#isReady = isReady;
  }

  /** @throws InferenceError if there are too many */
  add(call: HealthWatcher): void {
    if (call.destroyed) return;
    if (this.#watchers.size >= MOST_WATCHERS) throw fixedError("unavailable", "tooManyFollowers");
    const health = healthOf(this.#isReady());
    this.#watchers.set(call, health.status);
    call.once("close", () => this.#forget(call));
    call.write(health);
    this.#looking ??= setInterval(() => this.look(), LOOK_MS).unref();
  }

  /** Tells the watchers if the health has changed. */
  look(): void {
    const health = healthOf(this.#isReady());
    for (const [call, told] of this.#watchers) {
      if (told === health.status) continue;
      this.#watchers.set(call, health.status);
      call.write(health);
    }
  }

  /** Ends all watchers. */
  close(): void {
    this.look();
    for (const call of this.#watchers.keys()) call.end();
  }

  #forget(call: HealthWatcher): void {
    this.#watchers.delete(call);
    if (this.#watchers.size > 0) return;
    clearInterval(this.#looking);
    this.#looking = undefined;
  }
}
