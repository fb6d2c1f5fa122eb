/**
 * Reads the parameters `sequence_id`, `sequence_start`, `sequence_end` and `sequence_step`. On a
 * generator these make the request one turn of a conversation, whose tokens the fleet keeps between
 * the turns.
 */
import type { SequenceStep } from "#shared/contract/sequence.js";
import type { JsonObject } from "#shared/json/parse.js";
import { checkStepNumber, readCorrelationId, readStepNumber } from "../admission/request-terms.js";
import { ParameterError, readBoolean, readValue } from "./parameters.js";

/** The names of all parameters that `readConversation` reads. */
export const conversationParameterNames = ["sequence_id", "sequence_start", "sequence_end", "sequence_step"];

/**
 * @returns undefined for a request outside a conversation
 * @throws ParameterError
 */
export function readConversation(body: JsonObject): SequenceStep | undefined {
  const start = readBoolean(body, "sequence_start") ?? false;
  const end = readBoolean(body, "sequence_end") ?? false;
  const id = readCorrelationId(readValue(body, "sequence_id") ?? 0);
  const given = readValue(body, "sequence_step");
  const number = given === undefined ? undefined : readStepNumber(given);
  const isTurn = id.value !== 0n && id.value !== "";
  checkStepNumber(number, isTurn ? { start } : undefined);
  if (isTurn) return { id, start, end, ...(number !== undefined && { number }) };
  if (!start && !end) return undefined;
  throw new ParameterError(
    "sequence_id",
    "sequence_start and sequence_end need a sequence_id that is not 0 and not empty",
  );
}

/**
 * Refuses several choices for a turn, because the next turn can continue only one answer.
 * @throws ParameterError
 */
export function checkTurn(sequence: SequenceStep | undefined, choices: number): void {
  if (sequence === undefined || choices === 1) return;
  throw new ParameterError("n", `n must be 1 for a turn of a conversation, got ${choices}`);
}
