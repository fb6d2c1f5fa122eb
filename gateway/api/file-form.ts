/**
 * Reads the form of an upload as it comes: fields, and a single file. The form hands the file on in
 * pieces. Fields may come before or after the file.
 */
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { Busboy, type BusboyHeaders } from "@fastify/busboy";
import { fixedError, InferenceError } from "#shared/errors.js";

/** Bounds of a form with these few fields. */
const LIMITS = { files: 1, fields: 16, parts: 17, fieldNameSize: 100, fieldSize: 4_096, headerPairs: 32 };

export interface FilePart {
  /** The client's name for the file, without folders. */
  readonly name: string;
  readonly content: Readable;
}

export class Form {
  /** The fields that have come so far. */
  readonly fields = new Map<string, string>();
  /** Resolves when the file begins; rejects if no file comes. */
  readonly file: Promise<FilePart>;
  /** Resolves when the whole form has come, for which the caller must read the file. */
  readonly ended: Promise<void>;
  #fault: InferenceError | undefined;

  /** @throws InferenceError if the request is no form */
  constructor(incoming: IncomingMessage, fieldNames: readonly string[]) {
    const parser = parserOf(incoming);
    let content: Readable | undefined;
    const begun = deferred<FilePart>();
    const ended = deferred<void>();
    this.file = begun.promise;
    this.ended = ended.promise;
    // The caller may never await one of the two promises, and an unhandled rejection would end the
    // process.
    for (const promise of [this.file, this.ended]) promise.catch(() => undefined);

    const fail = (error: InferenceError) => {
      this.#fault ??= error;
      incoming.unpipe(parser);
      incoming.off("close", onClose);
      incoming.resume();
      begun.reject(error);
      ended.reject(error);
      content?.destroy(error);
    };
    const onClose = () => {
      if (!incoming.complete) fail(fixedError("cancelled", "bodyIncomplete"));
    };
    parser.on("file", (field: string, stream: Readable, name: string | undefined) => {
      // Without a listener, the error that ends the reading would end the process.
      stream.on("error", () => undefined);
      if (field !== "file") return fail(refused(`the file must be in the field 'file', not '${field}'`));
      content = stream;
      begun.resolve({ name: name ?? "", content: stream });
    });
    parser.on("field", (name: string, value: string, isNameCut: boolean, isValueCut: boolean) => {
      if (isNameCut || !fieldNames.includes(name)) {
        return fail(refused(`unknown field '${name}'; there are: file, ${fieldNames.join(", ")}`));
      }
      if (isValueCut) return fail(refused(`the field '${name}' is too long`));
      if (this.fields.has(name)) return fail(refused(`the field '${name}' is given twice`));
      this.fields.set(name, value);
    });
    for (const event of ["filesLimit", "fieldsLimit", "partsLimit"] as const) {
      parser.on(event, () => fail(refused("the form has more parts than it may have: one file, and a few fields")));
    }
    parser.on("error", () => fail(refused("the form cannot be read: it is no whole multipart/form-data")));
    parser.on("finish", () => {
      incoming.off("close", onClose);
      if (this.#fault === undefined && content === undefined) fail(refused("the form has no file"));
      else ended.resolve();
    });
    incoming.once("close", onClose);
    incoming.on("error", () => undefined);
    incoming.pipe(parser);
  }
}

function parserOf({ headers }: IncomingMessage) {
  const { "content-type": type = "" } = headers;
  if (!/^multipart\/form-data\s*;/i.test(type)) {
    throw refused("the body must be multipart/form-data, with the file in the field 'file'");
  }
  try {
    return new Busboy({ headers: headers as BusboyHeaders, limits: LIMITS });
  } catch (cause) {
    throw new InferenceError("invalid_argument", "the boundary of the multipart/form-data is missing", { cause });
  }
}

interface Deferred<Value> {
  readonly promise: Promise<Value>;
  resolve(value: Value): void;
  reject(reason: Error): void;
}

function deferred<Value>(): Deferred<Value> {
  let settle: Omit<Deferred<Value>, "promise"> | undefined;
  const promise = new Promise<Value>((resolve, reject) => (settle = { resolve, reject }));
  if (settle === undefined) throw new Error("a promise runs its executor at once");
  return { promise, ...settle };
}

function refused(text: string): InferenceError {
  return new InferenceError("invalid_argument", text);
}
