/** Makes control tensors; spec/sequence-batching.md section 3. */
import { decodeCorrelationId } from "#shared/contract/sequence.js";
import type { Delivery } from "#shared/contract/entry.js";
import type { Tensor } from "#shared/frame.js";
import { datatypeBytes } from "#shared/model/datatype.js";
import type { Control } from "../model/serving.js";

/** Shape `[1]`, or `[1, 1]` for a model with a batch dimension. READY is always true: no batch is padded. */
export function controlTensor(control: Control, delivery: Delivery, batched: boolean): Tensor {
  const { tensor: name, datatype } = control;
  return { name, datatype, shape: batched ? [1, 1] : [1], data: value(control, delivery) };
}

function value(control: Control, delivery: Delivery): Buffer {
  switch (control.kind) {
    case "start":
      return delivery.start ? control.values.yes : control.values.no;
    case "end":
      return delivery.end ? control.values.yes : control.values.no;
    case "ready":
      return control.values.yes;
    case "corrid":
      return correlationBytes(control, delivery);
  }
}

/** Integers: the low bytes of the uint64. Strings: u32 LE length and UTF-8. The gateway has checked that the kinds match. */
function correlationBytes({ datatype }: Control, { sequence = "" }: Delivery): Buffer {
  const id = decodeCorrelationId(sequence.slice(sequence.indexOf(":") + 1));
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
