/**
 * gRPC's own health checks. As with Triton, the name of a service means nothing: the answer is
 * whether the server is ready. The library for this answers by name, so it does not fit.
 */
import type { handleServerStreamingCall, handleUnaryCall, ServerWritableStream } from "@grpc/grpc-js";

interface Health {
  readonly status: "SERVING" | "NOT_SERVING";
}

/** How often a watcher hears at the earliest that the health has changed, in ms. */
const LOOK_MS = 1_000;
/** Most watchers of a gateway. */
const MOST_WATCHERS = 1_024;

export class HealthChecks {
  readonly #isReady: () => boolean;
  readonly #watchers = new Map<ServerWritableStream<object, Health>, Health["status"]>();
  #looking: NodeJS.Timeout | undefined;

  constructor(isReady: () => boolean) {
    this.#isReady = isReady;
  }

  readonly check: handleUnaryCall<object, Health> = (_, respond) => {
    respond(null, this.#health());
  };

  readonly watch: handleServerStreamingCall<object, Health> = (call) => {
    if (this.#watchers.size >= MOST_WATCHERS) {
      call.emit("error", { code: 8, details: "as many clients watch the health of this gateway as may" });
      return;
    }
    const health = this.#health();
    this.#watchers.set(call, health.status);
    call.once("cancelled", () => this.#forget(call)).once("close", () => this.#forget(call));
    call.write(health);
    this.#looking ??= setInterval(() => this.look(), LOOK_MS).unref();
  };

  /** Tells the watchers if the health has changed. */
  look(): void {
    const health = this.#health();
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

  #forget(call: ServerWritableStream<object, Health>): void {
    this.#watchers.delete(call);
    if (this.#watchers.size > 0) return;
    clearInterval(this.#looking);
    this.#looking = undefined;
  }

  #health(): Health {
    return { status: this.#isReady() ? "SERVING" : "NOT_SERVING" };
  }
}
