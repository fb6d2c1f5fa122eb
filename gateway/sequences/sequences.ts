/**
 * The operations on a sequence as a whole: look, end, fork, rewind, export, import. Every gateway
 * offers them for every sequence. Each takes the tenant of the caller, under which alone the id
 * names the sequence.
 */
import { createHash, randomUUID } from "node:crypto";
import type { ServedModel } from "#shared/contract/announcement.js";
import { bootOf, decodeCheckpoint, encodeCheckpoint, nameRun } from "#shared/contract/checkpoint.js";
import { encodeCorrelationId, type CorrelationId } from "#shared/contract/sequence.js";
import { decodeSequenceFrame, encodeSequenceFrame, type SequenceFrame } from "#shared/contract/sequence-frame.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { bucketOf, pinOf, sequenceName } from "#shared/queue/address.js";
import { limitsOf, type QueueLimits, type Shares } from "#shared/queue/admission/limits.js";
import type { SequenceAddress } from "#shared/queue/sequences/address.js";
import { describeSequence } from "#shared/queue/sequences/describe.js";
import { endSequence } from "#shared/queue/sequences/end.js";
import { exportSequence, LARGE_STATE_BYTES, type ExportedSequence } from "#shared/queue/sequences/export.js";
import { fork } from "#shared/queue/sequences/fork.js";
import { importSequence, stampForImport } from "#shared/queue/sequences/import.js";
import { firstPage, listSequences, type Page } from "#shared/queue/sequences/list.js";
import type { SequenceTerms } from "#shared/queue/sequences/making.js";
import type { Once } from "#shared/queue/sequences/once.js";
import { recall } from "#shared/queue/sequences/recall.js";
import { rewind } from "#shared/queue/sequences/rewind.js";
import type { SequenceView } from "#shared/queue/sequences/view.js";
import { versionKey } from "#shared/queue/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { isPointer, type SleepingStates } from "#shared/sleeping-states.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import { beginning, placeText, type Place } from "./page.js";
import { checkpointGone, sequenceBusy, sequenceExists, sequenceUnknown, stepInFuture } from "./refusals.js";
import { sequenceIdOf, type Change, type Named, type OfModel } from "./sequence-id.js";

export interface SequencesSettings {
  readonly redis: RedisClient;
  /** A connection for large states, so that others do not wait for their bytes. */
  readonly forLarge?: RedisClient;
  readonly buckets: number;
  readonly models: {
    /** @returns the name of the live worker that has this `boot` */
    workerOf(boot: string): string | undefined;
  };
  readonly limits: QueueLimits;
  /** Absent where there is one server. */
  readonly shares?: Shares;
  /** States that lie on disk; absent where none do. */
  readonly sleeping?: Pick<SleepingStates, "read">;
  /** How long an `Idempotency-Key` is remembered, in ms. */
  readonly idempotencyTtlMs: number;
}

export interface SequenceDescription {
  readonly sequence_id: bigint | string;
  readonly step: number;
  readonly idle_deadline: string | null;
  readonly worker: string | null;
  readonly version: string;
  readonly state_bytes: number;
  readonly checkpoints: readonly number[];
}

/** A change that has no key of its client's is remembered for as long as it is retried here. */
const UNNAMED_TTL_MS = 60_000;
/** So many calls of a listing look at some hundred thousand sequences of others. */
const MOST_CALLS = 100;

export class Sequences {
  readonly #settings: SequencesSettings;

  constructor(settings: SequencesSettings) {
    this.#settings = settings;
  }

  get buckets(): number {
    return this.#settings.buckets;
  }

  /** @throws InferenceError `sequence_unknown` or `unavailable` */
  async describe(named: Named): Promise<SequenceDescription> {
    const found = await askRedis(() => describeSequence(this.#settings.redis, this.#address(named)));
    if (found.said === "unknown" || !isOf(named, found.view)) throw sequenceUnknown(named);
    return this.#description(found.view);
  }

  /**
   * Gives a page of the caller's sequences of a model, in no order. One of which steps run all the
   * while is there once at least.
   * @returns the page, and where the next one begins; undefined where none is left
   */
  async list(
    { tenant, model, version }: OfModel,
    limit: number,
    from: Place = beginning,
  ): Promise<{ readonly sequences: readonly SequenceDescription[]; readonly next: string | undefined }> {
    const { redis, buckets } = this.#settings;
    const sequences: SequenceDescription[] = [];
    let place: Place | undefined = from;
    for (let calls = 0; place !== undefined && sequences.length < limit && calls < MOST_CALLS; calls++) {
      const start: Place = place;
      const where = { bucket: start.bucket, model: model.name };
      const most = limit - sequences.length;
      const page = await askRedis(() => listSequences(redis, where, tenant, start, most, version));
      sequences.push(...page.views.map((view) => this.#description(view)));
      place = placeAfter(start, page, buckets);
    }
    return { sequences, next: place && placeText(place) };
  }

  /**
   * Ends the sequence. What was admitted of it runs to its end.
   * @returns how it stood
   * @throws InferenceError `sequence_unknown`, `idempotency_mismatch` or `outcome_unknown`
   */
  async end(change: Change): Promise<SequenceDescription> {
    const { redis } = this.#settings;
    await this.#checkVersion(change);
    const once = this.#once(change, ["end"]);
    const ended = await changeInRedis(() => endSequence(redis, this.#address(change), once));
    if (ended.said === "ended") return this.#description(ended.view);
    throw ended.said === "unknown" ? sequenceUnknown(change) : mismatch();
  }

  /**
   * @param id of the new sequence
   * @param step after which it goes on; undefined for the last one that has ended
   * @returns the new sequence
   */
  async fork(change: Change, id: CorrelationId, step: number | undefined): Promise<SequenceDescription> {
    const { redis } = this.#settings;
    await this.#checkVersion(change);
    const [from, to] = [this.#address(change), this.#address({ ...change, id })];
    if (from.name === to.name) throw sequenceExists({ ...change, id });
    const once = this.#once(change, ["fork", to.name, step ?? null]);
    const terms = await this.#terms(change, to);
    if (from.bucket !== to.bucket) return this.#forkElsewhere(change, { ...change, id }, step, once, terms);
    let forked = await changeInRedis(() => fork(redis, from, to.name, terms, step, once));
    if (forked.said === "asleep") {
      await this.#wake(from, forked.version);
      forked = await changeInRedis(() => fork(redis, from, to.name, terms, step, once));
    }
    switch (forked.said) {
      case "forked":
        return this.#description(forked.view);
      case "unknown":
        throw sequenceUnknown(change);
      case "busy":
      case "future":
      case "gone":
        throw noCheckpoint(forked.said, change, forked.view, step);
      case "asleep":
        throw fixedError("unavailable", "asleep");
      default:
        throw notMade(forked.said, { ...change, id });
    }
  }

  /**
   * Takes the sequence back to an earlier step.
   * @returns how it stands then
   */
  async rewind(change: Change, step: number): Promise<SequenceDescription> {
    const { redis } = this.#settings;
    await this.#checkVersion(change);
    const once = this.#once(change, ["rewind", step]);
    const rewound = await changeInRedis(() =>
      rewind(redis, this.#address(change), step, maxIdleMs(change.model), once),
    );
    switch (rewound.said) {
      case "rewound":
        return this.#description(rewound.view);
      case "unknown":
        throw sequenceUnknown(change);
      case "mismatch":
        throw mismatch();
      default:
        throw noCheckpoint(rewound.said, change, rewound.view, step);
    }
  }

  /**
   * Makes a frame of one of the sequence's checkpoints.
   * @param step undefined for the last one that has ended
   */
  async export(named: Named, step: number | undefined): Promise<Buffer> {
    await this.#checkVersion(named);
    const { step: number, pin, checkpoint } = await this.#exported(named, this.#address(named), step);
    const tensors = checkpoint && decodeCheckpoint(checkpoint.frame, checkpoint.version).tensors;
    return encodeSequenceFrame({ step: number, model: named.model.name, ...pin, tensors });
  }

  /**
   * Makes a sequence of a frame.
   * @param others other versions of the model under which it may go on
   * @throws InferenceError `frame_corrupt`, `frame_mismatch`, `sequence_exists` and as above
   */
  async import(change: Change, bytes: Buffer, others: readonly ServedModel[]): Promise<SequenceDescription> {
    const frame = decodeSequenceFrame(bytes);
    const model = servedAs(frame, [change.model, ...others]);
    const { version, digest } = pinOf(model);
    const { step, tensors } = frame;
    const checkpoint = tensors && encodeCheckpoint(nameRun("import"), tensors);
    const to = this.#address(change);
    const once = this.#once(change, ["import", createHash("sha256").update(bytes).digest("base64url")]);
    return this.#import({ ...change, model }, to, { step, pin: { version, digest }, checkpoint }, once);
  }

  async #forkElsewhere(
    from: Change,
    to: Change,
    step: number | undefined,
    once: Once,
    terms: SequenceTerms,
  ): Promise<SequenceDescription> {
    const { redis } = this.#settings;
    const target = this.#address(to);
    // The old sequence may have gone on since the first try.
    const before = await askRedis(() => recall(redis, target, once));
    if (before.said === "made") return this.#description(before.view);
    if (before.said === "mismatch") throw mismatch();
    const exported = stampForImport(await this.#exported(from, this.#address(from), step));
    return this.#import(to, target, exported, once, terms);
  }

  async #exported(named: Named, from: SequenceAddress, step: number | undefined): Promise<ExportedSequence> {
    const { redis, forLarge, sleeping } = this.#settings;
    const exported = await askRedis(() => exportSequence(redis, from, step, forLarge));
    if (exported.said === "exported") {
      const { checkpoint } = exported.sequence;
      if (!isPointer(checkpoint?.frame)) return exported.sequence;
      return { ...exported.sequence, checkpoint: { ...checkpoint, frame: await awake(sleeping, checkpoint.frame) } };
    }
    if (exported.said === "unknown") throw sequenceUnknown(named);
    throw noCheckpoint(exported.said, named, exported.view, step);
  }

  async #import(
    change: Change,
    to: SequenceAddress,
    exported: ExportedSequence,
    once: Once,
    terms?: SequenceTerms,
  ): Promise<SequenceDescription> {
    const redis = this.#connectionFor(exported.checkpoint?.frame);
    const known = terms ?? (await this.#terms(change, to));
    const imported = await changeInRedis(() => importSequence(redis, to, exported, known, once));
    if (imported.said !== "imported") throw notMade(imported.said, change);
    return this.#description(imported.view);
  }

  /** Puts a checkpoint that lies on disk back into Redis. */
  async #wake(of: SequenceAddress, version: string): Promise<void> {
    const { redis, sleeping } = this.#settings;
    const key = versionKey(of, of.name, version);
    const stored = await askRedis(() => redis.getBuffer(key));
    if (!isPointer(stored)) return;
    const frame = await awake(sleeping, stored);
    await changeInRedis(() => this.#connectionFor(frame).set(key, frame, "KEEPTTL", "XX"));
  }

  #connectionFor(frame: Buffer | undefined): RedisClient {
    const { redis, forLarge = redis } = this.#settings;
    return frame !== undefined && frame.length > LARGE_STATE_BYTES ? forLarge : redis;
  }

  /**
   * A path that names a version knows no sequences of others.
   * @throws InferenceError `sequence_unknown`
   */
  async #checkVersion(named: Named): Promise<void> {
    if (named.version === undefined) return;
    const found = await askRedis(() => describeSequence(this.#settings.redis, this.#address(named)));
    // One that is there no more may have been changed by an earlier try.
    if (found.said !== "unknown" && !isOf(named, found.view)) throw sequenceUnknown(named);
  }

  #address({ tenant, model, id }: Named): SequenceAddress {
    const encoded = encodeCorrelationId(id);
    const bucket = bucketOf(model.name, tenant, encoded, this.#settings.buckets);
    return { bucket, model: model.name, name: sequenceName(tenant, encoded) };
  }

  /** @param asked all that makes two uses of one key the same change */
  #once(change: Change, asked: readonly (string | number | null)[]): Once {
    const { idempotencyKey: key, version } = change;
    const digest = createHash("sha256")
      .update(JSON.stringify([version ?? null, ...asked]))
      .digest("base64url");
    const of = this.#address(change).name;
    if (key === undefined) return { key: randomUUID(), of, digest, ttlMs: UNNAMED_TTL_MS };
    return { key, of, digest, ttlMs: this.#settings.idempotencyTtlMs };
  }

  async #terms({ tenant, model }: OfModel, { bucket }: SequenceAddress): Promise<SequenceTerms> {
    const { limits, shares, buckets } = this.#settings;
    const names = { models: [model.name], tenants: [tenant] };
    await shares?.prepare(names);
    const known = shares?.limitsOf(bucket, names) ?? limitsOf(limits, names);
    const liveSequences = known.models[model.name]?.[2] ?? limits.liveSequences;
    return { maxIdleMs: maxIdleMs(model), liveSequences, buckets };
  }

  #description({ name, step, pin, lapses, version, stateBytes, checkpoints }: SequenceView): SequenceDescription {
    const boot = version === undefined ? undefined : bootOf(version);
    return {
      sequence_id: sequenceIdOf(name),
      step,
      idle_deadline: lapses === undefined ? null : new Date(lapses).toISOString(),
      worker: (boot === undefined ? undefined : this.#settings.models.workerOf(boot)) ?? null,
      version: pin.version,
      state_bytes: stateBytes,
      checkpoints,
    };
  }
}

/** A page ends within a bucket, or with it. */
function placeAfter({ bucket }: Place, { next }: Page, buckets: number): Place | undefined {
  if (next !== undefined) return { bucket, ...next };
  return bucket + 1 < buckets ? { bucket: bucket + 1, ...firstPage } : undefined;
}

function isOf({ version }: OfModel, { pin }: SequenceView): boolean {
  return version === undefined || version === pin.version;
}

/**
 * How long the model's sequences are kept between their steps.
 * @throws InferenceError `sequence_unknown` where it has none
 */
function maxIdleMs({ name, sequence, generator }: ServedModel): number {
  const ms = sequence?.maxIdleMs ?? generator?.maxIdleMs;
  if (ms === undefined) throw new InferenceError("sequence_unknown", `model '${name}' has no sequences`);
  return ms;
}

/**
 * Finds the files that a frame was exported of.
 * @throws InferenceError `frame_mismatch`
 */
function servedAs({ model, version, digest }: SequenceFrame, offered: readonly ServedModel[]): ServedModel {
  const name = offered[0]?.name ?? "";
  if (model !== name) {
    throw new InferenceError("frame_mismatch", `the frame is of model '${model}', not of model '${name}'`);
  }
  const fitting = offered.filter((one) => pinOf(one).digest === digest);
  const served = fitting.find((one) => one.version === version) ?? fitting[0];
  if (served !== undefined) return served;
  throw new InferenceError(
    "frame_mismatch",
    `the frame is of files of model '${model}' with digest ${digest} (version ${version}), which are not served here; ` +
      `served are ${offered.map((one) => `${pinOf(one).digest} (version ${one.version})`).join(", ")}`,
  );
}

/**
 * Reads a checkpoint that lies on disk.
 * @throws InferenceError `unavailable` where this gateway cannot, `state_lost` where it is gone
 */
async function awake(sleeping: SequencesSettings["sleeping"], pointer: Buffer): Promise<Buffer> {
  const frame = await sleeping?.read(pointer);
  if (frame === null) throw fixedError("state_lost", "checkpointGone");
  if (frame === undefined) throw fixedError("unavailable", "asleep");
  return frame;
}

function mismatch(): InferenceError {
  return fixedError("idempotency_mismatch", "usual");
}

function noCheckpoint(
  said: "busy" | "future" | "gone",
  named: Named,
  view: SequenceView,
  step: number | undefined,
): InferenceError {
  if (said === "busy") return sequenceBusy(named);
  if (said === "future") return stepInFuture(named, view, step ?? view.step);
  return checkpointGone(named, view, step ?? view.step);
}

function notMade(said: "exists" | "too-many-sequences" | "mismatch", to: Named): InferenceError {
  if (said === "exists") return sequenceExists(to);
  return said === "mismatch" ? mismatch() : fixedError("sequence_limit", "usual");
}
