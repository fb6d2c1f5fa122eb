/**
 * The operations on a sequence as a whole: look, list, end, rewind; copies.ts has the operations
 * that copy a sequence. Every gateway offers them for every sequence. Each operation takes the
 * caller's tenant, because an id names a sequence only within its tenant.
 */
import { endSequence } from "#shared/queue/sequences/end.js";
import { describeSequence } from "#shared/queue/sequences/describe.js";
import { firstPage, listSequences, type Page } from "#shared/queue/sequences/list.js";
import { rewind } from "#shared/queue/sequences/rewind.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import { checkVersion, isOfVersion, maxIdleMs, onceOf } from "./change.js";
import { SequenceCopies, type CopiesSettings } from "./copies.js";
import { describeView, type SequenceDescription } from "./description.js";
import { beginning, placeText, type Place } from "./page.js";
import { mismatch, noCheckpoint, sequenceUnknown } from "./refusals.js";
import { addressOf, type Change, type Named, type OfModel } from "./sequence-id.js";

/**
 * The most calls of Redis for a page. So many calls look at up to 200 000 sequences, perhaps all of
 * other tenants.
 */
const MOST_CALLS = 100;

export class Sequences {
  /** The operations that make a sequence from another sequence's checkpoint. */
  readonly copies: SequenceCopies;
  readonly #settings: CopiesSettings;

  constructor(settings: CopiesSettings) {
    this.#settings = settings;
    this.copies = new SequenceCopies(settings);
  }

  get buckets(): number {
    return this.#settings.buckets;
  }

  /** @throws InferenceError `sequence_unknown` or `unavailable` */
  async describe(named: Named): Promise<SequenceDescription> {
    const { redis, buckets, models } = this.#settings;
    const found = await askRedis(() => describeSequence(redis, addressOf(named, buckets)));
    if (found.said === "unknown" || !isOfVersion(named, found.view)) throw sequenceUnknown(named);
    return describeView(found.view, models);
  }

  /**
   * Gives a page of the caller's sequences of a model, in no order. A sequence that exists from the
   * first page to the last is on at least one page.
   * @returns the page, and the beginning of the next page; undefined if this page is the last
   * @throws InferenceError `unavailable`
   */
  async list(
    { tenant, model, version }: OfModel,
    limit: number,
    from: Place = beginning,
  ): Promise<{ readonly sequences: readonly SequenceDescription[]; readonly next: string | undefined }> {
    const { redis, buckets, models } = this.#settings;
    const sequences: SequenceDescription[] = [];
    let place: Place | undefined = from;
    for (let calls = 0; place !== undefined && sequences.length < limit && calls < MOST_CALLS; calls++) {
      const start: Place = place;
      const where = { bucket: start.bucket, model: model.name };
      const most = limit - sequences.length;
      const page = await askRedis(() => listSequences(redis, where, tenant, start, most, version));
      sequences.push(...page.views.map((view) => describeView(view, models)));
      place = placeAfter(start, page, buckets);
    }
    return { sequences, next: place && placeText(place) };
  }

  /**
   * Ends the sequence. Steps from before this call still run.
   * @returns the sequence as it stood before
   * @throws InferenceError `sequence_unknown`, `idempotency_mismatch`, `outcome_unknown` or
   * `unavailable`
   */
  async end(change: Change): Promise<SequenceDescription> {
    const { redis, buckets, models } = this.#settings;
    await checkVersion(change, this.#settings);
    const once = onceOf(change, this.#settings, ["end"]);
    const ended = await changeInRedis(() => endSequence(redis, addressOf(change, buckets), once));
    if (ended.said === "ended") return describeView(ended.view, models);
    throw ended.said === "unknown" ? sequenceUnknown(change) : mismatch();
  }

  /**
   * Takes the sequence back to an earlier step.
   * @param step counted from the START; the sequence's next step is `step + 1`
   * @returns the sequence as it stands then
   * @throws InferenceError as `end`, and `sequence_busy`, `checkpoint_gone`, or `invalid_argument`
   * for a step that the sequence has not reached
   */
  async rewind(change: Change, step: number): Promise<SequenceDescription> {
    const { redis, buckets, models } = this.#settings;
    await checkVersion(change, this.#settings);
    const once = onceOf(change, this.#settings, ["rewind", step]);
    const rewound = await changeInRedis(() =>
      rewind(redis, addressOf(change, buckets), step, maxIdleMs(change.model), once),
    );
    switch (rewound.said) {
      case "rewound":
        return describeView(rewound.view, models);
      case "unknown":
        throw sequenceUnknown(change);
      case "mismatch":
        throw mismatch();
      default:
        throw noCheckpoint(rewound.said, change, rewound.view, step);
    }
  }
}

/** A page ends inside a bucket, or at the bucket's end. */
function placeAfter({ bucket }: Place, { next }: Page, buckets: number): Place | undefined {
  if (next !== undefined) return { bucket, ...next };
  return bucket + 1 < buckets ? { bucket: bucket + 1, ...firstPage } : undefined;
}
