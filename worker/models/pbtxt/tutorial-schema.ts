/**
 * The schema of the configuration in tutorials on the sequence batcher. Such a configuration has
 * words that Triton's ModelConfig lacks, and both `dynamic_batching` and `sequence_batching`, of
 * which Triton takes one. The rest is Triton's tree, so any other unknown field is an error here,
 * too.
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
  /** One name for Triton's `input_name` and `output_name`. */
  readonly name: string;
}

export interface TutorialSequenceBatching extends Omit<SequenceBatching, "state"> {
  readonly reusable_batch?: { readonly max_size: number; readonly candidate_batch_size: readonly number[] };
  readonly timeout_action?: TimeoutAction;
  readonly state: readonly TutorialState[];
}

export interface TutorialConfig extends Omit<ModelConfig, "dynamic_batching" | "sequence_batching"> {
  /** Unlike in Triton's form, allowed beside `sequence_batching`. */
  readonly dynamic_batching?: TutorialDynamicBatching;
  readonly sequence_batching?: TutorialSequenceBatching;
}

/** The message with further fields, or with replaced fields. */
function extended<T>({ kind, name, fields }: Message, more: Readonly<Record<string, Field>>): Message<T> {
  return { kind, name, fields: new Map([...fields, ...Object.entries(more)]) };
}

/** The description of a message that is a field of another message. */
function within(base: Message, field: string): Message {
  const type = base.fields.get(field)?.type;
  if (typeof type !== "object" || type.kind !== "message") throw new TypeError(`${base.name}.${field} is no message`);
  return type;
}

const whole: Field = { label: "singular", type: "int32" };
// Only a member of a oneof has presence, which shows whether the text has the field even with a
// default value.
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
