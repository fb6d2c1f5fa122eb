/**
 * The members of JSON bodies: a reader for the router and a schema for the document, side by side.
 * A body with an unknown member is refused by the member's name.
 */
import { InferenceError } from "#shared/errors.js";
import { asBoolean, asSize, asString, parseRequestJson, required, withoutOthers } from "#shared/json/members.js";
import type { JsonValue } from "#shared/json/parse.js";
import type { Schema } from "./parameters.js";

export interface Member<T> {
  readonly schema: Schema;
  readonly isRequired?: boolean;
  /** Whether the reader gets null for an absent member, to refuse it in words of its own. */
  readonly readsAbsence?: boolean;
  /** Whether the member is read after all others, because the service checks it after them. */
  readonly isLast?: boolean;
  /** @throws InferenceError */
  read(value: JsonValue, name: string): T;
}

export type Members = Readonly<Record<string, Member<unknown>>>;
export type MemberValues<M extends Members> = {
  readonly [N in keyof M]: M[N] extends { readonly isRequired: true }
    ? ReturnType<M[N]["read"]>
    : ReturnType<M[N]["read"]> | undefined;
};

export const string: Member<string> = { schema: { type: "string" }, read: asString };
export const boolean: Member<boolean> = { schema: { type: "boolean" }, read: asBoolean };
export const size: Member<number> = { schema: { type: "integer", minimum: 0 }, read: asSize };

/** How long something is good, in ms. */
export interface Lifetime {
  readonly usual: number;
  readonly least: number;
  readonly most: number;
}

export function lifetime({ usual, least, most }: Lifetime, description: string): Member<number> {
  return {
    schema: { type: "integer", description, minimum: least, maximum: most, default: usual },
    read(value, name) {
      const ms = asSize(value, name);
      if (ms >= least && ms <= most) return ms;
      throw new InferenceError("invalid_argument", `'${name}' must be from ${least} to ${most} ms`);
    },
  };
}

/** A member that the service checks itself. */
export function anything(schema: Schema): Member<JsonValue> {
  return { schema, isLast: true, read: (value) => value };
}

export function needed<T>(member: Member<T>): Member<T> & { readonly isRequired: true } {
  return { ...member, isRequired: true };
}

/**
 * Reads the members in the order of their declaration, and then those that are last.
 * @param mayBeEmpty whether no body counts as an empty object
 * @throws InferenceError
 */
export function readMembers<M extends Members>(bytes: Buffer, members: M, mayBeEmpty = false): MemberValues<M> {
  const isEmpty = mayBeEmpty && bytes.length === 0;
  const given = isEmpty ? {} : withoutOthers(parseRequestJson(bytes), Object.keys(members));
  const ordered = Object.entries(members).sort(([, a], [, b]) => Number(a.isLast ?? false) - Number(b.isLast ?? false));
  const read = ordered.map(([name, member]) => {
    const { isRequired = false, readsAbsence = false } = member;
    const value = isRequired && !readsAbsence ? required(given, name) : given[name];
    if (value === undefined) return [name, readsAbsence ? member.read(null, name) : undefined] as const;
    return [name, member.read(value, name)] as const;
  });
  return Object.fromEntries(read) as MemberValues<M>;
}
