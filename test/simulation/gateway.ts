/** Puts the queue loops of a gateway together, like gateway/service/open.ts, without any door. */
import { replySubject } from "#shared/queue/keys.js";
import type { Random } from "../support/fleet/random.js";
import { AdmissionBatcher } from "../../gateway/admission/batcher.js";
import { Deadlines } from "../../gateway/admission/deadlines.js";
import type { Inference } from "../../gateway/admission/inference.js";
import { QueueLoads } from "../../gateway/admission/loads.js";
import { QueuedInference } from "../../gateway/admission/submit.js";
import { GoneBack } from "../../gateway/fleet/gone-back.js";
import { FleetWatch } from "../../gateway/fleet/watch.js";
import { PendingRequests } from "../../gateway/outcomes/pending.js";
import { OutcomeSweeper } from "../../gateway/outcomes/sweep.js";
import { Readers } from "../../gateway/stream/readers.js";
import { Relay } from "../../gateway/stream/relay.js";
import { secret } from "./deployment.js";
import { Process, type Setting } from "./process.js";

/** A gateway that takes requests as soon as it is ready. */
export class Gateway extends Process {
  inference: Inference | undefined;
  fleet: FleetWatch | undefined;

  constructor(setting: Setting, name: string, random: Random) {
    super(setting, name, random);
    void this.#open();
  }

  async #open(): Promise<void> {
    const { world, log, name: gateway } = this;
    const { buckets, nats } = this.setting;
    const redis = this.connect("redis");
    const forLarge = this.connect("large");
    const bus = nats.busOf(this.owner);
    const { signal } = new AbortController();
    const limits = { queue: 1_000, waitingPerSequence: 64, liveSequences: 1_000 };
    const pending = new PendingRequests({ redis, bus, gateway, secret, world, log });
    await bus.subscribe(replySubject(gateway), (message) => pending.receive(message));
    const sweeper = new OutcomeSweeper(redis, world);
    const goneBack = new GoneBack(log);
    const watched = { redis, buckets, log, onGone: () => pending.lookAtAll(), goneBack, limits, world };
    const loads = new QueueLoads({ redis, limits, buckets, world, log });
    const { shortScripts } = this.setting;
    const terms = { gateway, limits, shares: loads, buckets, shortScripts };
    const batcher = new AdmissionBatcher(redis, terms, goneBack, forLarge, world);
    const fleet = await FleetWatch.start(watched, signal);
    void batcher.confirmWhileOpen(signal);
    void pending.watch(signal);
    void sweeper.sweepWhileOpen(signal);
    void loads.watch(signal);
    // Only streams need these parts, so they do nothing here.
    const readers = new Readers({ redis, graceMs: 1_000, log });
    const relay = new Relay({ redis, bus, models: fleet, readers, onEnd: () => undefined, log });
    this.inference = new QueuedInference({
      queue: {
        redis,
        batcher,
        loads,
        limits,
        buckets,
        models: fleet,
        secret,
        world,
        idempotencyTtlMs: 3_600_000,
        weights: undefined,
      },
      pending,
      sweeper,
      bus,
      relay,
      deadlines: new Deadlines({ redis, bus, log }),
      outcomeTtlMs: 60_000,
      streamTtlMs: 60_000,
      resultTtlMs: 3_600_000,
      graceMs: 1_000,
      log,
    });
    this.fleet = fleet;
    this.setting.trace.note(gateway, "ready");
  }
}
