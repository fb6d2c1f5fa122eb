/**
 * Makes sequences from a checkpoint of another sequence: forks, and states that travel as bytes
 * (export and import).
 */
import { createHash } from "node:crypto";
import type { ServedModel } from "#shared/contract/announcement.js";
import { decodeCheckpoint, encodeCheckpoint, nameRun } from "#shared/contract/checkpoint.js";
import type { CorrelationId } from "#shared/contract/sequence.js";
import { carriedStateFault } from "#shared/contract/states.js";
import { decodeSequenceFrame, encodeSequenceFrame, type SequenceFrame } from "#shared/contract/sequence-frame.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { pinOf } from "#shared/queue/address.js";
import { limitsOf, type QueueLimits, type Shares } from "#shared/queue/admission/limits.js";
import { versionKey } from "#shared/queue/keys.js";
import type { SequenceAddress } from "#shared/queue/sequences/address.js";
import { exportSequence, LARGE_STATE_BYTES, type ExportedSequence } from "#shared/queue/sequences/export.js";
import { fork } from "#shared/queue/sequences/fork.js";
import { importSequence, stampForImport } from "#shared/queue/sequences/import.js";
import type { SequenceTerms } from "#shared/queue/sequences/making.js";
import type { Once } from "#shared/queue/sequences/once.js";
import { recall } from "#shared/queue/sequences/recall.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { isPointer, type SleepingStates } from "#shared/sleeping-states.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import type { ModelDirectory } from "../fleet/models.js";
import { checkSequenceId } from "../formats/kserve/validate.js";
import { checkVersion, maxIdleMs, onceOf } from "../sequences/change.js";
import { describeView, type SequenceDescription, type WorkerNames } from "../sequences/description.js";
import { mismatch, noCheckpoint, notMade, sequenceExists, sequenceUnknown } from "../sequences/refusals.js";
import { addressOf, type Change, type Named, type OfModel } from "../sequences/sequence-id.js";

export interface SequenceServiceSettings {
  readonly redis: RedisClient;
  /** A connection for large states, so that other calls do not wait for their bytes. */
  readonly forLarge?: RedisClient;
  readonly buckets: number;
  readonly models: WorkerNames & { readonly directory: ModelDirectory };
  readonly limits: QueueLimits;
  /** Whether all sequences belong to one tenant, who may know how many there are. */
  readonly hasOneTenant: boolean;
  /** Most bytes of a state that a client imports. */
  readonly maxStateBytes: number;
  /** Undefined if all buckets share their counts. */
  readonly shares?: Shares;
  /** Reads states from disk; undefined if the deployment keeps none there. */
  readonly sleeping?: Pick<SleepingStates, "read">;
  /** How long Redis remembers an `Idempotency-Key`, in ms. */
  readonly idempotencyTtlMs: number;
}

export class SequenceCopies {
  readonly #settings: SequenceServiceSettings;

  constructor(settings: SequenceServiceSettings) {
    this.#settings = settings;
  }

  /**
   * Makes a second sequence that continues from the state that the first sequence has now, or had
   * after `step`.
   * @param id of the new sequence
   * @param step after which the new sequence continues; undefined for the last step that has ended
   * @returns the new sequence
   * @throws InferenceError `sequence_unknown`, `sequence_exists`, `sequence_limit`,
   * `sequence_busy`, `checkpoint_gone`, `state_lost`, `state_corrupt`, `idempotency_mismatch`,
   * `outcome_unknown` or `unavailable`; `invalid_argument` for an id that the model does not take,
   * or a step that the sequence has not reached
   */
  async fork(change: Change, id: CorrelationId, step: number | undefined): Promise<SequenceDescription> {
    const { redis, buckets, models } = this.#settings;
    checkSequenceId(change.model, id);
    await checkVersion(change, this.#settings);
    const [from, to] = [addressOf(change, buckets), addressOf({ ...change, id }, buckets)];
    if (from.name === to.name) throw sequenceExists({ ...change, id });
    const once = onceOf(change, this.#settings, ["fork", to.name, step ?? null]);
    const terms = await this.#terms(change, to);
    if (from.bucket !== to.bucket) return this.#forkElsewhere(change, { ...change, id }, step, once, terms);
    let forked = await changeInRedis(() => fork(redis, from, to.name, terms, step, once));
    if (forked.said === "asleep") {
      await this.#wake(from, forked.version);
      forked = await changeInRedis(() => fork(redis, from, to.name, terms, step, once));
    }
    switch (forked.said) {
      case "forked":
        return describeView(forked.view, models, change.model);
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
   * Reads a checkpoint of the sequence as bytes that `import` takes.
   * @param step whose state to read; undefined for the last step that has ended
   * @throws InferenceError `sequence_unknown`, `sequence_busy`, `checkpoint_gone`, `state_lost`,
   * `state_corrupt` or `unavailable`; `invalid_argument` for a step that the sequence has not
   * reached
   */
  async export(named: Named, step: number | undefined): Promise<Buffer> {
    await checkVersion(named, this.#settings);
    const from = addressOf(named, this.#settings.buckets);
    const { step: number, pin, checkpoint } = await this.#exported(named, from, step);
    const tensors = checkpoint && decodeCheckpoint(checkpoint.frame, checkpoint.version).tensors;
    return encodeSequenceFrame({ step: number, model: named.model.name, ...pin, tensors });
  }

  /**
   * Makes a sequence from the bytes of an exported checkpoint.
   * @param change names the new sequence. If it names no version of the model, the sequence
   * continues under the version that fits the state.
   * @returns the new sequence
   * @throws InferenceError `frame_corrupt`, `frame_mismatch`, `sequence_exists`, `sequence_limit`,
   * `sequence_unknown`, `idempotency_mismatch`, `outcome_unknown` or `unavailable`
   */
  async import(change: Change, bytes: Buffer): Promise<SequenceDescription> {
    const frame = decodeSequenceFrame(bytes);
    const others = change.version === undefined ? this.#settings.models.directory.others(change.model) : [];
    const model = servedAs(frame, [change.model, ...others]);
    const { version, digest } = pinOf(model);
    const { step, tensors } = frame;
    const fault = tensors && carriedStateFault(model, tensors, this.#settings.maxStateBytes);
    if (fault !== undefined) {
      throw new InferenceError(
        "frame_mismatch",
        `the state in the frame ${fault} (model '${model.name}', version ${version})`,
      );
    }
    const checkpoint = tensors && encodeCheckpoint(nameRun("import"), tensors);
    const to = addressOf(change, this.#settings.buckets);
    const once = onceOf(change, this.#settings, ["import", createHash("sha256").update(bytes).digest("base64url")]);
    return this.#import({ ...change, model }, to, { step, pin: { version, digest }, checkpoint }, once);
  }

  /**
   * Forks into another bucket. No script reaches two buckets, because they may lie on two servers.
   * So this method exports the checkpoint from one bucket and imports it into the other.
   */
  async #forkElsewhere(
    from: Change,
    to: Change,
    step: number | undefined,
    once: Once,
    terms: SequenceTerms,
  ): Promise<SequenceDescription> {
    const { redis, buckets, models } = this.#settings;
    const target = addressOf(to, buckets);
    // An earlier try may have made the fork. The old sequence may have had steps since then, so a
    // second read of its last checkpoint would find another state.
    const before = await askRedis(() => recall(redis, target, once));
    if (before.said === "made") return describeView(before.view, models, to.model);
    if (before.said === "mismatch") throw mismatch();
    const exported = stampForImport(await this.#exported(from, addressOf(from, buckets), step));
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
    return describeView(imported.view, this.#settings.models, change.model);
  }

  /** Copies a checkpoint from disk back into Redis. */
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

  async #terms({ tenant, model, liveSequences: most }: OfModel, { bucket }: SequenceAddress): Promise<SequenceTerms> {
    const { limits, shares, buckets } = this.#settings;
    const sequences = most === undefined ? undefined : new Map([[tenant, most]]);
    const names = { models: [model.name], tenants: [tenant], sequences };
    await shares?.prepare(names);
    const known = shares?.limitsOf(bucket, names) ?? limitsOf(limits, names);
    const liveSequences = known.models[model.name]?.[2] ?? limits.liveSequences;
    return { maxIdleMs: maxIdleMs(model), liveSequences, mostOfTenant: known.sequences?.[tenant], buckets };
  }
}

/**
 * Finds the served version with the files that made the frame's state.
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
 * Reads a checkpoint from disk.
 * @throws InferenceError `unavailable` if this gateway has no access, `state_lost` if the
 * checkpoint is gone
 */
async function awake(sleeping: SequenceServiceSettings["sleeping"], pointer: Buffer): Promise<Buffer> {
  const frame = await sleeping?.read(pointer);
  if (frame === null) throw fixedError("state_lost", "checkpointGone");
  if (frame === undefined) throw fixedError("unavailable", "asleep");
  return frame;
}
