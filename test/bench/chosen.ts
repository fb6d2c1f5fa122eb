/** Which scenarios `--only` means: names of single ones, or of a whole group. */

interface Groups<Step extends string, Stream extends string> {
  readonly steps: readonly Step[];
  readonly streams: readonly Stream[];
}

/** @returns in each group's own order. @throws Error for a name that there is not */
export function chosen<Step extends string, Stream extends string>(
  only: string,
  { steps, streams }: Groups<Step, Stream>,
): Groups<Step, Stream> {
  const wanted = only.split(",").filter((name) => name !== "");
  const known: readonly string[] = ["steps", "streams", ...steps, ...streams];
  const unknown = wanted.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`--only ${unknown.join()}: there is ${known.join(", ")}`);
  const of = <Name extends string>(group: string, names: readonly Name[]) =>
    names.filter((name) => wanted.includes(group) || wanted.includes(name));
  return { steps: of("steps", steps), streams: of("streams", streams) };
}
