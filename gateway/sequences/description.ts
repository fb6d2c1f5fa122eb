/** The description of a sequence in each answer about it. */
import type { ServedModel } from "#shared/contract/announcement.js";
import { bootOf } from "#shared/contract/checkpoint.js";
import type { SequenceState, SequenceView } from "#shared/queue/sequences/view.js";
import { maxIdleMs } from "./change.js";
import { sequenceIdOf } from "./sequence-id.js";

export interface SequenceDescription {
  readonly sequence_id: bigint | string;
  readonly state: SequenceState;
  readonly step: number;
  /** Steps that wait behind another step of the sequence. */
  readonly waiting: number;
  /** When the sequence came to rest; null while a step is in the queue or runs. */
  readonly last_step_at: string | null;
  readonly idle_deadline: string | null;
  readonly worker: string | null;
  readonly version: string;
  readonly state_bytes: number;
  readonly checkpoints: readonly number[];
}

export interface WorkerNames {
  /** @returns the name of the live worker with this `boot` */
  workerOf(boot: string): string | undefined;
}

export function describeView(
  { name, state, step, waiting, pin, lapses, version, stateBytes, checkpoints }: SequenceView,
  workers: WorkerNames,
  model: ServedModel,
): SequenceDescription {
  const boot = version === undefined ? undefined : bootOf(version);
  return {
    sequence_id: sequenceIdOf(name),
    state,
    step,
    waiting,
    last_step_at: lapses === undefined ? null : timeText(lapses - maxIdleMs(model)),
    idle_deadline: lapses === undefined ? null : timeText(lapses),
    worker: (boot === undefined ? undefined : workers.workerOf(boot)) ?? null,
    version: pin.version,
    state_bytes: stateBytes,
    checkpoints,
  };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
