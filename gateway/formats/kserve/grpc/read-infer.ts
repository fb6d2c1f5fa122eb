/**
 * Reads ModelInferRequest, whose messages are those of `inference.proto`. Counts while it reads, so
 * that a message takes no more memory than a request may: a million empty tensors would fit into
 * two megabytes.
 */
import { InferenceError } from "#shared/errors.js";
import { maxInputs, maxRank } from "../request.js";
import { FieldReader, FIXED64, VARINT } from "./wire.js";

/** A parameter by the field that the client has set. */
export type GrpcParameter =
  | { readonly kind: "bool"; readonly value: boolean }
  | { readonly kind: "int64" | "uint64"; readonly value: bigint }
  | { readonly kind: "string"; readonly value: string }
  | { readonly kind: "double"; readonly value: number }
  | { readonly kind: "none" };

export type GrpcParameters = ReadonlyMap<string, GrpcParameter>;

export interface GrpcInput {
  readonly name: string;
  readonly datatype: string;
  /** A number below 0 stands for any dimension that no tensor can have. */
  readonly shape: readonly number[];
  readonly parameters: GrpcParameters;
  /** Pieces of InferTensorContents, which protocol buffers merge; undefined if it is not there. */
  readonly contents: readonly Buffer[] | undefined;
}

export interface GrpcOutput {
  readonly name: string;
  readonly parameters: GrpcParameters;
}

/** A ModelInferRequest. Its bytes are views of the message. */
export interface GrpcInfer {
  readonly model: string;
  /** Empty: the latest. */
  readonly version: string;
  readonly id: string;
  readonly parameters: GrpcParameters;
  readonly inputs: readonly GrpcInput[];
  readonly outputs: readonly GrpcOutput[];
  readonly raw: readonly Buffer[];
}

/** Most parameters of a request, of an input or of an output. */
const MOST_PARAMETERS = 1_024;
/** Most pieces of contents of one input. Every client known sends one. */
const MOST_PIECES = 64;

/** @throws InferenceError if the bytes are no such message, or have too many of something */
export function readInfer(message: Buffer): GrpcInfer {
  const reader = new FieldReader(message);
  let [model, version, id] = ["", "", ""];
  const parameters = new Map<string, GrpcParameter>();
  const inputs: GrpcInput[] = [];
  const outputs: GrpcOutput[] = [];
  const raw: Buffer[] = [];
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        model = reader.text();
        break;
      case 2:
        version = reader.text();
        break;
      case 3:
        id = reader.text();
        break;
      case 4:
        readParameter(reader, parameters);
        break;
      case 5:
        inputs.push(readInput(reader.message()));
        if (inputs.length > maxInputs) throw tooMany("inputs", maxInputs);
        break;
      case 6:
        outputs.push(readOutput(reader.message()));
        if (outputs.length > maxInputs) throw tooMany("outputs", maxInputs);
        break;
      case 7:
        raw.push(reader.bytes());
        if (raw.length > maxInputs) throw tooMany("raw_input_contents", maxInputs);
        break;
      default:
        reader.skip();
    }
  }
  return { model, version, id, parameters, inputs, outputs, raw };
}

function readInput(reader: FieldReader): GrpcInput {
  let [name, datatype] = ["", ""];
  const shape: number[] = [];
  const parameters = new Map<string, GrpcParameter>();
  let contents: Buffer[] | undefined;
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        name = reader.text();
        break;
      case 2:
        datatype = reader.text();
        break;
      case 3:
        reader.integers((low, high) => {
          // The upper half of a negative number is signed.
          shape.push((high | 0) * 2 ** 32 + low);
          if (shape.length > maxRank) throw tooMany("dimensions of a tensor", maxRank);
        });
        break;
      case 4:
        readParameter(reader, parameters);
        break;
      case 5:
        contents ??= [];
        contents.push(reader.bytes());
        if (contents.length > MOST_PIECES) throw tooMany("pieces of contents", MOST_PIECES);
        break;
      default:
        reader.skip();
    }
  }
  return { name, datatype, shape, parameters, contents };
}

function readOutput(reader: FieldReader): GrpcOutput {
  let name = "";
  const parameters = new Map<string, GrpcParameter>();
  while (reader.next()) {
    if (reader.field === 1) name = reader.text();
    else if (reader.field === 2) readParameter(reader, parameters);
    else reader.skip();
  }
  return { name, parameters };
}

/** Reads an entry of a map of parameters. */
function readParameter(reader: FieldReader, into: Map<string, GrpcParameter>): void {
  const entry = reader.message();
  let key = "";
  let parameter: GrpcParameter = { kind: "none" };
  while (entry.next()) {
    if (entry.field === 1) key = entry.text();
    else if (entry.field === 2) parameter = readChoice(entry.message());
    else entry.skip();
  }
  into.set(key, parameter);
  if (into.size > MOST_PARAMETERS) throw tooMany("parameters", MOST_PARAMETERS);
}

function readChoice(reader: FieldReader): GrpcParameter {
  let parameter: GrpcParameter = { kind: "none" };
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        reader.expect(VARINT);
        parameter = { kind: "bool", value: reader.uint64() !== 0n };
        break;
      case 2:
        reader.expect(VARINT);
        parameter = { kind: "int64", value: reader.int64() };
        break;
      case 3:
        parameter = { kind: "string", value: reader.text() };
        break;
      case 4:
        reader.expect(FIXED64);
        parameter = { kind: "double", value: reader.double() };
        break;
      case 5:
        reader.expect(VARINT);
        parameter = { kind: "uint64", value: reader.uint64() };
        break;
      default:
        reader.skip();
    }
  }
  return parameter;
}

function tooMany(things: string, most: number): InferenceError {
  return new InferenceError("invalid_argument", `the request has more than ${most} ${things}`);
}
