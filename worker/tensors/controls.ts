/**
 * Makes control tensors: inputs that give a model a request's place in its sequence. Triton's
 * sequence batcher gives the same inputs (`sequence_batching.control_input`).
 */
import { decodeCorrelationId } from "#shared/contract/sequence.js";
import { encodedIdOf } from "#shared/queue/address.js";
import type { Delivery } from "#shared/queue/entry.js";
import type { Held } from "../lane/holdings.js";
import type { Tensor } from "#shared/frame.js";
import { datatypeBytes } from "#shared/model/datatype.js";
import type { Control } from "./serving.js";

/** The tensor has the shape `[1]`, or `[1, 1]` for a model with a batch dimension. */
export function controlTensor(control: Control, held: Pick<Held, "delivery" | "before">, batched: boolean): Tensor {
  const { tensor: name, datatype } = control;
  return { name, datatype, shape: batched ? [1, 1] : [1], data: value(control, held) };
}

/** Triton gives START and END to the first run alone, and START to a request without an id. */
function value(control: Control, { delivery, before }: Pick<Held, "delivery" | "before">): Buffer {
  const isFirst = before.runs === 0;
  switch (control.kind) {
    case "start":
      return isFirst && (delivery.start || delivery.sequence === undefined) ? control.values.yes : control.values.no;
    case "end":
      return isFirst && delivery.end ? control.values.yes : control.values.no;
    case "ready":
      // False is for padding alone, and no batch of ours has padding.
      return control.values.yes;
    case "corrid":
      return correlationBytes(control, delivery);
  }
}

/**
 * The correlation id: an integer's low bytes, little-endian, or a string as UTF-8 after its length
 * in a little-endian u32. The gateway has checked that the id's kind is the tensor's.
 */
function correlationBytes({ datatype }: Control, { sequence = "" }: Delivery): Buffer {
  const id = decodeCorrelationId(encodedIdOf(sequence));
  if (id.kind === "string") {
    const text = Buffer.from(id.value, "utf8");
    const length = Buffer.alloc(4);
    length.writeUInt32LE(text.length);
    return Buffer.concat([length, text]);
  }
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(id.value);
  return bytes.subarray(0, datatypeBytes[datatype]);
}
