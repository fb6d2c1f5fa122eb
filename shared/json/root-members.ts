/**
 * Splits a document into the members of its root, without reading the values. Returns each value as
 * bytes, so that a reader that knows the value's meaning can parse it as a document.
 */
import { isUtf8 } from "node:buffer";
import { JsonError } from "./error.js";
import { Lexer } from "./lexer.js";

const maxMembers = 100;

/**
 * The values are views of `bytes`, with rough checks only: the reader's own parser finds brackets
 * that do not match.
 * @throws JsonError if the root is no object, or the function cannot separate the members
 */
export function rootMembers(bytes: Buffer): Map<string, Buffer> {
  if (!isUtf8(bytes)) throw new JsonError("The document is not valid UTF-8", 0);
  const lexer = new Lexer(bytes);
  const members = new Map<string, Buffer>();
  lexer.space();
  if (lexer.peek() !== 0x7b) lexer.fail("The document root must be an object");
  lexer.at++;
  lexer.space();
  for (let isFirst = true; lexer.peek() !== 0x7d; isFirst = false) {
    if (!isFirst) {
      if (lexer.peek() !== 0x2c) lexer.fail("Missing a comma or } after an object member");
      lexer.at++;
      lexer.space();
    }
    if (lexer.peek() !== 0x22) lexer.fail("Missing a name for object member");
    const nameAt = lexer.at;
    const name = lexer.string();
    if (members.has(name)) lexer.fail("Duplicate name of object member", nameAt);
    if (members.size === maxMembers) lexer.fail(`More object members than the limit of ${maxMembers}`, nameAt);
    lexer.space();
    if (lexer.peek() !== 0x3a) lexer.fail("Missing a colon after a name of object member");
    lexer.at++;
    lexer.space();
    const from = lexer.at;
    skipValue(lexer);
    members.set(name, bytes.subarray(from, lexer.at));
    lexer.space();
  }
  lexer.at++;
  lexer.space();
  if (!lexer.atEnd) lexer.fail("The document root must not be followed by other values");
  return members;
}

/** Skips a value: a scalar, or everything up to the bracket that closes the first bracket. */
function skipValue(lexer: Lexer): void {
  let depth = 0;
  do {
    const code = lexer.peek();
    if (code === 0x22) lexer.skipString();
    else if (code === 0x7b || code === 0x5b) {
      depth++;
      lexer.at++;
    } else if (depth > 0 && (code === 0x7d || code === 0x5d)) {
      depth--;
      lexer.at++;
    } else if (depth > 0 && (code === 0x2c || code === 0x3a)) lexer.at++;
    else if (code === 0x2d || (code >= 0x30 && code <= 0x39)) lexer.skipNumber();
    else lexer.literal();
    if (depth > 0) lexer.space();
  } while (depth > 0);
}
