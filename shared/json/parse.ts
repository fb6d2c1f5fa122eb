/**
 * Parses JSON as KServe clients write it. Keeps 64-bit integers exact, as bigint if a double would
 * round them. Reads bare NaN and Infinity as numbers. Refuses faults that `JSON.parse` accepts
 * (deep nesting, duplicate names, invalid UTF-8, 1e999). `1.0` and `1` are the same number. Objects
 * have no prototype, so `__proto__` is plain data.
 *
 * The cost of a document is bounded. The parser counts values, and checks the data of tensors in
 * place (tensor-data.ts), because a tensor may have millions of values.
 */
import { isUtf8 } from "node:buffer";
import { JsonError } from "./error.js";
import { Lexer } from "./lexer.js";
import { elementKinds, TensorData } from "./tensor-data.js";

export type JsonValue = null | boolean | number | bigint | string | JsonValue[] | JsonObject | TensorData;
export interface JsonObject {
  [key: string]: JsonValue;
}

/**
 * Whether a member is a tensor's data, which the parser checks but does not build.
 * @param name the member's name
 * @param depth the nesting of the member's object; the root has depth 1
 * @param branch the root's member that contains the object; `name` itself for a member of the root
 */
export type IsTensorData = (name: string, depth: number, branch: string) => boolean;

const maxDepth = 100;
const maxMembers = 10_000;
/** The most values of a document: a prompt of 131 072 token ids fits. */
const maxValues = 150_000;
/** The most arrays and objects of a document, which take ten times the memory of other values. */
const maxContainers = 20_000;

/**
 * @param isTensorData chooses the members that become `TensorData`; absent: no member
 * @throws JsonError for an invalid document or a document beyond a limit
 */
export function parseJson(bytes: Buffer, isTensorData: IsTensorData = never): JsonValue {
  if (!isUtf8(bytes)) throw new JsonError("The document is not valid UTF-8", 0);
  return new Reader(bytes, isTensorData).document();
}

function never(): boolean {
  return false;
}

class Reader {
  readonly #bytes: Buffer;
  readonly #isTensorData: IsTensorData;
  readonly #lexer: Lexer;
  #values = 0;
  #containers = 0;
  #branch = "";

  constructor(bytes: Buffer, isTensorData: IsTensorData) {
    this.#bytes = bytes;
    this.#isTensorData = isTensorData;
    this.#lexer = new Lexer(bytes);
  }

  document(): JsonValue {
    const lexer = this.#lexer;
    lexer.space();
    if (lexer.atEnd) lexer.fail("The document is empty");
    const value = this.#value(0);
    lexer.space();
    if (!lexer.atEnd) lexer.fail("The document root must not be followed by other values");
    return value;
  }

  #value(depth: number): JsonValue {
    const lexer = this.#lexer;
    if (++this.#values > maxValues) lexer.fail(`More values than the limit of ${maxValues}`);
    const code = lexer.peek();
    if (code === 0x22) return lexer.string();
    if (code === 0x7b) return this.#object(depth + 1);
    if (code === 0x5b) return this.#array(depth + 1);
    if (isNumber(code)) return lexer.number();
    return lexer.literal();
  }

  #enter(depth: number): void {
    this.#checkDepth(depth);
    if (++this.#containers > maxContainers) {
      this.#lexer.fail(`More arrays and objects than the limit of ${maxContainers}`);
    }
  }

  #checkDepth(depth: number): void {
    if (depth > maxDepth) this.#lexer.fail(`JSON nesting depth exceeds maximum allowed limit (${maxDepth})`);
  }

  #array(depth: number): JsonValue[] {
    this.#enter(depth);
    const lexer = this.#lexer;
    const items: JsonValue[] = [];
    lexer.at++;
    lexer.space();
    if (lexer.peek() === 0x5d) {
      lexer.at++;
      return items;
    }
    for (;;) {
      items.push(this.#value(depth));
      lexer.space();
      const code = lexer.peek();
      if (code !== 0x2c && code !== 0x5d) lexer.fail("Missing a comma or ] after an array element");
      lexer.at++;
      if (code === 0x5d) return items;
      lexer.space();
    }
  }

  #object(depth: number): JsonObject {
    this.#enter(depth);
    const lexer = this.#lexer;
    const object = Object.create(null) as JsonObject;
    let members = 0;
    lexer.at++;
    lexer.space();
    if (lexer.peek() === 0x7d) {
      lexer.at++;
      return object;
    }
    for (;;) {
      const nameAt = lexer.at;
      if (lexer.peek() !== 0x22) lexer.fail("Missing a name for object member");
      const name = lexer.string();
      if (name in object) lexer.fail("Duplicate name of object member", nameAt);
      if (++members > maxMembers) lexer.fail(`More object members than the limit of ${maxMembers}`, nameAt);
      lexer.space();
      if (lexer.peek() !== 0x3a) lexer.fail("Missing a colon after a name of object member");
      lexer.at++;
      lexer.space();
      if (depth === 1) this.#branch = name;
      object[name] = this.#isTensorData(name, depth, this.#branch) ? this.#data(depth) : this.#value(depth);
      lexer.space();
      const code = lexer.peek();
      if (code !== 0x2c && code !== 0x7d) lexer.fail("Missing a comma or } after an object member");
      lexer.at++;
      if (code === 0x7d) return object;
      lexer.space();
    }
  }

  /** Checks a tensor's data. Builds nothing, and takes no stack for nested arrays. */
  #data(depth: number): TensorData {
    const lexer = this.#lexer;
    const start = lexer.at;
    const isArray = lexer.peek() === 0x5b;
    let level = depth;
    let isNested = false;
    let count = 0;
    let kinds = 0;
    let stringBytes = 0;
    for (;;) {
      if (lexer.peek() === 0x5b) {
        this.#checkDepth(++level);
        if (level > depth + 1) isNested = true;
        lexer.at++;
        lexer.space();
        if (lexer.peek() !== 0x5d) continue;
      } else {
        const kind = this.#element(level);
        if (kind === elementKinds.string) stringBytes += lexer.skippedBytes;
        kinds |= kind;
        count++;
      }
      // The loop has skipped a value, or has opened an empty array.
      for (; level > depth; level--) {
        lexer.space();
        if (lexer.peek() !== 0x5d) break;
        lexer.at++;
      }
      if (level === depth) return new TensorData(this.#bytes, start, { isArray, isNested, count, kinds, stringBytes });
      if (lexer.peek() !== 0x2c) lexer.fail("Missing a comma or ] after an array element");
      lexer.at++;
      lexer.space();
    }
  }

  /**
   * Skips an element.
   * @returns the element's kind
   */
  #element(depth: number): number {
    const lexer = this.#lexer;
    const code = lexer.peek();
    if (isNumber(code)) {
      lexer.skipNumber();
      return elementKinds.number;
    }
    if (code === 0x22) {
      lexer.skipString();
      return elementKinds.string;
    }
    if (code === 0x7b) {
      this.#value(depth);
      return elementKinds.other;
    }
    const literal = lexer.literal();
    if (typeof literal === "number") return elementKinds.number;
    return literal === null ? elementKinds.other : elementKinds.boolean;
  }
}

function isNumber(code: number): boolean {
  return code === 0x2d || (code >= 0x30 && code <= 0x39);
}
