/** The OpenAPI document of a gateway: its operations, and the judgement of their answers. */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { Answer } from "../recording/exchange.js";

export type Schema = Readonly<Record<string, unknown>>;

export interface Segment {
  readonly name: string;
  /** The word before the segment, such as `jobs`, which says what the segment names. */
  readonly kind: string;
  readonly pattern: string | undefined;
}

export interface QueryParameter {
  readonly name: string;
  /** The schema of a single value. */
  readonly schema: Schema;
  readonly repeats: boolean;
}

export interface Body {
  readonly mediaType: string;
  /** Undefined if the document says nothing but the media type. */
  readonly schema: Schema | undefined;
  readonly isRequired: boolean;
}

export interface Operation {
  /** Method and path, as in `GET /v2/jobs/{id}`. */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly segments: readonly Segment[];
  readonly query: readonly QueryParameter[];
  /** Whether the operation refuses parameters that the document does not name. */
  readonly refusesOthers: boolean;
  readonly body: Body | undefined;
  /** Whether a request can succeed. */
  readonly succeeds: boolean;
  /** Methods that the path does not have. */
  readonly otherMethods: readonly string[];
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema: Schema;
}
interface Response {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
}
interface Described {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema?: Schema }>>;
    required: boolean;
  };
  readonly responses: Readonly<Record<string, Response>>;
  readonly "x-other-parameters"?: string;
}
interface Described31 {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
}

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

export class ApiDocument {
  readonly #paths: Described31["paths"];
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false });
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(document: object) {
    this.#paths = (document as Described31).paths;
    this.#ajv.addSchema(document, "document");
  }

  /** @param name method and path */
  operation(name: string): Operation {
    const [method = "", path = ""] = name.split(" ");
    const item = this.#paths[path] ?? {};
    const described = this.#describe(name);
    const { parameters = [], requestBody } = described;
    const patterns = new Map(
      parameters
        .filter((one) => one.in === "path")
        .map((one) => [one.name, one.schema["pattern"] as string | undefined]),
    );
    return {
      name,
      method,
      path,
      segments: [...path.matchAll(/([^/]+)\/\{(\w+)\}/g)].map(([, kind = "", segment = ""]) => ({
        kind,
        name: segment,
        pattern: patterns.get(segment),
      })),
      query: parameters.filter((one) => one.in === "query").map(queryParameter),
      refusesOthers: described["x-other-parameters"] === "refused",
      body: requestBody && bodyOf(requestBody),
      succeeds: Object.keys(described.responses).some((status) => status.startsWith("2")),
      otherMethods: METHODS.filter((one) => item[one.toLowerCase()] === undefined),
    };
  }

  /** Whether a value fits a schema that stands in the document. */
  fits(schema: Schema, value: unknown): boolean {
    return this.#ajv.validate(schema, value);
  }

  /** @returns a fault of the answer: a status, type or body that the document does not declare */
  faultOf({ name }: Operation, { status, headers, body }: Answer): string | undefined {
    const response = this.#describe(name).responses[status];
    if (response === undefined) return `status ${status} is not declared`;
    const { content } = response;
    if (content === undefined) return body.length === 0 ? undefined : `status ${status} is declared without a body`;
    const type = (headers["content-type"] ?? "").split(";")[0]?.trim() ?? "";
    const declared = [type, "*/*"].find((one) => content[one] !== undefined);
    if (declared === undefined) return `the content type '${type}' of status ${status} is not declared`;
    if (content[declared]?.schema === undefined) return undefined;
    return this.#bodyFault(`${name} ${status}`, pointer(name, status, declared), body);
  }

  /** @returns a fault of an answer to a method that the path does not have */
  refusalFaultOf({ path }: Operation, { status, body }: Answer): string | undefined {
    if (status < 400) return `status ${status} is no refusal`;
    const shape = path.startsWith("/v1/") ? "openai" : "kserve";
    return this.#bodyFault(shape, `document#/components/schemas/${shape}`, body);
  }

  #describe(name: string): Described {
    const [method = "", path = ""] = name.split(" ");
    const described = this.#paths[path]?.[method.toLowerCase()];
    if (described === undefined) throw new Error(`the document has no operation ${name}`);
    return described;
  }

  #bodyFault(key: string, ref: string, body: Buffer): string | undefined {
    let validator = this.#validators.get(key);
    if (validator === undefined) {
      validator = this.#ajv.compile({ $ref: ref });
      this.#validators.set(key, validator);
    }
    const value = jsonOf(body);
    if (value === undefined) return "the body is no JSON";
    if (validator(value)) return undefined;
    return `the body does not fit its schema: ${this.#ajv.errorsText(validator.errors)}`;
  }
}

function queryParameter({ name, schema }: Parameter): QueryParameter {
  const items = schema["items"];
  return schema["type"] === "array"
    ? { name, schema: items as Schema, repeats: true }
    : { name, schema, repeats: false };
}

function bodyOf({ content, required }: NonNullable<Described["requestBody"]>): Body {
  const [mediaType = "", { schema } = {}] = Object.entries(content)[0] ?? [];
  return { mediaType, schema, isRequired: required };
}

function pointer(name: string, status: number, type: string): string {
  const [method = "", path = ""] = name.split(" ");
  const steps = ["paths", path, method.toLowerCase(), "responses", String(status), "content", type, "schema"];
  const escaped = steps.map((step) => encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1")));
  return `document#/${escaped.join("/")}`;
}

/** @returns undefined for bytes that are no JSON */
export function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString()) as unknown;
  } catch {
    return undefined;
  }
}
