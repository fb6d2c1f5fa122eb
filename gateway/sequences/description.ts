/** The description of a sequence in each answer about it. */
import { bootOf } from "#shared/contract/checkpoint.js";
import type { SequenceView } from "#shared/queue/sequences/view.js";
import { sequenceIdOf } from "./sequence-id.js";

export interface SequenceDescription {
  readonly sequence_id: bigint | string;
  readonly step: number;
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
  { name, step, pin, lapses, version, stateBytes, checkpoints }: SequenceView,
  workers: WorkerNames,
): SequenceDescription {
  const boot = version === undefined ? undefined : bootOf(version);
  return {
    sequence_id: sequenceIdOf(name),
    step,
    idle_deadline: lapses === undefined ? null : new Date(lapses).toISOString(),
    worker: (boot === undefined ? undefined : workers.workerOf(boot)) ?? null,
    version: pin.version,
    state_bytes: stateBytes,
    checkpoints,
  };
}
