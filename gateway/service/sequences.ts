/**
 * The operations on a sequence as a whole: look, list, end, rewind; sequence-copies.ts has the
 * operations that copy a sequence. Every gateway offers them for every sequence.
 */
import { endSequence } from "#shared/queue/sequences/end.js";
import { describeSequence } from "#shared/queue/sequences/describe.js";
import { countSequences, listSequences } from "#shared/queue/sequences/list.js";
import { rewind } from "#shared/queue/sequences/rewind.js";
import type { SequenceState } from "#shared/queue/sequences/view.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import type { ModelName } from "../fleet/models.js";
import { checkVersion, isOfVersion, maxIdleMs, onceOf } from "../sequences/change.js";
import { describeView, type SequenceDescription } from "../sequences/description.js";
import { readPage } from "../requests/place.js";
import { mismatch, noCheckpoint, sequenceUnknown } from "../sequences/refusals.js";
import { addressOf, beginningsOf, type Change, type Named, type OfModel } from "../sequences/sequence-id.js";
import type { Caller } from "./caller.js";
import type { PageTerms } from "./page.js";
import { SequenceCopies, type SequenceServiceSettings } from "./sequence-copies.js";

/**
 * The most calls of Redis for a page. So many calls look at up to 200 000 sequences, perhaps all of
 * other tenants.
 */
const MOST_CALLS = 100;

/** Which sequences a list has; an undefined member is met by all. */
export interface SequenceFilter {
  readonly state: SequenceState | undefined;
  /** The beginning of the id's text. */
  readonly prefix: string | undefined;
}

export interface SequencePage {
  readonly sequences: readonly SequenceDescription[];
  /**
   * How many sequences of the model live, of all versions, and whatever the page is about. Only the
   * first page says it. Undefined while a part of Redis is away, and in a deployment with tenants,
   * because no count says how many are whose.
   */
  readonly total: number | undefined;
  readonly next: string | undefined;
}

export class SequenceService {
  /** The operations that make a sequence from another sequence's checkpoint. */
  readonly copies: SequenceCopies;
  readonly #settings: SequenceServiceSettings;

  constructor(settings: SequenceServiceSettings) {
    this.#settings = settings;
    this.copies = new SequenceCopies(settings);
  }

  /**
   * Finds the model of a caller's sequences. Operations on a sequence take the result, so that a
   * client hears of an unknown model before it has sent a body.
   * @throws InferenceError `unknown_model` or `model_unavailable`
   */
  ofModel(caller: Caller, { model, version }: ModelName): OfModel {
    caller.needModel({ model, version });
    const found = this.#settings.models.directory.find(model, version);
    return { tenant: caller.tenant, model: found, version, liveSequences: caller.budget?.liveSequences };
  }

  /** @throws InferenceError `sequence_unknown` or `unavailable` */
  async describe(named: Named): Promise<SequenceDescription> {
    const { redis, buckets, models } = this.#settings;
    const found = await askRedis(() => describeSequence(redis, addressOf(named, buckets)));
    if (found.said === "unknown" || !isOfVersion(named, found.view)) throw sequenceUnknown(named);
    return describeView(found.view, models, named.model);
  }

  /**
   * Gives a page of the caller's sequences of a model, in no order. A sequence that exists from the
   * first page to the last is on at least one page.
   * @param after the `next` of the page before
   * @returns the page, and the beginning of the next page; undefined if this page is the last
   * @throws InferenceError `unknown_model`, `model_unavailable` or `unavailable`
   */
  async list(caller: Caller, name: ModelName, asked: PageTerms & SequenceFilter): Promise<SequencePage> {
    const { limit, after, state, prefix = "" } = asked;
    const { redis, buckets, models, hasOneTenant } = this.#settings;
    const { tenant, model, version } = this.ofModel(caller, name);
    const isFirst = after === undefined;
    // A part of a Cluster that is away, perhaps none of this page, makes the number unknown.
    const counting =
      hasOneTenant && isFirst ? countSequences(redis, model.name, buckets).catch(() => undefined) : undefined;
    const meant = { version, state, beginnings: prefix === "" ? undefined : beginningsOf(tenant, prefix) };
    const { items, next } = await readPage({ limit, after, buckets, mostReads: MOST_CALLS }, async (from, most) => {
      const where = { bucket: from.bucket, model: model.name };
      const page = await askRedis(() => listSequences(redis, where, tenant, from, most, meant));
      const found = page.views.map((view) => describeView(view, models, model));
      // A name is encoded, so its beginning says the id's beginning but for two bytes.
      return { items: found.filter(({ sequence_id: id }) => String(id).startsWith(prefix)), next: page.next };
    });
    return { sequences: items, total: await counting, next };
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
    if (ended.said === "ended") return describeView(ended.view, models, change.model);
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
        return describeView(rewound.view, models, change.model);
      case "unknown":
        throw sequenceUnknown(change);
      case "mismatch":
        throw mismatch();
      default:
        throw noCheckpoint(rewound.said, change, rewound.view, step);
    }
  }
}
