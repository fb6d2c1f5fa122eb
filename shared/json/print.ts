/**
 * Writes JSON as KServe clients read it, the inverse of parse.ts: bigints as exact numbers, and
 * non-finite numbers as bare NaN and Infinity. Uses a stack of its own, so a deep value does not
 * throw, unlike with `JSON.stringify` at some thousand levels.
 */

/** An unfinished array or object. */
interface Open {
  readonly values: readonly unknown[];
  /** Undefined for an array. */
  readonly names: readonly string[] | undefined;
  /** Index of the next value. */
  next: number;
}

/** As with `JSON.stringify`, undefined members are absent, and undefined items print as null. */
export function printJson(value: unknown): string {
  let text = "";
  const stack: Open[] = [];
  const print = (item: unknown): void => {
    if (typeof item !== "object" || item === null) {
      text += printScalar(item);
      return;
    }
    const open = openValue(item);
    text += open.names === undefined ? "[" : "{";
    stack.push(open);
  };
  print(value);
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    if (top.next === top.values.length) {
      text += top.names === undefined ? "]" : "}";
      stack.pop();
      continue;
    }
    if (top.next > 0) text += ",";
    if (top.names !== undefined) text += `${JSON.stringify(top.names[top.next])}:`;
    print(top.values[top.next++]);
  }
  return text;
}

function openValue(item: object): Open {
  if (Array.isArray(item)) return { values: item, names: undefined, next: 0 };
  const members = Object.entries(item).filter(([, member]) => member !== undefined);
  return { values: members.map(([, member]) => member as unknown), names: members.map(([name]) => name), next: 0 };
}

function printScalar(item: unknown): string {
  switch (typeof item) {
    case "string":
      return JSON.stringify(item);
    case "number":
    case "bigint":
      // JavaScript writes non-finite numbers as the words that clients read. Only -0 would lose its
      // sign.
      return Object.is(item, -0) ? "-0" : String(item);
    case "boolean":
      return item ? "true" : "false";
    default:
      return "null";
  }
}
