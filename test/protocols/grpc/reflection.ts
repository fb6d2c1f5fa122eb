/** A client of server reflection, without the library that the gateway answers with. */
import { Metadata, type ClientDuplexStream, type ServiceError, type StatusObject } from "@grpc/grpc-js";
import type { GrpcClient } from "./client.js";

export const versions = ["v1", "v1alpha"] as const;

/** The fields of a question: a text each. */
const questions = { fileByName: 3, symbol: 4, services: 7 } as const;

/** The fields of an answer. */
const FILES = 4;
const SERVICES = 6;
const ERROR = 7;

export interface Reflected {
  /** Of the services. */
  readonly names: readonly string[];
  readonly files: readonly ReflectedFile[];
  /** The status of an answer that is none. */
  readonly error: number | undefined;
}

/** A file of the protocol. */
export interface ReflectedFile {
  readonly messages: readonly string[];
  /** Methods by the name of their service. */
  readonly services: Readonly<Record<string, readonly string[]>>;
}

export class Reflection {
  readonly call: ClientDuplexStream<Buffer, Buffer>;
  /** Resolves with the status. */
  readonly ended: Promise<StatusObject>;

  constructor(
    { client }: GrpcClient,
    version: (typeof versions)[number] = "v1",
    headers: Readonly<Record<string, string>> = {},
  ) {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
    const asIs = (bytes: Buffer): Buffer => bytes;
    this.call = client.makeBidiStreamRequest(path, asIs, asIs, metadata);
    this.ended = new Promise((resolve) => this.call.once("status", resolve));
    this.call.on("error", () => undefined);
  }

  send(question: keyof typeof questions, text: string): void {
    const bytes = Buffer.from(text);
    this.call.write(Buffer.concat([varint((questions[question] << 3) | 2), varint(bytes.length), bytes]));
  }

  ask(question: keyof typeof questions, text: string): Promise<Reflected> {
    this.send(question, text);
    return new Promise((resolve, reject) => {
      const refuse = (error: ServiceError): void => reject(error);
      this.call.once("error", refuse);
      this.call.once("data", (answer: Buffer) => {
        this.call.off("error", refuse);
        resolve(reflected(fieldsOf(answer)));
      });
    });
  }

  /** Ends the client's side, and resolves with the status. */
  finish(): Promise<StatusObject> {
    this.call.end();
    return this.ended;
  }
}

type Fields = ReadonlyMap<number, readonly (Buffer | number)[]>;

function reflected(answer: Fields): Reflected {
  return {
    names: messagesIn(answer, SERVICES).flatMap((list) => messagesIn(list, 1).map(nameOf)),
    files: messagesIn(answer, FILES).flatMap((list) => messagesIn(list, 1).map(fileOf)),
    error: messagesIn(answer, ERROR).map((error) => Number(error.get(1)?.[0]))[0],
  };
}

/** Reads a FileDescriptorProto. */
function fileOf(file: Fields): ReflectedFile {
  return {
    messages: messagesIn(file, 4).map(nameOf),
    services: Object.fromEntries(
      messagesIn(file, 6).map((service) => [nameOf(service), messagesIn(service, 2).map(nameOf)]),
    ),
  };
}

/** In the messages that are read here, the first field is the name. */
function nameOf(message: Fields): string {
  return String(message.get(1)?.[0]);
}

function messagesIn(fields: Fields, field: number): Fields[] {
  return (fields.get(field) ?? []).map((bytes) => fieldsOf(bytes as Buffer));
}

/** Reads the fields of a message: numbers, and bytes of any other kind. */
function fieldsOf(bytes: Buffer): Fields {
  const fields = new Map<number, (Buffer | number)[]>();
  let at = 0;
  const number = (): number => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 127) * shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = number();
    const value = number();
    const isNumber = (tag & 7) === 0;
    const found = fields.get(tag >> 3) ?? [];
    fields.set(tag >> 3, [...found, isNumber ? value : bytes.subarray(at, at + value)]);
    if (!isNumber) at += value;
  }
  return fields;
}

function varint(value: number): Buffer {
  return value < 128 ? Buffer.of(value) : Buffer.concat([Buffer.of((value & 127) | 128), varint(value >> 7)]);
}
