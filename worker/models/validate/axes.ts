/**
 * Finds the batch axis of each tensor of a graph. In exports of recurrent models any axis may be
 * the batch's, as in PyTorch's states of the shape [layers, batch, hidden]. A graph may have names
 * for its variable sizes (symbols, such as `batch`); tensors with the same name share the size.
 */
import type { GraphMetadata, GraphTensor } from "../../onnx/graph.js";

/** The facts about a tensor from outside the graph. */
export interface Known {
  /** The axis that the configuration names. */
  readonly named?: number | undefined;
  /** The tensor's dims in the configuration, without the batch. */
  readonly dims?: readonly number[] | undefined;
  /** The other tensor of a state. Its batch axis counts if no other fact shows the axis. */
  readonly partner?: { readonly tensor: GraphTensor; readonly known: Known };
}

/**
 * `none`: no axis of the tensor may be the batch, so all requests of a batch share the tensor.
 * `unclear`: several axes may be the batch, and no fact decides.
 */
export type FoundAxis = number | "none" | "unclear";

/** @param known facts from outside the graph; absent if there are none */
export type AxisFinder = (tensor: GraphTensor, known?: Known) => FoundAxis;

/**
 * Makes a function that finds batch axes. The first of these facts that applies decides:
 * 1. the axis that the configuration names;
 * 2. the axis that the configuration's dims leave out;
 * 3. axis 0, if Triton itself would batch the graph;
 * 4. the only axis of variable size;
 * 5. the axis with the symbol that all tensors share;
 * 6. for a state, the axis of its other tensor; for other tensors, the axis of the inputs with as
 *    many dimensions, which is axis 0 unless a symbol shows another.
 *
 * @param states the inputs and outputs of the states that are known so far
 */
export function axisFinder(graph: GraphMetadata, states: ReadonlySet<GraphTensor>): AxisFinder {
  const tensors = [...graph.inputs, ...graph.outputs];
  const ordinary = graph.inputs.filter((tensor) => !states.has(tensor));
  const symbol = batchSymbol(graph);
  const asTriton = tensors.every(({ dims }) => dims[0] === -1) && !(symbol !== undefined && isBatchName(symbol));
  const hasBatchName = tensors.some(({ symbols = [] }) => symbols.some((one) => one !== undefined && isBatchName(one)));
  /** Whether an axis of variable size may be the batch, and not time or the length of a cache. */
  const mayBeBatch = (tensor: GraphTensor, axis: number): boolean => {
    if (axis === 0) return true;
    const name = properName(tensor, axis);
    if (name !== undefined && isBatchName(name)) return true;
    if (name !== undefined && hasBatchName) return false;
    if (name !== undefined && mayNameBatch(name)) return true;
    if (!states.has(tensor)) return tensor.dims[0] !== 1;
    // The first axis of a state may count layers, so only other tensors show whether the graph has
    // a batch at all.
    const batches = ordinary.flatMap((one) => {
      const found = told(one, {});
      return found === "none" ? [] : [found === "unclear" ? undefined : properName(one, found)];
    });
    if (tensor.dims[0] !== 1 || name === undefined) return ordinary.length === 0 || batches.length > 0;
    return batches.includes(name);
  };
  /** The axis by the configuration and the tensor's own shape. */
  const told = (tensor: GraphTensor, { named, dims }: Known): FoundAxis => {
    if (named !== undefined) return named;
    const variable = [...tensor.dims.keys()].filter((axis) => tensor.dims[axis] === -1);
    if (variable.length === 0) return "none";
    const leftOut = dims === undefined ? variable : variable.filter((axis) => fits(tensor, axis, dims));
    const [only, ...others] = leftOut.length > 0 ? leftOut : variable;
    if (only !== undefined && others.length === 0) {
      const isSaid = dims !== undefined && tensor.dims.toSpliced(only, 1).join() === dims.join();
      return isSaid || variable.length > 1 || mayBeBatch(tensor, only) ? only : "none";
    }
    if (asTriton) return 0;
    const symbolic = symbol === undefined ? -1 : (tensor.symbols ?? []).indexOf(symbol);
    if (symbolic < 0) return "unclear";
    return mayBeBatch(tensor, symbolic) ? symbolic : "none";
  };
  /**
   * For an output whose sizes have other names than the inputs' sizes: the batch axis of the inputs
   * with as many dimensions.
   */
  const likeInputs = ({ dims }: GraphTensor): FoundAxis => {
    const axes = ordinary.flatMap(({ symbols = [], dims: { length } }) => {
      const axis = symbol === undefined ? -1 : symbols.indexOf(symbol);
      return axis < 0 ? [] : [{ axis, length }];
    });
    if (axes.every(({ axis }) => axis === 0)) return dims[0] === -1 ? 0 : "unclear";
    const [axis, ...others] = new Set(axes.filter(({ length }) => length === dims.length).map((one) => one.axis));
    return axis !== undefined && others.length === 0 && dims[axis] === -1 ? axis : "unclear";
  };
  return (tensor, known = {}) => {
    const axis = told(tensor, known);
    if (known.partner === undefined) return axis === "unclear" ? likeInputs(tensor) : axis;
    const other = told(known.partner.tensor, known.partner.known);
    if (axis === "unclear") return typeof other === "number" && tensor.dims[other] === -1 ? other : "unclear";
    if (known.named !== undefined || graph.inputs.includes(tensor)) return axis;
    // Exporters name the sizes of outputs freely, so the input of a state decides.
    if (axis === "none") return typeof other === "number" && tensor.dims[other] === -1 ? other : "none";
    return other === "none" && known.partner.tensor.dims.includes(-1) ? "none" : axis;
  };
}

/** Whether these dims are the tensor's without that axis; -1 is any size on either side. */
function fits({ dims }: GraphTensor, axis: number, told: readonly number[]): boolean {
  const own = dims.toSpliced(axis, 1);
  if (own.length === 0) return told.every((dim) => dim === 1);
  return own.length === told.length && own.every((dim, i) => dim === -1 || told[i] === -1 || dim === told[i]);
}

/**
 * The only name of a size that all tensors of variable size share. If there is none, the name that
 * all such inputs share, because exporters often leave outputs without names. Among several names,
 * a name for batches wins.
 */
function batchSymbol({ inputs, outputs }: GraphMetadata): string | undefined {
  for (const tensors of [[...inputs, ...outputs], inputs]) {
    const shared = sharedSymbols(tensors.filter(({ dims }) => dims.includes(-1)));
    const [only, ...others] = shared;
    if (others.length === 0 && only !== undefined) return only;
    for (const isCalled of [isBatchName, mayNameBatch]) {
      const called = shared.filter(isCalled);
      if (called.length === 1) return called[0];
    }
  }
  return undefined;
}

/**
 * The names that every tensor has exactly once. A name that a tensor has twice identifies no axis.
 */
function sharedSymbols([first, ...others]: readonly GraphTensor[]): string[] {
  const once = ({ symbols = [] }: GraphTensor): string[] =>
    symbols.filter(
      (symbol, axis): symbol is string =>
        symbol !== undefined && symbols.indexOf(symbol) === axis && symbols.lastIndexOf(symbol) === axis,
    );
  return first === undefined
    ? []
    : once(first).filter((symbol) => others.every((other) => once(other).includes(symbol)));
}

/** The name of an axis if a person chose it. Exporters generate names such as `dim_0`. */
function properName({ symbols = [] }: GraphTensor, axis: number): string | undefined {
  const name = symbols[axis];
  return name === undefined || /(^|_)dim_\d+$|^unk__\d+$|^s\d+$/.test(name) ? undefined : name;
}

function isBatchName(symbol: string): boolean {
  return /^batch(_?size)?$/i.test(symbol);
}

/** Names that often are the batch's, but as often the number of points or of boxes. */
function mayNameBatch(symbol: string): boolean {
  return /^[bn]$/i.test(symbol);
}
