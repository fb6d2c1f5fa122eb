/**
 * Finds the batch axis of each tensor of a graph. Exports of recurrent models have it anywhere,
 * such as PyTorch's states of the shape [layers, batch, hidden]. A graph may give names to its
 * sizes that vary (symbols, such as `batch`); tensors that share such a name share the size.
 */
import type { GraphMetadata, GraphTensor } from "../../onnx/graph.js";

/** What is known of a tensor beside the graph. */
export interface Known {
  /** The axis that the configuration names. */
  readonly named?: number | undefined;
  /** Its dims in the configuration, in which the batch is left out. */
  readonly dims?: readonly number[] | undefined;
  /** The other end of a state, whose batch is at the same axis where nothing else tells. */
  readonly partner?: { readonly tensor: GraphTensor; readonly known: Known };
}

/**
 * `none`: no axis of the tensor may be the batch, so all requests of a batch share the tensor.
 * `unclear`: several may be, and nothing says which.
 */
export type FoundAxis = number | "none" | "unclear";

/** @param known what is known of the tensor beside the graph; absent where nothing is */
export type AxisFinder = (tensor: GraphTensor, known?: Known) => FoundAxis;

/**
 * What tells of the axis, in this order: the axis that the configuration names; the one that its
 * dims leave out; axis 0, where Triton itself would batch the graph; the only one of variable size;
 * the one whose symbol all tensors share; of a state, that of its other end; of other tensors, axis
 * 0.
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
    // The first axis of a state may count layers, so only other tensors tell whether the graph has
    // a batch at all.
    const batches = ordinary.flatMap((one) => {
      const found = told(one, {});
      return found === "none" ? [] : [found === "unclear" ? undefined : properName(one, found)];
    });
    if (tensor.dims[0] !== 1 || name === undefined) return ordinary.length === 0 || batches.length > 0;
    return batches.includes(name);
  };
  /** What the configuration and the tensor's own shape tell. */
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
   * For an output whose sizes have other names than those of the inputs: the axis at which the
   * inputs with as many dimensions have their batch.
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
    // Exporters name the sizes of outputs as they like, so the input of a state is the one to ask.
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
 * The one name of a size that all tensors of variable size share, or else all such inputs, since
 * exporters often leave outputs without names. Of several the one that is called after a batch.
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

/** A name that stands twice in a tensor tells no axis. */
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

/** The name of an axis, where a person has given it: exporters make up such as `dim_0`. */
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
