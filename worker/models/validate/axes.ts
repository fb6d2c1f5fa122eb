/**
 * Finds the batch axis of each tensor of a graph. Exports of recurrent models have it anywhere,
 * such as PyTorch's states of the shape [layers, batch, hidden].
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

/** None: the tensor has no axis of variable size, so it is the same for the whole batch. */
export type FoundAxis = number | "none" | "unclear";

/** @param known by tensor, where anything is */
export type AxisFinder = (tensor: GraphTensor, known?: Known) => FoundAxis;

/**
 * In this order: the axis that the configuration names; the one that its dims leave out; axis 0,
 * where Triton itself would batch the graph; the only one of variable size; the one whose symbol
 * all tensors share; of a state, that of its other end; of other tensors, axis 0.
 */
export function axisFinder(graph: GraphMetadata): AxisFinder {
  const tensors = [...graph.inputs, ...graph.outputs];
  const symbol = batchSymbol(graph);
  const asTriton = tensors.every(({ dims }) => dims[0] === -1) && !(symbol !== undefined && isBatchName(symbol));
  const told = (tensor: GraphTensor, { named, dims }: Known): FoundAxis => {
    if (named !== undefined) return named;
    const variable = [...tensor.dims.keys()].filter((axis) => tensor.dims[axis] === -1);
    if (variable.length === 0) return "none";
    const leftOut = dims === undefined ? variable : variable.filter((axis) => fits(tensor, axis, dims));
    const [only, ...others] = leftOut.length > 0 ? leftOut : variable;
    if (only !== undefined && others.length === 0) return only;
    if (asTriton) return 0;
    const symbolic = symbol === undefined ? -1 : (tensor.symbols ?? []).indexOf(symbol);
    return symbolic >= 0 ? symbolic : "unclear";
  };
  return (tensor, known = {}) => {
    const axis = told(tensor, known);
    if (axis !== "unclear") return axis;
    if (known.partner === undefined) return tensor.dims[0] === -1 ? 0 : "unclear";
    const other = told(known.partner.tensor, known.partner.known);
    return typeof other === "number" && tensor.dims[other] === -1 ? other : "unclear";
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
    const called = shared.filter(isBatchName);
    if (called.length === 1) return called[0];
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

function isBatchName(symbol: string): boolean {
  return /^(n|batch(_?size)?)$/i.test(symbol);
}
