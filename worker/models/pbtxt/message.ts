/**
 * The types in which the schema describes protobuf messages. TypeScript compares a description with
 * the type of its result, so a field that only one of the two has does not compile.
 */
import type { Uint64 } from "#shared/model/config.js";

export type Scalar = "string" | "bool" | "int32" | "uint32" | "int64" | "uint64" | "float" | "double";

/**
 * The numbers of ModelConfig's enums run from 0 without a gap, so a value's index is its number.
 */
export interface Enum<V extends string = string> {
  readonly kind: "enum";
  readonly values: readonly V[];
}

export interface Message<T = unknown> {
  readonly kind: "message";
  /** The full name, as in protobuf's own errors. */
  readonly name: string;
  /** By name, in the proto's order of declaration, which is also the order of printing. */
  readonly fields: ReadonlyMap<string, Field>;
  /** Absent at run time. Ties the description to the type of the parsed message. */
  readonly yields?: T;
}

export type FieldType = Scalar | Enum | Message;

export interface Field {
  readonly label: "singular" | "repeated" | "map";
  readonly type: FieldType;
  /** The type of a map's keys. */
  readonly key?: Scalar;
  /** Name of the oneof that the field belongs to. */
  readonly oneof?: string;
}

interface Repeated<T> extends Field {
  readonly label: "repeated";
  readonly type: FieldType & T;
}

interface MapOf<T> extends Field {
  readonly label: "map";
  readonly type: FieldType & T;
}

interface Singular<T> extends Field {
  readonly label: "singular";
  readonly type: FieldType & T;
}

/** The description of a field whose value is a V. */
type TypeOf<V> = [V] extends [boolean]
  ? "bool"
  : [V] extends [string]
    ? string extends V
      ? "string"
      : Enum<V>
    : [V] extends [number]
      ? Exclude<Scalar, "string" | "bool" | "uint64">
      : [V] extends [Uint64]
        ? "uint64"
        : Message<V>;

/**
 * The description of a field, with its label. The tuples make TypeScript treat a union of enum
 * names as one type instead of many.
 */
type FieldOf<V> = [V] extends [readonly (infer E)[]]
  ? Repeated<TypeOf<E>>
  : string extends keyof V
    ? MapOf<TypeOf<V[keyof V]>>
    : TypeOf<V> | Singular<TypeOf<V>>;

type Fields<T> = { readonly [K in keyof T]-?: FieldOf<Exclude<T[K], undefined>> };

/**
 * @param name without the package
 * @param fields a type for a singular field, else a `repeated`, `mapOf` or `oneof`
 */
export function message<T>(name: string, fields: Fields<T>): Message<T> {
  const entries = Object.entries<FieldType | Field>(fields).map(([field, given]): [string, Field] => [
    field,
    typeof given === "object" && "label" in given ? given : { label: "singular", type: given },
  ]);
  return { kind: "message", name: `inference.${name}`, fields: new Map(entries) };
}

export function enumOf<const V extends string>(...values: readonly V[]): Enum<V> {
  return { kind: "enum", values };
}

export function repeated<T extends FieldType>(type: T): Repeated<T> {
  return { label: "repeated", type };
}

export function mapOf<T extends FieldType>(key: Scalar, type: T): MapOf<T> {
  return { label: "map", key, type };
}

/**
 * A member of a oneof. A message has at most one member of a oneof, and a given member is present
 * even with a default value.
 * @param name of the oneof
 */
export function oneof<T extends FieldType>(name: string, type: T): Singular<T> {
  return { label: "singular", oneof: name, type };
}
