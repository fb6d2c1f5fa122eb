/**
 * Inputs that a request may leave out. In an ONNX file they are inputs with an initializer, whose
 * value counts if a run gives no other. ONNX Runtime for Node gives such inputs no value from
 * outside. So this takes their initializers out of the file, which makes them inputs like others,
 * and feeds them the values of these initializers if a request has none.
 */
import { LoadError } from "../../thread/load-error.js";
import { hasExternalData } from "./onnx-search.js";
import { lengthField, WireReader } from "./wire.js";

/** Fields of ONNX's messages (`onnx.proto`). */
const MODEL_GRAPH = 7;
const GRAPH = { node: 1, name: 2, initializer: 5, input: 11, output: 12 } as const;
const NODE = { input: 1, output: 2, operator: 4 } as const;
const TENSOR_NAME = 8;
const VALUE_NAME = 1;

export interface Opened {
  /** The file without the initializers of these inputs. */
  readonly file: Buffer;
  /**
   * A file whose outputs are the values of these initializers, each with the name of its input.
   * Undefined if no such input has an initializer.
   */
  readonly values: Buffer | undefined;
}

/**
 * @param file a whole ONNX file
 * @param names of inputs. An input without an initializer stays as it is.
 * @throws RangeError if the file is no ONNX file
 * @throws LoadError if such an input has an initializer, and the file has external data: ONNX
 *   Runtime looks for the data of a file that it gets as bytes in the worker's own directory
 */
export function openInputs(file: Buffer, names: ReadonlySet<string>): Opened {
  const beside: Buffer[] = [];
  let graph: ReturnType<typeof readGraph> | undefined;
  const rest: Buffer[] = [];
  for (const { field, content, whole } of fieldsOf(file)) {
    if (field !== MODEL_GRAPH || content === undefined) {
      beside.push(whole);
      rest.push(whole);
      continue;
    }
    graph = readGraph(content, names);
    rest.push(lengthField(MODEL_GRAPH, graph.rest));
  }
  if (graph === undefined || graph.values.length === 0) return { file, values: undefined };
  if (hasExternalData(file)) {
    const names = graph.values.map(({ name }) => `'${name}'`).join(", ");
    throw new LoadError(`a file with optional inputs (${names}) must not have external data: keep the weights in it`);
  }
  const parts = graph.values.flatMap(({ name, tensor, value }) => {
    const given = Buffer.from(`${name}.given`);
    const node = lengthField(GRAPH.node, [
      lengthField(NODE.input, [given]),
      lengthField(NODE.output, [Buffer.from(name)]),
      lengthField(NODE.operator, [Buffer.from("Identity")]),
    ]);
    const renamed = [...fieldsOf(tensor)].filter(({ field }) => field !== TENSOR_NAME).map(({ whole }) => whole);
    const initializer = lengthField(GRAPH.initializer, [...renamed, lengthField(TENSOR_NAME, [given])]);
    return [node, initializer, lengthField(GRAPH.output, [value])];
  });
  const values = lengthField(MODEL_GRAPH, [...parts, lengthField(GRAPH.name, [Buffer.from("values")])]);
  return { file: Buffer.concat(rest), values: Buffer.concat([...beside, values]) };
}

function readGraph(graph: Buffer, names: ReadonlySet<string>) {
  const fields = [...fieldsOf(graph)].map((one) => ({ ...one, name: nameIn(one) }));
  const inputs = new Map(
    fields.flatMap(({ field, content, name }) =>
      field === GRAPH.input && content !== undefined && names.has(name) ? [[name, content] as const] : [],
    ),
  );
  const isTaken = ({ field, name }: { readonly field: number; readonly name: string }): boolean =>
    field === GRAPH.initializer && inputs.has(name);
  const values = fields.filter(isTaken).flatMap(({ name, content }) => {
    const value = inputs.get(name);
    return content === undefined || value === undefined ? [] : [{ name, tensor: content, value }];
  });
  return { rest: fields.filter((one) => !isTaken(one)).map(({ whole }) => whole), values };
}

function nameIn({ field, content }: { readonly field: number; readonly content: Buffer | undefined }): string {
  const wanted = field === GRAPH.initializer ? TENSOR_NAME : field === GRAPH.input ? VALUE_NAME : undefined;
  if (wanted === undefined || content === undefined) return "";
  for (const one of fieldsOf(content)) if (one.field === wanted) return one.content?.toString() ?? "";
  return "";
}

function* fieldsOf(message: Buffer): Generator<ReturnType<WireReader["next"]>> {
  const reader = new WireReader(message);
  while (!reader.atEnd) yield reader.next();
}
