/**
 * An answer of a decoupled tensor model, as a record of its request's log: the outputs of one run,
 * with their bytes in base64, because JSON has no place for all numbers.
 */
import { z } from "zod";
import type { Tensor } from "../frame.js";
import { datatypeBytes, type Datatype } from "../model/datatype.js";

export const answerOutput = z.object({
  name: z.string(),
  datatype: z.enum(Object.keys(datatypeBytes) as [Datatype, ...Datatype[]]),
  shape: z.array(z.number().int().nonnegative()),
  raw: z.base64().describe("The elements, little-endian, as a binary output of Triton's protocol has them."),
});

export type AnswerOutput = z.infer<typeof answerOutput>;

/**
 * @param index of the record
 * @param outputs undefined for a record that only ends its request
 * @param isLast whether this is the request's last record
 */
export function writeAnswer(index: number, outputs: readonly Tensor[] | undefined, isLast: boolean): string {
  const given = outputs?.map(({ name, datatype, shape, data }): AnswerOutput => ({
    name,
    datatype,
    shape: [...shape],
    raw: data.toString("base64"),
  }));
  return JSON.stringify({
    index,
    choices: [],
    ...(given && { outputs: given }),
    ...(isLast && { final: true, reason: "finished" }),
  });
}

export function readOutputs(outputs: readonly AnswerOutput[]): Tensor[] {
  return outputs.map(({ name, datatype, shape, raw }) => ({ name, datatype, shape, data: Buffer.from(raw, "base64") }));
}
