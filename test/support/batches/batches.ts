/** How tests write the lines of a batch, wait for its end, and read its lines of output. */
import type OpenAI from "openai";
import { readUntil } from "../until.js";

/** A line of a file of outputs or errors. */
export interface AnsweredLine {
  readonly id: string;
  readonly custom_id: string | null;
  readonly response: { readonly status_code: number; readonly request_id: string; readonly body: unknown } | null;
  readonly error: { readonly code: string; readonly message: string; readonly line: number } | null;
}

export function linesOf(text: string): AnsweredLine[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as AnsweredLine);
}

const VALUES = Array.from({ length: 16 }, (_, i) => i);

/** A request for the model `simple`. */
export function inferLine(number: number) {
  const inputs = ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "INT32", shape: [1, 16], data: VALUES }));
  return { custom_id: `line-${number}`, method: "POST", url: "/v2/models/simple/infer", body: { inputs } };
}

const ends: readonly string[] = ["completed", "failed", "expired", "cancelled"];

/** Waits until the batch has ended. Asks again if a gateway does not answer. */
export function ended(openai: OpenAI, id: string, patienceMs = 80_000): Promise<OpenAI.Batch> {
  const read = async () => {
    try {
      return await openai.batches.retrieve(id);
    } catch (error) {
      if (error instanceof Error && "status" in error && error.status === 404) throw error;
      return undefined;
    }
  };
  return readUntil(read, (batch) => batch !== undefined && ends.includes(batch.status), {
    patienceMs,
    everyMs: 100,
  }) as Promise<OpenAI.Batch>;
}
