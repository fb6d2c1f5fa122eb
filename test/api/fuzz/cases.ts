/** Requests of an operation, as arbitraries: half of them fit the document, and half do not. */
import * as fc from "fast-check";
import { bodiesOf, oddBodies, type Sent } from "./bodies.js";
import type { ApiDocument, Operation, QueryParameter, Segment } from "./document.js";
import { existing, hints, segmentText, unknownText } from "./names.js";
import { anyText, oddValue, valueOf } from "./values.js";

/** A request. A word such as `<job>` stands for the id of a thing, which the sender makes. */
export interface Case {
  readonly method: string;
  readonly path: string;
  readonly query: readonly (readonly [name: string, value: string])[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Why the request is wrong; undefined for a request that the document allows. */
  readonly fault?: string;
  /** Whether the request is none of the operation, because its method or its path is another. */
  readonly isOther?: boolean;
}

/** Texts that JavaScript takes for numbers. */
const ODD_NUMBERS = ["1e1", "0x10", "+5", " 5", "5.0", "5e0", "1_000", "٣"];
const NOT_JSON = ["{", "nope", "[1,", '{"a":}', "\u0000", "{} x", '{"a":1'];
const NO_OBJECT = ["[]", "null", "1", '"x"', "true", `${"[".repeat(2_000)}${"]".repeat(2_000)}`];

type Segments = Readonly<Record<string, string>>;
type Query = Case["query"];

/** Makes the requests of one operation. */
export class Cases {
  readonly #document: ApiDocument;
  readonly #operation: Operation;

  constructor(document: ApiDocument, operation: Operation) {
    this.#document = document;
    this.#operation = operation;
  }

  /** Requests that the document allows, although the thing that they name may not exist. */
  get allowed(): fc.Arbitrary<Case> {
    const { segments } = this.#operation;
    return this.#requests(
      this.#segments(
        segments.map((one) =>
          fc.oneof({ weight: 6, arbitrary: this.#existing(one) }, { weight: 1, arbitrary: unknownText(one) }),
        ),
      ),
    );
  }

  /** Requests with a fault, which the gateway has to refuse. */
  get wrong(): fc.Arbitrary<Case> {
    const faults = [...this.#queryFaults(), ...this.#bodyFaults(), ...this.#segmentFaults()];
    return fc.oneof(...(faults.length > 0 ? faults : [this.#methodFault()]));
  }

  get #good(): fc.Arbitrary<Case> {
    return this.#requests(this.#segments(this.#operation.segments.map((one) => this.#existing(one))));
  }

  #requests(segments: fc.Arbitrary<Segments>, sent: fc.Arbitrary<Sent> = this.#bodies()): fc.Arbitrary<Case> {
    const { method, path } = this.#operation;
    return fc.tuple(segments, this.#query(), sent).map(([names, query, { model, headers = {}, body }]) => {
      const all = model === undefined || names["model"] === undefined ? names : { ...names, model };
      return {
        method,
        path: path.replaceAll(/\{(\w+)\}/g, (_, name: string) => all[name] ?? ""),
        query,
        headers,
        body,
      };
    });
  }

  #segments(values: readonly fc.Arbitrary<string>[]): fc.Arbitrary<Segments> {
    const { segments } = this.#operation;
    return fc
      .tuple(...values)
      .map((texts) => Object.fromEntries(segments.map(({ name }, i) => [name, texts[i] ?? ""])));
  }

  #existing({ kind }: Segment): fc.Arbitrary<string> {
    const { path, method } = this.#operation;
    if (kind === "models" && path.startsWith("/v1/")) return fc.constant("tale-gpt");
    if (kind === "models" && path.includes("/sequences")) return fc.constant("accumulate");
    if (kind === "sequences" && method === "PUT") return fc.constant("<fresh>");
    const known = existing[kind];
    return known === undefined ? segmentText : fc.constantFrom(...known);
  }

  #query(): fc.Arbitrary<Query> {
    const values = this.#operation.query.map((one) => {
      const given = this.#values(one).map((texts) => texts.map((text) => [one.name, text] as const));
      return fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: given });
    });
    return fc.tuple(...values).map((all) => all.flat());
  }

  /** The texts of a parameter that the document allows; several if the parameter repeats. */
  #values({ name, schema, repeats }: QueryParameter): fc.Arbitrary<string[]> {
    const known = name === "after" && schema["type"] === "string" ? this.#listed() : hints[name];
    const any = valueOf(schema).map(String);
    const text =
      known === undefined
        ? any
        : fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...known) }, { weight: 1, arbitrary: any });
    return repeats ? fc.array(text, { minLength: 1, maxLength: 2 }) : text.map((one) => [one]);
  }

  /** The ids of the things that the operation lists. */
  #listed(): readonly string[] | undefined {
    return existing[this.#operation.path.split("/").at(-1) ?? ""];
  }

  #bodies(): fc.Arbitrary<Sent> {
    const { body } = this.#operation;
    if (body === undefined) return fc.constant({ body: "" });
    if (body.schema === undefined) {
      const bodies = bodiesOf(this.#operation);
      return fc.oneof({ weight: 3, arbitrary: bodies.good }, { weight: 2, arbitrary: oddBodies(bodies) });
    }
    const values = this.#objects();
    return body.isRequired
      ? values
      : fc.oneof({ weight: 1, arbitrary: fc.constant({ body: "" }) }, { weight: 4, arbitrary: values });
  }

  #objects(): fc.Arbitrary<Sent> {
    return this.#fitting().map((value) => ({ body: JSON.stringify(value) }));
  }

  /** Objects that fit the schema of the body. */
  #fitting(): fc.Arbitrary<Readonly<Record<string, unknown>>> {
    const schema = this.#operation.body?.schema ?? {};
    const properties = schema["properties"] as object;
    const known = { ...properties, ...this.#knownMembers(properties) };
    return (valueOf({ ...schema, properties: known }) as fc.Arbitrary<Readonly<Record<string, unknown>>>).filter(
      (value) => this.#document.fits(schema, value),
    );
  }

  /** Members that have a meaning to the gateway, although they are texts to the document. */
  #knownMembers(properties: object): object {
    const known = Object.keys(properties).filter((name) => hints[name] !== undefined);
    return Object.fromEntries(known.map((name) => [name, { enum: hints[name] }]));
  }

  *#queryFaults(): Iterable<fc.Arbitrary<Case>> {
    const { query, refusesOthers } = this.#operation;
    const withQuery = (fault: string, more: fc.Arbitrary<Query>) =>
      fc.tuple(this.#good, more).map(([one, added]) => {
        const names = added.map(([name]) => name);
        return { ...one, fault, query: [...one.query.filter(([name]) => !names.includes(name)), ...added] };
      });
    for (const one of query) {
      const wrong = fc
        .oneof(anyText, fc.constantFrom(...ODD_NUMBERS), fc.integer().map(String), oddValue.map(String))
        .filter((text) => !this.#allows(one, text));
      if (isBounded(one))
        yield withQuery(
          "a wrong parameter",
          wrong.map((text) => [[one.name, text]]),
        );
      if (refusesOthers && !one.repeats) {
        yield withQuery(
          "a parameter comes twice",
          this.#values(one).map(([text = ""]) => [
            [one.name, text],
            [one.name, text],
          ]),
        );
      }
    }
    if (!refusesOthers) return;
    const names = fc.oneof(fc.constantFrom("other", "__proto__", "Limit", "constructor"), fc.string({ maxLength: 5 }));
    yield withQuery(
      "an unknown parameter",
      names.filter((name) => query.every((one) => one.name !== name)).map((name) => [[name, "1"]]),
    );
  }

  /** Whether the document allows a text as the value of the parameter. */
  #allows({ schema }: QueryParameter, text: string): boolean {
    const isInteger = schema["type"] === "integer" && /^-?\d+$/.test(text);
    return this.#document.fits(schema, isInteger ? Number(text) : text);
  }

  *#bodyFaults(): Iterable<fc.Arbitrary<Case>> {
    const { body } = this.#operation;
    if (body === undefined) return;
    const segments = this.#segments(this.#operation.segments.map((one) => this.#existing(one)));
    const withBody = (fault: string, sent: fc.Arbitrary<Sent>) =>
      this.#requests(segments, sent).map((one) => ({ ...one, fault }));
    if (body.isRequired) yield withBody("no body", fc.constant({ body: "" }));
    if (body.schema !== undefined) {
      for (const [fault, values] of this.#objectFaults())
        yield withBody(
          fault,
          values.map((value) => ({ body: JSON.stringify(value) })),
        );
    } else {
      yield withBody("a wrong body", bodiesOf(this.#operation).wrong);
      if (body.isRequired) yield withBody("too long", fc.constant({ body: "{<long>}" }));
    }
    if (body.mediaType !== "application/json") return;
    yield withBody(
      "no JSON",
      fc.constantFrom(...NOT_JSON).map((text) => ({ body: text })),
    );
    yield withBody(
      "no object",
      fc.constantFrom(...NO_OBJECT).map((text) => ({ body: text })),
    );
    // The index reads a body as it comes, whatever its encoding.
    if (this.#operation.path.endsWith("/index")) return;
    const encodings = fc
      .constantFrom("br", "gzip", "deflate")
      .map((encoding) => ({ body: "{}", headers: { "content-encoding": encoding } }));
    yield withBody("a wrong encoding", encodings);
  }

  *#objectFaults(): Iterable<readonly [string, fc.Arbitrary<unknown>]> {
    const schema = this.#operation.body?.schema ?? {};
    const { properties, required } = schema as { properties: Record<string, object>; required: readonly string[] };
    const good = this.#fitting();
    for (const [name, one] of Object.entries(properties)) {
      const wrong = oddValue.filter((value) => !this.#document.fits({ ...one }, value));
      yield ["a wrong member", fc.tuple(good, wrong).map(([value, member]) => ({ ...value, [name]: member }))];
    }
    for (const name of required) yield ["a member is missing", good.map((value) => without(value, name))];
    const others = fc
      .string({ minLength: 1, maxLength: 5 })
      .filter((name) => !Object.hasOwn(properties, name) && name !== "__proto__");
    yield [
      "an unknown member",
      fc.tuple(good, others, oddValue).map(([value, name, member]) => ({ ...value, [name]: member })),
    ];
  }

  *#segmentFaults(): Iterable<fc.Arbitrary<Case>> {
    const { segments, method } = this.#operation;
    for (const one of segments) {
      const { name, kind, pattern } = one;
      const isNew = kind === "sequences" && method === "PUT";
      if (existing[kind] === undefined || isNew) continue;
      const others = (texts: fc.Arbitrary<string>) =>
        this.#segments(segments.map((other) => (other.name === name ? texts : this.#existing(other))));
      const fixed = ({ body }: Sent): Sent => ({ body });
      yield this.#requests(others(unknownText(one)), this.#bodies().map(fixed)).map((found) => ({
        ...found,
        fault: `unknown ${name}`,
      }));
      if (pattern !== undefined) {
        yield this.#requests(others(fc.constantFrom("x", "1x", "-1", "1.0", "%31x")), this.#bodies().map(fixed)).map(
          (found) => ({ ...found, fault: `malformed ${name}`, isOther: true }),
        );
      }
    }
  }

  #methodFault(): fc.Arbitrary<Case> {
    const { otherMethods } = this.#operation;
    return fc
      .tuple(this.#good, fc.constantFrom(...otherMethods))
      .map(([one, method]) => ({ ...one, method, fault: "another method", isOther: true }));
  }
}

/** Whether the schema refuses some texts. */
function isBounded({ schema }: QueryParameter): boolean {
  return schema["type"] !== "string" || schema["pattern"] !== undefined || schema["enum"] !== undefined;
}

function without(value: object, name: string): object {
  return Object.fromEntries(Object.entries(value).filter(([one]) => one !== name));
}
