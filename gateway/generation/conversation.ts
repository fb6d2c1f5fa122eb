/** `sequence_id`, `sequence_start` and `sequence_end`: on a generator, a conversation that the fleet keeps between its turns. */
import type { SequenceStep } from "#shared/contract/sequence.js";
import type { JsonObject } from "#shared/json/parse.js";
import { correlationId } from "../v2/parse-parameters.js";
import { ParameterFault } from "./fault.js";
import { given, readBoolean } from "./read-member.js";

/** Undefined for a request that is no turn. */
export function readConversation(body: JsonObject): SequenceStep | undefined {
  const start = readBoolean(body, "sequence_start") ?? false;
  const end = readBoolean(body, "sequence_end") ?? false;
  const id = correlationId(given(body, "sequence_id") ?? 0);
  if (id.value !== 0n && id.value !== "") return { id, start, end };
  if (!start && !end) return undefined;
  throw new ParameterFault(
    "sequence_id",
    "sequence_start and sequence_end need a sequence_id that is not 0 and not empty",
  );
}

/** The history goes on from one answer. */
export function checkTurn(sequence: SequenceStep | undefined, choices: number): void {
  if (sequence === undefined || choices === 1) return;
  throw new ParameterFault("n", `n must be 1 for a turn of a conversation, got ${choices}`);
}
