/**
 * A recurrent model in a bare loop, by default one sequence at a time. The loop feeds each
 * resulting state into the next step. Tests compare a fleet's answers with the loop's, however the
 * fleet batches.
 */
import * as ort from "onnxruntime-node";

export interface Loop {
  readonly file: string;
  /** The graph's state inputs, each with the output that becomes the next step's input. */
  readonly states: Readonly<Record<string, string>>;
  /** The first shape of states whose size the graph leaves open. */
  readonly initial?: Readonly<Record<string, readonly number[]>>;
  /** How many sequences run together: the size that the graph leaves open. By default 1. */
  readonly rows?: number;
  /** Inputs that are the same at each step. */
  readonly constants?: Readonly<Record<string, ort.Tensor>>;
}

type Outputs = Readonly<Record<string, readonly number[]>>;

export class BareLoop {
  readonly #session: ort.InferenceSession;
  readonly #loop: Loop;
  #states: Record<string, ort.Tensor> = {};

  private constructor(session: ort.InferenceSession, loop: Loop) {
    this.#session = session;
    this.#loop = loop;
  }

  static async open(loop: Loop): Promise<BareLoop> {
    return new BareLoop(await ort.InferenceSession.create(loop.file, { intraOpNumThreads: 1 }), loop);
  }

  /** Starts again: all states are zeros. */
  begin(): this {
    const { states, initial = {}, rows = 1 } = this.#loop;
    this.#states = Object.fromEntries(
      this.#session.inputMetadata.flatMap((value) => {
        if (!value.isTensor || states[value.name] === undefined) return [];
        const shape = initial[value.name] ?? value.shape.map((dim) => (typeof dim === "number" ? dim : rows));
        return [[value.name, tensorOf(value.type, shape)]];
      }),
    );
    return this;
  }

  /** @param inputs in the graph's own shapes */
  async step(inputs: Readonly<Record<string, ort.Tensor>>): Promise<Outputs> {
    const { states, constants } = this.#loop;
    const results = await this.#session.run({ ...constants, ...inputs, ...this.#states });
    for (const [input, output] of Object.entries(states)) {
      const state = results[output];
      if (state === undefined) throw new Error(`no output ${output}`);
      this.#states[input] = state;
    }
    return Object.fromEntries(
      Object.entries(results).map(([name, { data }]) => [name, Array.from(data as Float32Array, Number)]),
    );
  }
}

/** @param data zeros if absent */
export function tensorOf(type: ort.Tensor.Type, shape: readonly number[], data?: readonly number[]): ort.Tensor {
  const values = data ?? Array.from({ length: shape.reduce((product, dim) => product * dim, 1) }, () => 0);
  if (type === "int64") return new ort.Tensor(type, values.map(BigInt), shape);
  if (type === "bool") return new ort.Tensor(type, values.map(Boolean), shape);
  return new ort.Tensor(type as "float32", [...values], shape);
}

/** The largest difference between two numbers at the same index; infinite if the lengths differ. */
export function difference(one: readonly unknown[], other: readonly unknown[]): number {
  if (one.length !== other.length) return Infinity;
  let largest = 0;
  for (const [i, value] of one.entries()) {
    const apart = Math.abs(Number(value) - Number(other[i]));
    // Two values that are both not a number do not differ.
    if (apart > largest || (Number.isNaN(apart) && !Number.isNaN(Number(value) + Number(other[i])))) largest = apart;
  }
  return largest;
}
