/**
 * ONNX Runtime's execution providers, and the choice among them for a session. The names are the
 * runtime's own.
 */
export const providerNames = ["cuda", "tensorrt", "webgpu", "cpu"] as const;

export type Provider = (typeof providerNames)[number];

/** The providers and the GPU that a model computes on. */
export interface Placement {
  /**
   * The providers of the session, the preferred one first. ONNX Runtime gives an operator that no
   * provider can compute to the CPU.
   */
  readonly providers: readonly [Provider, ...Provider[]];
  /** The number of the GPU among those that the process sees; undefined on the CPU. */
  readonly gpu: number | undefined;
}

export const onCpu: Placement = { providers: ["cpu"], gpu: undefined };

/** @returns the placement in words, such as "cuda on GPU 1" */
export function placementText({ providers, gpu }: Placement): string {
  return gpu === undefined ? providers.join(", ") : `${providers.join(", ")} on GPU ${gpu}`;
}

/**
 * Reads the setting BATON_PROVIDERS.
 *
 * @param text names with commas between them
 * @returns the names in their order, or the fault, as the end of a sentence that begins with the
 * setting's name
 */
export function parseProviders(text: string): { names: Provider[] } | { fault: string } {
  const names: Provider[] = [];
  for (const word of text.split(",").map((one) => one.trim())) {
    const name = providerNames.find((known) => known === word);
    if (name === undefined) {
      return { fault: `there is no execution provider '${word}'; there are ${providerNames.join(", ")}` };
    }
    if (names.includes(name)) return { fault: `'${name}' stands there twice` };
    if (names.at(-1) === "cpu") return { fault: `'cpu' is always there, so '${name}' after it would never be used` };
    names.push(name);
  }
  return { names };
}
