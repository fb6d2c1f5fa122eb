/** Values that fit a JSON schema, or do not, as arbitraries of fast-check. */
import * as fc from "fast-check";
import type { Schema } from "./document.js";

/** URLs to which the fleet may send: the sender fills in the address of the test's receiver. */
const URLS = ["<receiver>", "<receiver>/other?a=b"];

/** Short texts of all kinds, most of them plain. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.constantFrom(
    "",
    " ",
    "0",
    "-1",
    "null",
    "__proto__",
    "constructor",
    "a/b",
    "..",
    "%",
    "\u0000",
    "ä",
    "x".repeat(300),
  ),
);

/** Values of every type of JSON, most of them wrong in any place. */
export const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 1e300, 2 ** 53, "", "x", [], {}, [null], { a: 1 }, [[]]),
  fc.jsonValue({ maxDepth: 2 }),
);

/**
 * Values that fit the schema, for the keywords that Baton's declarations use.
 * @throws Error for another keyword
 */
export function valueOf(schema: Schema): fc.Arbitrary<unknown> {
  if (Array.isArray(schema["enum"])) return fc.constantFrom<unknown>(...(schema["enum"] as unknown[]));
  if (Array.isArray(schema["anyOf"])) return fc.oneof(...(schema["anyOf"] as Schema[]).map(valueOf));
  const type = schema["type"];
  if (Array.isArray(type)) return fc.oneof(...(type as string[]).map((one) => valueOf({ ...schema, type: one })));
  switch (type) {
    case "null":
      return fc.constant(null);
    case "boolean":
      return fc.boolean();
    case "integer":
      return integerOf(schema);
    case "number":
      return numberOf(schema);
    case "string":
      return textOf(schema);
    case "array":
      return fc.array(valueOf(schema["items"] as Schema), {
        minLength: (schema["minItems"] as number) ?? 0,
        maxLength: 4,
      });
    case "object":
      return objectOf(schema);
    default:
      throw new Error(`no values for ${JSON.stringify(schema)}`);
  }
}

function integerOf({ minimum = -(2 ** 31), maximum = 2 ** 31 }: Schema): fc.Arbitrary<number> {
  const [min, max] = [minimum as number, maximum as number];
  return fc.oneof(fc.integer({ min, max }), fc.integer({ min, max: Math.min(max, min + 9) }));
}

function numberOf({ minimum: min, maximum: max }: Schema): fc.Arbitrary<number> {
  return fc.double({ min: min as number, max: max as number, noNaN: true });
}

function textOf({ pattern, format, minLength = 0, maxLength = 40 }: Schema): fc.Arbitrary<string> {
  if (format === "uri") return fc.constantFrom(...URLS);
  if (typeof pattern === "string") return fc.stringMatching(new RegExp(pattern), { maxLength: 60 });
  const length = { minLength: minLength as number, maxLength: Math.min(maxLength as number, 40) };
  return fc.oneof(fc.string(length), fc.string({ ...length, unit: "binary" }));
}

function objectOf(schema: Schema): fc.Arbitrary<unknown> {
  const properties = schema["properties"] as Readonly<Record<string, Schema>> | undefined;
  if (properties !== undefined) {
    const members = Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, valueOf(one)]));
    return fc.record(members, { requiredKeys: schema["required"] as string[] });
  }
  const { maxLength = 20 } = (schema["propertyNames"] ?? {}) as { maxLength?: number };
  const name = fc.string({ maxLength: Math.min(maxLength, 20) });
  return fc.dictionary(name, valueOf(schema["additionalProperties"] as Schema), {
    maxKeys: Math.min(schema["maxProperties"] as number, 5),
  });
}
