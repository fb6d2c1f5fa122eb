/**
 * The configuration that tutorials on the sequence batcher show. It has words that Triton's
 * ModelConfig lacks, and both `dynamic_batching` and `sequence_batching`, of which Triton takes
 * one. Everything else is Triton's tree, so that any other unknown field is an error here, too.
 */
import type { DynamicBatching, ModelConfig, SequenceBatching, SequenceState } from "#shared/model/config.js";
import { enumOf, oneof, repeated, type Field, type Message } from "./message.js";
import { modelConfig } from "./schema.js";

const timeoutActions = ["TIMEOUT_REJECT", "TIMEOUT_COMPLETE"] as const;
export type TimeoutAction = (typeof timeoutActions)[number];

export interface TutorialDynamicBatching extends DynamicBatching {
  readonly default_batch_size: number;
  readonly timeout_action?: TimeoutAction;
}

export interface TutorialState extends SequenceState {
  /** One name for what Triton calls `input_name` and `output_name`. */
  readonly name: string;
}

export interface TutorialSequenceBatching extends Omit<SequenceBatching, "state"> {
  readonly reusable_batch?: { readonly max_size: number; readonly candidate_batch_size: readonly number[] };
  readonly timeout_action?: TimeoutAction;
  readonly state: readonly TutorialState[];
}

export interface TutorialConfig extends Omit<ModelConfig, "dynamic_batching" | "sequence_batching"> {
  /** Unlike Triton's, it may stand beside `sequence_batching`. */
  readonly dynamic_batching?: TutorialDynamicBatching;
  readonly sequence_batching?: TutorialSequenceBatching;
}

/** The message with more fields, or with others in place of its own. */
function extended<T>({ kind, name, fields }: Message, more: Readonly<Record<string, Field>>): Message<T> {
  return { kind, name, fields: new Map([...fields, ...Object.entries(more)]) };
}

/** The description of a message that is a field of another one. */
function within(base: Message, field: string): Message {
  const type = base.fields.get(field)?.type;
  if (typeof type !== "object" || type.kind !== "message") throw new TypeError(`${base.name}.${field} is no message`);
  return type;
}

const whole: Field = { label: "singular", type: "int32" };
// Only of a member of a oneof is it known whether it was written, whatever its value is.
const timeoutAction = oneof("tutorial_timeout", enumOf(...timeoutActions));
const dynamicBatching = extended(within(modelConfig, "dynamic_batching"), {
  default_batch_size: whole,
  timeout_action: timeoutAction,
});
const sequence = within(modelConfig, "sequence_batching");
const reusableBatch: Message = {
  kind: "message",
  name: `${sequence.name}.ReusableBatch`,
  fields: new Map<string, Field>([
    ["max_size", whole],
    ["candidate_batch_size", repeated("int32")],
  ]),
};
const sequenceBatching = extended(sequence, {
  reusable_batch: oneof("strategy_choice", reusableBatch),
  timeout_action: timeoutAction,
  state: repeated(extended(within(sequence, "state"), { name: { label: "singular", type: "string" } })),
});

export const tutorialConfig: Message<TutorialConfig> = extended(modelConfig, {
  dynamic_batching: { label: "singular", type: dynamicBatching },
  sequence_batching: oneof("scheduling_choice", sequenceBatching),
});
