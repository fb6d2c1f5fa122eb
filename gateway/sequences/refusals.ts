/**
 * The errors of operations on a sequence as a whole. The texts name an operation that is possible.
 */
import { fixedError, InferenceError } from "#shared/errors.js";
import type { SequenceView } from "#shared/queue/sequences/view.js";
import { tooManySequences } from "../admission/budget.js";
import type { Named } from "./sequence-id.js";

export function sequenceUnknown(named: Named): InferenceError {
  const version = named.version === undefined ? "" : ` version ${named.version}`;
  return new InferenceError(
    "sequence_unknown",
    `model '${named.model.name}'${version} has no sequence ${idText(named)}`,
  );
}

export function sequenceExists(named: Named): InferenceError {
  return new InferenceError(
    "sequence_exists",
    `${sequence(named)} is live: take another id, or end that one first (DELETE)`,
  );
}

export function mismatch(): InferenceError {
  return fixedError("idempotency_mismatch", "usual");
}

export function noCheckpoint(
  said: "busy" | "future" | "gone",
  named: Named,
  view: SequenceView,
  step: number | undefined,
): InferenceError {
  if (said === "busy") return sequenceBusy(named);
  if (said === "future") return stepInFuture(named, view, step ?? view.step);
  return checkpointGone(named, view, step ?? view.step);
}

export function notMade(
  said: "exists" | "too-many-sequences" | "too-many-of-tenant" | "mismatch",
  to: Named,
): InferenceError {
  if (said === "exists") return sequenceExists(to);
  if (said === "too-many-of-tenant") return tooManySequences(to.liveSequences);
  return said === "mismatch" ? mismatch() : fixedError("sequence_limit", "usual");
}

function sequenceBusy(named: Named): InferenceError {
  return new InferenceError(
    "sequence_busy",
    `steps of ${sequence(named)} are queued or run: ask again when they have ended`,
  );
}

function stepInFuture(named: Named, { step }: SequenceView, wanted: number): InferenceError {
  return new InferenceError(
    "invalid_argument",
    `${sequence(named)} has not come to step ${wanted}: the last that has ended is ${step}`,
  );
}

function checkpointGone(named: Named, { checkpoints }: SequenceView, step: number): InferenceError {
  const kept = checkpoints.length === 0 ? "none is" : `those after these steps are: ${checkpoints.join(", ")}`;
  return new InferenceError(
    "checkpoint_gone",
    `the checkpoint after step ${step} of ${sequence(named)} is not kept; ${kept}. ` +
      "The model's parameter checkpoint_history says how many are",
  );
}

function sequence(named: Named): string {
  return `sequence ${idText(named)} of model '${named.model.name}'`;
}

function idText({ id }: Named): string {
  return id.kind === "uint64" ? String(id.value) : JSON.stringify(id.value);
}
