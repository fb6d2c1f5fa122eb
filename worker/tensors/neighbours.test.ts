/**
 * Batches with odd members: a request with any fault, at any place in the batch, leaves every other
 * request the bytes that it would get alone.
 */
import { describe, expect, it } from "vitest";
import { readOutcome } from "#shared/contract/outcome.js";
import { decodeFrame, encodeFrame, type Tensor } from "#shared/frame.js";
import { datatypeBytes, elementCount, type Datatype } from "#shared/model/datatype.js";
import { stringElements } from "#shared/model/strings.js";
import { delivery } from "../../test/fixtures/deliveries.js";
import { hold, type Held } from "../lane/holdings.js";
import type { Settled } from "../lane/settle.js";
import { execute } from "./execute.js";
import type { ModelHost } from "./host.js";
import { place, viewOf } from "./memory.js";
import type { PlainTensor } from "./protocol.js";
import type { ServingModel } from "./serving.js";
import type { Layout } from "./stack.js";
import { encodeStrings } from "./thread/strings.js";

/** The form of a model's input, state and outputs. */
interface Form {
  readonly name: string;
  readonly datatype: Datatype;
  /** Without the batch dimension. */
  readonly dims: readonly number[];
  readonly free?: boolean;
  readonly layout: Layout;
}

const forms: readonly Form[] = [
  { name: "rows first", datatype: "FP32", dims: [3], layout: { axis: 0, bare: false } },
  { name: "rows second", datatype: "FP16", dims: [2, 5], layout: { axis: 1, bare: false } },
  { name: "rows last", datatype: "INT64", dims: [2, 2], layout: { axis: 2, bare: false } },
  { name: "rows alone", datatype: "INT32", dims: [1], layout: { axis: 0, bare: true } },
  { name: "strings", datatype: "BYTES", dims: [2], layout: { axis: 0, bare: false } },
  { name: "a free size", datatype: "UINT8", dims: [4], free: true, layout: { axis: 0, bare: false } },
];

/** Numbers below `most` that are the same for the same seed. */
function numbersOf(seed: number): (most: number) => number {
  let state = seed + 1;
  return (most) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % most;
  };
}
type Draw = ReturnType<typeof numbersOf>;

/** The elements of each row in a tensor of the graph, as bytes. */
function rowsOf({ datatype, shape, data }: PlainTensor, { axis }: Layout): Buffer[][] {
  const size = datatypeBytes[datatype];
  const bytes = Buffer.from(data);
  const all =
    datatype === "BYTES"
      ? stringElements(bytes).map((text) => Buffer.from(text))
      : Array.from({ length: bytes.length / size }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
  const inner = elementCount(shape.slice(axis + 1));
  const count = shape[axis] ?? 0;
  const rows: Buffer[][] = Array.from({ length: count }, () => []);
  for (const [i, element] of all.entries()) rows[Math.floor(i / inner) % count]?.push(element);
  return rows;
}

/** The inverse of `rowsOf`. */
function tensorOf(name: string, { datatype, dims, layout }: Form, rows: readonly Buffer[][]): PlainTensor {
  const own = layout.bare ? [] : dims;
  const outer = elementCount(own.slice(0, layout.axis));
  const inner = elementCount(own.slice(layout.axis));
  const all = Array.from({ length: outer }, (_, part) =>
    rows.map((row) => row.slice(part * inner, (part + 1) * inner)),
  ).flat(2);
  const data = datatype === "BYTES" ? encodeStrings(all.map(String)) : Buffer.concat(all);
  return { name, datatype, shape: own.toSpliced(layout.axis, 0, rows.length), data };
}

/** The model's answer to a row: each element mixed with the other tensor's element. */
function mixed(row: readonly Buffer[], other: readonly Buffer[], datatype: Datatype): Buffer[] {
  return row.map((element, i) => {
    const with_ = other[i] ?? Buffer.alloc(0);
    if (datatype === "BYTES") return Buffer.concat([element, with_]).subarray(-6);
    return Buffer.from(element.map((byte, at) => (byte * 3 + (with_[at] ?? 0)) & 255));
  });
}

/** A fault in a graph's outputs; undefined for a graph that works. */
type GraphFault = "a row too many" | "a row too few" | "bytes too few" | "bytes too many" | undefined;

function modelOf(form: Form, fault?: GraphFault): ServingModel {
  const { datatype, layout } = form;
  const spoil = (tensor: PlainTensor): PlainTensor => {
    if (fault === "bytes too few") return { ...tensor, data: tensor.data.subarray(0, -1) };
    return fault === "bytes too many" ? { ...tensor, data: Buffer.concat([tensor.data, Buffer.alloc(4)]) } : tensor;
  };
  const host: ModelHost = {
    graph: { inputs: [], outputs: [] },
    run: (inputs) => {
      // As in the model's thread, this code knows only the memory of the requests.
      const { memory, placed } = place(inputs, new SharedArrayBuffer(0));
      const [xs, ss] = placed.map((one) => rowsOf(viewOf(one, memory), layout)) as [Buffer[][], Buffer[][]];
      // As ONNX Runtime, which knows the names and types of the graph's inputs.
      const [x, state] = placed.map(({ name, datatype: type, shape }) => `${name} ${type} ${shape.join()}`);
      if (x !== `X ${datatype} ${placed[1]?.shape.join()}` || !state?.startsWith(`S ${datatype} `)) {
        throw new Error(`unexpected inputs: ${x}; ${state}`);
      }
      const own = { ...form, dims: placed[0]?.shape.toSpliced(layout.axis, 1) ?? [] };
      const rowsGiven = (rows: Buffer[][]): Buffer[][] => {
        if (fault === "a row too many") return [...rows, ...rows.slice(0, 1)];
        return fault === "a row too few" ? rows.slice(1) : rows;
      };
      const y = rowsGiven(xs.map((row, i) => mixed(row, ss[i] ?? [], datatype)));
      const t = rowsGiven(ss.map((row, i) => mixed(row, xs[i] ?? [], datatype)));
      const outputs = [spoil(tensorOf("Y", own, y)), spoil(tensorOf("T", own, t))];
      return Promise.resolve({ outputs, ranMs: 1, letGo: () => undefined });
    },
    close: () => Promise.resolve(),
  };
  const layouts = (names: readonly string[]) => new Map(names.map((name) => [name, layout] as const));
  const dims = form.free === true ? form.dims.map(() => -1) : form.dims;
  const zero = datatype === "BYTES" ? encodeStrings(Array<string>(elementCount(form.dims)).fill("")) : undefined;
  return {
    name: "m",
    version: "1",
    batching: { batched: true, shared: new Set() },
    layouts: { inputs: layouts(["X", "S"]), outputs: layouts(["Y", "T"]) },
    constants: [],
    limits: { maxBatchSize: 64, maxDelayMs: 0, preferred: [] },
    controls: [],
    states: [
      {
        input: "S",
        output: "T",
        datatype,
        dims,
        initialShape: [1, ...form.dims],
        initial: Buffer.from(zero ?? Buffer.alloc(elementCount(form.dims) * datatypeBytes[datatype])),
      },
    ],
    maxIdleMs: 1_000,
    history: 1,
    host,
  };
}

/** A tensor as in requests and checkpoints, the batch first. */
function drawn(name: string, form: Form, rows: number, draw: Draw): Tensor {
  const { datatype, dims } = form;
  const count = rows * elementCount(dims);
  const shape = [rows, ...dims];
  if (datatype === "BYTES") {
    const strings = Array.from({ length: count }, () => "abcdef".slice(0, draw(6)) + String(draw(10)));
    return { name, datatype, shape, data: Buffer.from(encodeStrings(strings)) };
  }
  const data = Buffer.from(Array.from({ length: count * datatypeBytes[datatype] }, () => draw(256)));
  return { name, datatype, shape, data };
}

interface Member {
  readonly x: Tensor;
  /** Undefined at the first step. */
  readonly state: readonly Tensor[] | undefined;
}

type Spoil = (member: Member, form: Form, draw: Draw) => Member;
const ofState =
  (change: (state: Tensor, form: Form, draw: Draw) => readonly Tensor[]): Spoil =>
  (member, form, draw) => ({ ...member, state: change(drawn("S", form, 1, draw), form, draw) });
const ofInput =
  (change: (x: Tensor, form: Form, draw: Draw) => Tensor): Spoil =>
  (member, form, draw) => ({ ...member, x: change(member.x, form, draw) });
const longer = (tensor: Tensor): Tensor => ({ ...tensor, data: Buffer.concat([tensor.data, tensor.data]) });
const shorter = (tensor: Tensor): Tensor => ({ ...tensor, data: tensor.data.subarray(0, -1) });

/** Each kind of odd member, and the end of its request. */
const odd: Readonly<Record<string, { readonly spoil: Spoil; readonly code: string }>> = {
  "a state of two rows": { spoil: ofState((_, form, draw) => [drawn("S", form, 2, draw)]), code: "state_corrupt" },
  "a state of no row": { spoil: ofState((_, form, draw) => [drawn("S", form, 0, draw)]), code: "state_corrupt" },
  "a state without rows": {
    spoil: ofState((state, { dims }) => [{ ...state, shape: dims }]),
    code: "state_corrupt",
  },
  "a state of more bytes": { spoil: ofState((state) => [longer(state)]), code: "state_corrupt" },
  "a state of fewer bytes": { spoil: ofState((state) => [shorter(state)]), code: "state_corrupt" },
  "a state of another name": { spoil: ofState((state) => [{ ...state, name: "X" }]), code: "state_corrupt" },
  "a state of another type": { spoil: ofState((state) => [{ ...state, datatype: "BOOL" }]), code: "state_corrupt" },
  "a state twice": { spoil: ofState((state) => [state, state]), code: "state_corrupt" },
  "no state": { spoil: ofState(() => []), code: "state_corrupt" },
  "an input of two rows": { spoil: ofInput((_, form, draw) => drawn("X", form, 2, draw)), code: "model_error" },
  "an input of more bytes": { spoil: ofInput(longer), code: "model_error" },
  "an input of fewer bytes": { spoil: ofInput(shorter), code: "model_error" },
  "an input of another type": { spoil: ofInput((x) => ({ ...x, datatype: "BOOL" })), code: "model_error" },
  "an input of another name": { spoil: ofInput((x) => ({ ...x, name: "S" })), code: "model_error" },
};
const kinds = Object.keys(odd);

function heldOf(entry: string, { x, state }: Member): Held {
  const frame = encodeFrame({ outputs: ["Y"] }, [x]);
  const found = delivery(entry, { sequence: entry, step: 2, number: 2, frame });
  const lookup = Promise.resolve({ kind: "found" as const, tensors: state });
  return hold(found, Infinity, { batched: true, shared: new Set() }, lookup);
}

/** A request's answer and next state, as bytes, or else the error's code. */
function ending({ outcome, checkpoint }: Settled): string {
  const read = readOutcome(outcome.kind, outcome.body);
  if (read.kind === "error") return read.code;
  const tensors = [...decodeFrame(read.body).tensors, ...(checkpoint?.tensors ?? [])];
  return tensors.map(({ name, shape, data }) => `${name}[${shape.join()}]${data.toString("hex")}`).join(" ");
}

/** The end of each member of a batch, in the order of the batch. */
async function endings(model: ServingModel, members: readonly Member[]): Promise<string[]> {
  const batch = members.map((member, i) => heldOf(`${i}-0`, member));
  const settled = (await execute(model, batch, { maxStateBytes: 1_000_000 })).settlements();
  const byEntry = new Map(settled.map((one) => [one.delivery.entry, ending(one)]));
  return batch.map((held) => byEntry.get(held.delivery.entry) ?? "not settled");
}

/** The bytes that each member gets alone, computed without `execute`. */
function alone(form: Form, { x, state }: Member): string {
  const first = { ...form.layout, axis: 0 };
  const [xs] = rowsOf(x, first) as [Buffer[]];
  const blank = Buffer.alloc(datatypeBytes[form.datatype]);
  const ss = state?.[0] === undefined ? xs.map(() => blank) : (rowsOf(state[0], first)[0] ?? []);
  const flat = { ...form, layout: { axis: 0, bare: false } };
  const parts = [
    tensorOf("Y", flat, [mixed(xs, ss, form.datatype)]),
    tensorOf("S", flat, [mixed(ss, xs, form.datatype)]),
  ];
  return parts.map(({ name, shape, data }) => `${name}[${shape.join()}]${Buffer.from(data).toString("hex")}`).join(" ");
}

function honest(form: Form, draw: Draw): Member {
  const state = draw(4) === 0 ? undefined : [drawn("S", form, 1, draw)];
  return { x: drawn("X", form, 1, draw), state };
}

describe.each(forms)("a batch of $name", (form) => {
  const model = modelOf(form);

  it("gives each member what it would get alone", async () => {
    const draw = numbersOf(1);
    for (let round = 0; round < 20; round++) {
      const members = Array.from({ length: 1 + draw(9) }, () => honest(form, draw));
      expect(await endings(model, members)).toEqual(members.map((member) => alone(form, member)));
    }
  });

  it.each(kinds)("with %s fails that member alone, wherever it is", async (kind) => {
    const draw = numbersOf(2);
    for (let at = 0; at < 6; at++) {
      const members = Array.from({ length: 6 }, () => honest(form, draw));
      const expected = members.map((member) => alone(form, member));
      members[at] = odd[kind]?.spoil(members[at] as Member, form, draw) as Member;
      expected[at] = odd[kind]?.code ?? "";
      expect(await endings(model, members), `place ${at}`).toEqual(expected);
    }
  });

  // The runtime sees only sums: one member's surplus may make up for another's lack.
  it("with any two odd members fails these alone", async () => {
    const draw = numbersOf(3);
    for (const [i, one] of kinds.entries()) {
      for (const other of kinds.slice(i)) {
        const members = Array.from({ length: 7 }, () => honest(form, draw));
        const expected = members.map((member) => alone(form, member));
        const from = draw(5);
        const places = [from, from + 1 + draw(6 - from)] as const;
        for (const [at, kind] of [[places[0], one] as const, [places[1], other] as const]) {
          members[at] = odd[kind]?.spoil(members[at] as Member, form, draw) as Member;
          expected[at] = odd[kind]?.code ?? "";
        }
        expect(await endings(model, members), `${one} at ${places[0]}, ${other} at ${places[1]}`).toEqual(expected);
      }
    }
  });

  it.each<GraphFault>(["a row too many", "a row too few", "bytes too few", "bytes too many"])(
    "whose graph gives %s fails as a whole",
    async (fault) => {
      const draw = numbersOf(4);
      const members = Array.from({ length: 5 }, () => honest(form, draw));
      expect(await endings(modelOf(form, fault), members)).toEqual(members.map(() => "model_error"));
    },
  );
});
