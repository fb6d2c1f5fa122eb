/**
 * The queue policies of a model: the priority level of a request, and how long the request may wait
 * in the queue. The policies come from Triton's `dynamic_batching`; a model without that has none.
 */
import { z } from "zod";
import type { ServedModel } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";
import type { QueueTerms } from "../../admission/inference.js";

const policy = z.object({
  timeout_action: z.enum(["REJECT", "DELAY"]).default("REJECT"),
  default_timeout_microseconds: z.coerce.number().default(0),
  allow_timeout_override: z.boolean().default(false),
  max_queue_size: z.coerce.number().default(0),
});

type Policy = z.infer<typeof policy>;

const configured = z.object({
  dynamic_batching: z
    .object({
      priority_levels: z.coerce.number().default(0),
      default_priority_level: z.coerce.number().default(0),
      default_queue_policy: policy.optional(),
      priority_queue_policy: z.record(z.string(), policy).default({}),
    })
    .optional(),
});

const order = z.object({ preserve_ordering: z.boolean().optional() }).optional();
const ordered = z.object({ dynamic_batching: order, sequence_batching: z.object({ oldest: order }).optional() });

interface Policies {
  /** 0: requests have no priority. */
  readonly levels: number;
  readonly defaultLevel: number;
  readonly usual: Policy;
  /** By level. */
  readonly special: Readonly<Record<string, Policy>>;
}

const none: Policies = { levels: 0, defaultLevel: 0, usual: policy.parse({}), special: {} };

/** An announcement never changes, so the gateway reads each model's policies once. */
const known = new WeakMap<ServedModel, Policies>();

function policiesOf(model: ServedModel): Policies {
  const before = known.get(model);
  if (before !== undefined) return before;
  const { dynamic_batching: batching } = configured.parse(model.config);
  const read: Policies =
    batching === undefined
      ? none
      : {
          levels: batching.priority_levels,
          defaultLevel: batching.priority_levels === 0 ? 0 : batching.default_priority_level,
          usual: batching.default_queue_policy ?? none.usual,
          special: batching.priority_levels === 0 ? {} : batching.priority_queue_policy,
        };
  known.set(model, read);
  return read;
}

const inOrder = new WeakMap<ServedModel, boolean>();

/** Whether the answers of a model leave in the order of their requests (`preserve_ordering`). */
export function keepsOrder(model: ServedModel): boolean {
  const before = inOrder.get(model);
  if (before !== undefined) return before;
  const { dynamic_batching: dynamic, sequence_batching: sequence } = ordered.parse(model.config);
  const keeps = dynamic?.preserve_ordering === true || sequence?.oldest?.preserve_ordering === true;
  inOrder.set(model, keeps);
  return keeps;
}

/**
 * Reads the parameter `priority`; 0 asks for the default of the model.
 * @param value an unsigned integer
 * @returns 0 if the model has no levels
 * @throws InferenceError for a level that the model does not have
 */
export function priorityLevel(value: bigint, model: ServedModel): number {
  const { levels, defaultLevel } = policiesOf(model);
  if (value === 0n) return defaultLevel;
  if (levels === 0) {
    throw new InferenceError(
      "invalid_argument",
      `priority ${value} is not supported: models have no priority levels, and requests are taken in the order in which they come`,
    );
  }
  if (value <= BigInt(levels)) return Number(value);
  throw new InferenceError(
    "invalid_argument",
    `priority ${value} is out of range: model '${model.name}' has the priority levels 1 to ${levels}`,
  );
}

/** Lowest priority of a job. Priority 1 runs first. */
const JOB_PRIORITIES = 9;

/**
 * Returns the level of a job by its priority of 1 to 9. A model with at least two priority levels
 * spreads the nine priorities over these levels. In any other model the nine are levels of their
 * own, and requests whose clients wait use the first.
 */
export function jobLevel(priority: number, model: ServedModel): number {
  const { levels } = policiesOf(model);
  return levels < 2 ? priority : Math.ceil((priority * levels) / JOB_PRIORITIES);
}

/** The terms that a request gives for its time in the queue. */
export interface Asked {
  /** From `priorityLevel`; undefined if the request names no level. */
  readonly level: number | undefined;
  /** The parameter `timeout` in ms, if any. */
  readonly timeoutMs: number | undefined;
}

/**
 * @returns undefined if the model has no policies. `takesTimeout` says that the policy uses the
 * request's own timeout, which then is no deadline of the answer.
 */
export function queueTermsOf(
  model: ServedModel,
  { level: asked, timeoutMs }: Asked,
): (QueueTerms & { readonly takesTimeout: boolean }) | undefined {
  const policies = policiesOf(model);
  if (policies === none) return undefined;
  const level = asked ?? policies.defaultLevel;
  const { timeout_action, default_timeout_microseconds, allow_timeout_override, max_queue_size } =
    policies.special[String(level)] ?? policies.usual;
  const usualMs = Math.ceil(default_timeout_microseconds / 1_000);
  const takesTimeout = allow_timeout_override && timeoutMs !== undefined && timeoutMs < usualMs;
  const waitMs = takesTimeout ? timeoutMs : usualMs;
  return {
    level: Math.max(1, level),
    rejectMs: waitMs > 0 && timeout_action === "REJECT" ? waitMs : undefined,
    delayMs: waitMs > 0 && timeout_action === "DELAY" ? waitMs : undefined,
    mostQueued: max_queue_size === 0 ? undefined : max_queue_size,
    takesTimeout,
  };
}
