/**
 * Time and chance from outside the scheduler would make a run differ at the next try. So during a
 * run, product code that asks the machine for either is an error.
 */

/** Figures alone use the clock of the machine in `shared/metrics/stopwatch.ts`. */
const PRODUCT = /\/(gateway|worker|shared)\/(?!metrics\/stopwatch)/;

/** @throws Error if product code has asked the machine for the time or for a random number */
export async function guarded<T>(run: () => Promise<T>): Promise<T> {
  const escapes: string[] = [];
  const undo = [
    watch(performance, "now", escapes),
    watch(Date, "now", escapes),
    watch(Math, "random", escapes),
    watch(globalThis, "setTimeout", escapes),
    watch(globalThis, "setInterval", escapes),
  ];
  try {
    const result = await run();
    if (escapes.length > 0) throw new Error(`product code asked the machine for time or chance:\n${escapes[0]}`);
    return result;
  } finally {
    for (const one of undo) one();
  }
}

function watch<Of extends object>(of: Of, name: keyof Of & string, escapes: string[]): () => void {
  const own = Object.getOwnPropertyDescriptor(of, name);
  const real = of[name] as (...args: unknown[]) => unknown;
  const asked = (...args: unknown[]) => {
    const stack = new Error(`${name} was called`).stack ?? "";
    const caller = stack.split("\n")[2] ?? "";
    if (PRODUCT.test(caller) && !caller.includes("node_modules")) escapes.push(stack);
    return real.apply(of, args);
  };
  Object.defineProperty(of, name, { configurable: true, writable: true, value: asked });
  return () => {
    if (own === undefined) Reflect.deleteProperty(of, name);
    else Object.defineProperty(of, name, own);
  };
}
